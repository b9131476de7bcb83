/*
 * Goroutines and the Boehm collector (Debian's libgc-dev, 8.2): GC_malloc works on a goroutine. Its
 * names are weak here; the first gort_main of a program linked with -lgc switches this on.
 *
 * The collector knows threads. It suspends each by a signal and scans its stack from the saved sp
 * to its end. A goroutine's stack is not a thread's, so the collector is told:
 *
 *   stop     Every thread of the runtime is registered with its alternate stack, where the suspend
 *            handler is made to run (SA_ONSTACK). So of such a thread the collector sees the signal
 *            frame with all registers, and a goroutine's stack needs no room for it. Our handler
 *            goes in front and notes the interrupted context in M. gort_stop_world() will not do: a
 *            thread that comes back from the kernel runs the program's code (stopworld.c). A thread
 *            can be stopped anywhere, in the runtime too: meanwhile no lock may be taken.
 *   roots    push_roots() adds what the collector cannot know: the live part of every goroutine's
 *            stack, the records of goroutines (arguments of those that have not run yet), and small
 *            objects. Large objects come from the collector itself, uncollectable.
 *   itself   The goroutine in which a collection begins is on its own stack: meanwhile that stack's
 *            end is the thread's. It is not preempted: a stopped thread may hold the lock for it.
 *
 * The live part of a stack is found by address, not by status: a thread may be stopped half way
 * through a switch, when m->curg has changed already and g->sp is old. If the sp of a stopped
 * thread lies in a stack, the live part begins there. A thread on its alternate stack was stopped
 * in a handler: in the preemption handler m->context tells; in another, all of its goroutine's
 * stack counts. Every other stack was left by a switch and begins at g->sp.
 *
 * The danger is the collector's own lock, a plain mutex: its holder may be preempted. A thread that
 * waits for it outside of a section loses its P by the retake, so the holder runs again. So a
 * thread of the runtime registers before it is given a P (threadmaker.c), and the end of a runtime
 * takes that lock first (collect_apart), or it would be lost with an abandoned goroutine.
 */
#include "gc/boehm.h"
#include "gc/calls.h"
#include "sched/g.h"
#include "sched/m.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "mem/span.h"
#include "mem/stack.h"

#include <signal.h>

#define RED_ZONE 128

/* What is used of <gc.h> and <gc/gc_mark.h>. */
typedef struct Base {
    void *at;
} Base;
enum { EVENT_PRE_STOP = 6, EVENT_POST_START = 9 };
typedef void event_fn(int event);
typedef void roots_fn(void);
#define DECLARE_WEAK(result, name, arguments) extern result name arguments __attribute__((weak));
EACH_CALL(DECLARE_WEAK)

static struct {
    struct sigaction suspend; /* the collector's own */
    event_fn *on_event;
    roots_fn *roots;
    bool caller;        /* gort_main's caller was registered here */
    unsigned long seen; /* the monitor's: the number of the last collection, and since when */
    int64_t since;
} own;

/* All or nothing: an older collector lacks some of them. */
static bool present(void) {
#define AND_THIS(result, name, arguments) &&name != NULL
    return true EACH_CALL(AND_THIS);
}

/* ---- stopping -------------------------------------------------------------------------------- */

/* The thread waits in the collector's handler until the collection is over. */
static void on_suspend(int signo, siginfo_t *info, void *context) {
    M *m = getm();
    int err = *__errno_location();
    if (m) store_rlx(&m->stopped, context);
    if (own.suspend.sa_flags & SA_SIGINFO) own.suspend.sa_sigaction(signo, info, context);
    else own.suspend.sa_handler(signo);
    if (m) store_rlx(&m->stopped, NULL);
    *__errno_location() = err;
}

static void set_own_end(void *end) {
    Base base = {end};
    GC_set_stackbottom(NULL, &base);
}

/* In the collecting thread, with the collector's lock. No enter(), which may change the thread. */
static void on_event(int event) {
    M *m = getm();
    bool goroutine = m && !m->plain && m->curg && m->curg->stack;
    if (event == EVENT_PRE_STOP) {
        store_rlx(&collect_stopped, 1);
        if (m) m->locks++;
        fence_compiler();
        if (goroutine) set_own_end(m->curg->stack);
    } else if (event == EVENT_POST_START) {
        if (goroutine) set_own_end(m_alt_end(m));
        fence_compiler();
        if (m) m->locks--;
        store_rlx(&collect_stopped, 0);
    }
    if (own.on_event) own.on_event(event);
}

/* ---- roots; all threads are stopped ---------------------------------------------------------- */

static void gc_push(void *lo, void *hi) {
    if ((char *)lo < (char *)hi) GC_push_all_eager(lo, hi);
}

static bool within(Stack *s, uintptr_t at) {
    return s && at >= (uintptr_t)s->lo && at < (uintptr_t)s;
}

/* The stack that is live because of m, which was stopped, and from where; NULL: none. */
static Stack *live_of(M *m, uintptr_t *from) {
    uintptr_t sp = *from = arch_context_sp(m->stopped);
    G *gp = m->curg;
    Stack *s = stack_at(sp);
    if (s || gp == NULL || gp->stack == NULL) return s;
    if (within(gp->stack, sp)) return gp->stack; /* of a custom size */
    if (!on_alt_stack(m, (void *)sp)) return NULL;
    sp = m->context ? arch_context_sp(m->context) : 0;
    *from = within(gp->stack, sp) ? sp : (uintptr_t)gp->stack->lo;
    return gp->stack;
}

/* Writes into each stack, which may be on no G, where its live part begins, or takes that off. */
static void note_live(bool begin) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        uintptr_t from;
        if (load_rlx(&m->stopped) == NULL || m->plain) continue;
        Stack *s = live_of(m, &from);
        if (s) s->live = begin ? from : 0;
        else if (begin && from >= (uintptr_t)m->stack_lo && from < (uintptr_t)m->stack_hi)
            gc_push((void *)(from - RED_ZONE), m->stack_hi); /* g0 */
    }
}

/* A thread stopped in a switch may be on a stack of custom size that no G or M names. */
static uintptr_t live_custom(Stack *s) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        void *context = load_rlx(&m->stopped);
        if (context && within(s, arch_context_sp(context))) return arch_context_sp(context);
    }
    return 0;
}

static void push_goroutine(G *gp, void *arg) {
    Stack *s = gp->stack;
    M *me = arg;
    /* me->curg's is the thread's own stack */
    if (s == NULL || gp->sp == NULL || (me && me->curg == gp)) return;
    uintptr_t from = s->live;
    if (from == 0 && s->custom) from = live_custom(s);
    if (from == 0) from = (uintptr_t)gp->sp;
    else from -= RED_ZONE;
    if (from < (uintptr_t)s->lo) from = (uintptr_t)s->lo;
    gc_push((void *)from, s);
}

static void push_roots(void) {
    M *m = getm();
    if (own.roots) own.roots();
    note_live(true);
    each_g(push_goroutine, m && !m->plain ? m : NULL);
    note_live(false);
    each_g_region(gc_push);
    each_span(gc_push);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void install(void) {
    struct sigaction sa;
    if (!GC_is_init_called()) GC_init();
    GC_allow_register_threads();
    own.on_event = GC_get_on_collection_event();
    GC_set_on_collection_event(on_event);
    own.roots = GC_get_push_other_roots();
    GC_set_push_other_roots(push_roots);
    sigaction(GC_get_suspend_signal(), NULL, &own.suspend);
    sa = own.suspend;
    sa.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    sa.sa_sigaction = on_suspend;
    sigaction(GC_get_suspend_signal(), &sa, NULL);
    collect_on = true;
}

void collect_begin_run(void) {
    if (!present()) return;
    if (!collect_on) install();
    own.since = os_now();
    own.seen = GC_get_gc_no();
    Base base;
    own.caller = !GC_thread_is_registered() && GC_get_stack_base(&base) == 0 &&
                 GC_register_my_thread(&base) == 0;
}

void collect_end_run(void) {
    if (collect_on && own.caller) GC_unregister_my_thread();
    own.caller = false;
}

void collect_thread_begin(M *m) {
    sigset_t set;
    Base base = {m_alt_end(m)};
    sigemptyset(&set);
    sigaddset(&set, GC_get_suspend_signal());
    sigaddset(&set, GC_get_thr_restart_signal());
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (base.at == NULL || GC_register_my_thread(&base) != 0)
        fatal("a thread cannot be made known to the collector");
}

void collect_thread_end(M *m) { GC_unregister_my_thread(); }

static void *call_it(void *arg) {
    (*(void (**)(void))arg)();
    return NULL;
}

void collect_apart(void (*fn)(void)) {
    if (collect_on) GC_call_with_alloc_lock(call_it, &fn);
    else fn();
}

int collect_threads(void) { return collect_on ? GC_get_parallel() : 0; }

/* ---- the monitor ----------------------------------------------------------------------------- */

static void force(void *arg) { GC_gcollect(); }

static int64_t collect_due(int64_t now) {
    if (!collect_on || settings.forcegc == 0 || GC_get_bytes_since_gc() == 0) return GORT_FOREVER;
    return time_after(own.since, settings.forcegc * GORT_MS);
}

static void collect_look(M *m, int64_t now) {
    if (!collect_on || sim_on) return;
    unsigned long number = GC_get_gc_no();
    if (number != own.seen) {
        own.seen = number;
        own.since = now;
    }
    if (now < collect_due(now)) return;
    own.since = now;
    add_rlx(&sched.other.forced_collections, 1); /* before the collection can be seen */
    go_start(m, NULL, force, NULL, NULL, 0, (uintptr_t)force + 1);
}

const MonitorClient collect_client = {NULL, collect_look, collect_due};

/* ---- large objects --------------------------------------------------------------------------- */

void *collect_alloc(size_t size) {
    if (!collect_on || size > PTRDIFF_MAX - CACHE_LINE) return NULL;
    uintptr_t at = (uintptr_t)GC_malloc_uncollectable(size + CACHE_LINE);
    return at ? (void *)((at + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1)) : NULL;
}

bool collect_free(void *at) {
    if (!collect_on || at == NULL || !GC_is_heap_ptr(at)) return false;
    GC_free(GC_base(at));
    return true;
}
