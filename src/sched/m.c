/*
 * Threads: records, their start and end.
 *
 * Records of Ms are type-stable and stay listed for good: a thread that is stuck in the kernel when
 * its runtime ends may come back much later, and the monitor may look at one that has just ended.
 *
 * A plain thread that calls in gets a record too, with a pseudo-G to block on, and loses both when
 * it ends.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "sched/m.h"
#include "base/upstairs.h"
#include "sched/g.h"
#include "sched/goexit.h"
#include "sched/threadmaker.h"
#include "sched/wake.h"
#include "sched/preempt.h"
#include "base/san.h"
#include "sched/sched.h"
#include "mem/split/split.h"
#include "sched/schedule.h"
#include "base/sysfault.h"
#include "sched/sysmon.h"
#include "base/warn.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>

/* of the C++ library, if the program has one; or a plugin, where the runtime starts after it */
extern Handling *__cxa_get_globals(void) __attribute__((weak));
static Handling *(*plugin_globals)(void);
#pragma weak dlopen
#pragma weak dlsym

#ifdef GORT_ASAN
#define THREAD_STACK ((size_t)1 << 20)
#else
#define THREAD_STACK ((size_t)256 << 10)
#endif

static struct {
    Lock lock;
    M *free; /* lock */
} records;
/* By m_prepare: what glibc takes for a thread's variables out of its stack. The program's may be
 * larger than a stack that has room for the runtime alone, and so may the room for modules that are
 * opened later, which one of its tunables sets. */
static size_t tls_bytes;
/* made by m_prepare. Value: the thread's M, while thread_ends has to see the thread end */
static pthread_key_t thread_end;
static bool sees_ends; /* the key is there */

/* libc's pthread_key_create: the hook's function of that name makes keys whose values belong to the
 * goroutine, and this value belongs to the thread. */
extern int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) __attribute__((weak));
static uint32_t next_id;

/* Of a goroutine of this runtime that waits (preferred.c): it would be sent to whatever thread has
 * the record next, a plain one perhaps, and lost with the list when the record is begun anew. */
static bool is_home(const M *m) {
    return m->epoch == load_rlx(&sched.epoch) && load_rlx(&m->homed) != load_rlx(&m->unhomed);
}

/* A thread of this runtime that has left runs destructors of its keys: the end waits for them by
 * the number that stands in the record (await_threads, init.c). */
static bool is_leaving(const M *m) {
    return !m->plain && m->epoch == load_rlx(&sched.epoch) && os_tgkill(m->tid, 0) == 0;
}

static M *record_reused(void) {
    lock(&records.lock, RANK_LEAF);
    M **at = &records.free;
    while (*at && (is_home(*at) || is_leaving(*at))) at = &(*at)->link;
    M *m = *at;
    if (m) *at = m->link;
    unlock(&records.lock);
    return m;
}

M *m_record(void) {
    M *m = record_reused();
    if (m) {
        M *all = m->all;
        void *alt = m->altstack;
        memset(m, 0, offsetof(M, all));
        m->all = all;
        m->altstack = alt;
        store_rlx(&m->outsider, 0);
        m->context = NULL;
        m->pseudo = NULL;
        m->seen_cpu = m->seen_at = m->asked_cpu = m->hot_cpu = m->chances = 0;
        m->trace = NULL;
        m->nheld = 0;
    } else {
        m = os_map(sizeof *m, false);
        if (m == NULL) return NULL;
        M *head = load_rlx(&sched.all_ms);
        do m->all = head;
        while (!cas_rel(&sched.all_ms, &head, m)); /* pairs with readers' acquire */
    }
    fork_gate_joined(m);
    m->id = add_rlx(&next_id, 1) - 1;
    m->rng = (uint64_t)os_now() ^ ((uint64_t)m->id << 32) ^ 0x9E3779B97F4A7C15ULL;
    m->epoch = load_rlx(&sched.epoch);
    m->marks = load_rlx(&sched.marks);
    m->locks = 1;
    return m;
}

static uint64_t set_signals(uint64_t mask) {
    uint64_t old;
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&old, sizeof mask, 0, 0);
    return old;
}
#define ALL_SIGNALS (~(uint64_t)0)

/* Signals are blocked: a handler of a plain thread that ends may adopt it again, and takes a
 * record. */
void m_record_free(M *m) {
    uint64_t old = set_signals(ALL_SIGNALS);
    store_rel(&m->alive, 0);
    lock(&records.lock, RANK_LEAF);
    m->link = records.free;
    records.free = m;
    unlock(&records.lock);
    set_signals(old);
}

void m_fork(bool before) {
    if (before) lock(&records.lock, RANK_LEAF);
    else unlock(&records.lock);
}

void m_count_out(M *m) {
    uint32_t alive = 1;
    if (!cas_seq(&m->alive, &alive, 0)) return;
    /* one that a runtime has left behind, or m_is_ours */
    if (!m->plain || (m->pseudo && m->pseudo->flags & GF_SYSTEM)) sub_rlx(&sched.threads, 1);
}

void m_forget_others(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) {
        if (m == getm() || !load_acq(&m->alive)) continue;
        if (m->pseudo && upstairs.undo_wait) upstairs.undo_wait(m->pseudo);
        m_count_out(m);
    }
}

size_t m_tls_bytes(void) { return tls_bytes; }

/* m: NULL: the thread ends in order. */
static void watch_end(M *m) {
    if (likely(sees_ends)) pthread_setspecific(thread_end, m);
    else
        warn_once(WARN_KEYS, "the program has used up the keys of pthread_key_create(3): what the "
                             "runtime keeps for a thread stays when the thread ends");
}

/* ---- threads of the runtime ----------------------------------------------------------------- */

static void use_alt_stack(M *m) {
    stack_t ss = {.ss_sp = m->altstack, .ss_size = ALT_STACK};
    asan_forget(m->altstack, ALT_STACK); /* a handler may have left it for good (preempt.c) */
    long r = os_sys(SYS_sigaltstack, (long)&ss, 0, 0, 0, 0, 0);
    if (r < 0)
        warn_once(WARN_GUARD,
                  "sigaltstack(2) gives error %ld: a stack overflow is not told in words", -r);
}

bool on_alt_stack(M *m, void *at) {
    return (char *)at >= (char *)m->altstack && (char *)at < (char *)m->altstack + ALT_STACK;
}

void *m_alt_end(M *m) { return m->altstack ? (char *)m->altstack + ALT_STACK : NULL; }

static void drop_alt_stack(void) {
    stack_t ss = {.ss_flags = SS_DISABLE};
    os_sys(SYS_sigaltstack, (long)&ss, 0, 0, 0, 0, 0);
}

/* m is the record of the calling thread. */
static void know_thread(M *m) {
    tls_m = m;
    m->tid = m->owner = os_gettid();
    m->clock = os_thread_clock(m->tid);
    m->tp = ARCH_THREAD_POINTER();
    m->errno_at = __errno_location();
    m->handling = __cxa_get_globals ? __cxa_get_globals() : NULL;
    tsan_own_errno(m->errno_at);
}

/* What a plugin brought is perhaps not in the global scope, and found by its name only. It stays
 * open: threads point into it. Not in adopt(): a plugin has its thread's memory from malloc. */
void m_find_globals(void) {
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1"};
    if (__cxa_get_globals || !dlopen || !dlsym) return;
    for (size_t i = 0; i < count_of(names) && !plugin_globals; i++) {
        void *lib = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (lib) plugin_globals = (Handling * (*)(void)) dlsym(lib, "__cxa_get_globals");
    }
}

Handling *m_handling_here(void) {
    return __cxa_get_globals ? __cxa_get_globals() : plugin_globals ? plugin_globals() : NULL;
}

static void thread_begin(M *m) {
    tls_runner = m;
    know_thread(m);
    tsan_release(&m->tp); /* TSan has written the thread's variables; for tsan_switch */
    m->handling = m_handling_here();
    if (m->tid <= 0)
        fatal("cannot learn the number of a thread: gettid(2) gives %s", errno_word(m->tid));
    m->stack_hi = __builtin_frame_address(0);
    m->stack_lo = (char *)m->stack_hi - THREAD_STACK + (16 << 10);
    if (tsan_on()) m->san_fiber = __tsan_get_current_fiber();
    split_thread_begin(m);
    use_alt_stack(m);
    watch_end(m); /* prepared: gort_main has adopted its caller */
    store_rel(&m->alive, 1);
}

static void *thread_main(void *arg) {
    M *m = arg;
    thread_begin(m);
    preempt_unmask();
    if (collect_on) upstairs.collect_thread_begin(m); /* may wait: before it has a P */
    /* A thread that begins after its runtime has ended does not belong to the next one. Under the
     * lock: if this thread sees its runtime running, the end sees `alive`, set above, and sends
     * this thread away. */
    lock(&sched.lock, RANK_SCHED);
    m->dying = !sched.running || sched.epoch != m->epoch;
    P *p = m->dying ? NULL : maker_arrived_locked(&m->spinning);
    unlock(&sched.lock);
    if (p) m_acquire_p(m, p);
    schedule_loop(m);
    if (collect_on) upstairs.collect_thread_end(m); /* takes the collector's signals */
    preempt_mask(); /* no signal may find this thread without a record */
    drop_alt_stack();
    m->locks++;
    split_thread_end(m);
    lock(&sched.lock, RANK_SCHED);
    if (m->epoch == sched.epoch) sched.m_count--;
    unlock(&sched.lock);
    watch_end(NULL);
    tls_m = tls_runner = NULL;
    add_rlx(&sched.threads, -1);
    /* libc frees what goroutines left in its thread-local variables (dlerror's words) */
    tsan_acquire(&sched); /* pairs with tsan_over (go.c) */
    tsan_release(&sched); /* for the waiter of the runtime's end (init.c) */
    m_record_free(m);
    return NULL;
}

/* The program's handlers run here too: one that needs more than ALT_STACK meets the guard. */
#define ALT_GUARD ((size_t)64 << 10)
static void *map_alt_stack(void) {
    char *base = os_map(ALT_GUARD + ALT_STACK, false);
    if (base == NULL) return NULL;
    /* if both fail there is no guard, as for every stack then (stack.c) */
    if (os_guard_install(base, ALT_GUARD) != 0) os_protect_none(base, ALT_GUARD);
    return base + ALT_GUARD;
}

int own_thread(pthread_t *joined, size_t stack, void *(*fn)(void *), void *arg) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    pthread_attr_init(&attr);
    if (stack) pthread_attr_setstacksize(&attr, (stack + tls_bytes + 4095) & ~(size_t)4095);
    if (joined == NULL) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    add_rlx(&sched.threads, 1);
    int r = thread_create(joined ? joined : &thread, &attr, fn, arg);
    if (r != 0) sub_rlx(&sched.threads, 1);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -r;
}

int m_spawn(M *m) {
    if (m->altstack == NULL && (m->altstack = map_alt_stack()) == NULL) return -ENOMEM;
    int r = own_thread(NULL, THREAD_STACK, thread_main, m); /* it unmasks when tls_m is set */
    if (r == 0) add_rlx(&sched.threads_created, 1);
    return r;
}

/* ---- plain threads -------------------------------------------------------------------------- */

/* It wakes no goroutine any more, or is not to count. In a section. */
static void no_outsider(M *m) {
    if (!in_forked_child()) sysmon_uncount(&m->outsider, load_rlx(&m->outsider));
}

/* The key's destructor. A thread of the runtime that ends in order has cleared the key before. One
 * that comes here would take its P along, and all others would wait for it. */
static void thread_ends(void *arg) {
    M *m = arg;
    if (tls_runner == m)
        fatal("pthread_exit or pthread_cancel of a thread that runs goroutines: gort_exit ends a "
              "goroutine");
    if (!m->plain) return;
    G *gp = m->pseudo;
    if (gp->spare != NULL && !in_forked_child()) exit_hook_jumped();
    m->curg = m->pseudo = NULL;
    m->locks++;
    if (gp->odd & ODD_USES) upstairs.use_ends(gp);
    store_rlx(&gp->status, G_DEAD);
    g_free(m, gp);
    no_outsider(m);
    m->locks--;
    tls_m = NULL;
    m_record_free(m);
}

void m_unadopt(void) {
    M *m = getm();
    if (sees_ends) pthread_setspecific(thread_end, NULL);
    thread_ends(m);
}

extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *)
    __attribute__((weak));

static int add_tls(struct dl_phdr_info *info, size_t n, void *sum) {
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* glibc knows the sum, with what it keeps free for modules to come. */
static size_t count_tls(void) {
    size_t sum = 0;
    size_t (*least)(const pthread_attr_t *) =
        dlsym ? (size_t(*)(const pthread_attr_t *))dlsym(NULL, "__pthread_get_minstack") : NULL;
    if (least) return least(NULL);
    if (dl_iterate_phdr) dl_iterate_phdr(add_tls, &sum);
    return sum;
}

/* A constructor, before the program has keys: libc keeps a thread's values of the first 32 keys in
 * the thread's record, so pthread_setspecific in adopt(), perhaps in a signal handler, does not
 * call malloc. */
__attribute__((constructor)) static void m_prepare(void) {
    static bool done;
    static Lock once;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        if (!try_lock(&once, RANK_LEAF)) {
            os_yield();
            continue;
        }
        if (!done) {
            tls_bytes = count_tls();
            sees_ends = (__pthread_key_create ? __pthread_key_create
                                              : pthread_key_create)(&thread_end, thread_ends) == 0;
            __atomic_store_n(&done, true, __ATOMIC_RELEASE);
        }
        unlock(&once);
    }
}

NOINLINE M *m_adopt(void) {
    M *m = m_adopt_or_null();
    if (m == NULL) fatal("no memory for a thread's record");
    return m;
}

void m_is_ours(void) {
    M *m = enter();
    m->curg->flags |= GF_SYSTEM;
    no_outsider(m);
    leave(m);
}

static M *adopt(void) {
    m_prepare();
    M *m = m_record();
    if (m == NULL) return NULL;
    m->plain = true;
    G *gp = g_alloc(m);
    if (gp == NULL) {
        m_record_free(m);
        return NULL;
    }
    gp->flags = GF_THREAD;
    gp->spare = NULL;
    gp->futex = 0;
    gp->status = G_RUNNING;
    gp->id = 0;
    gp->m = m;
    m->curg = m->pseudo = gp;
    m->locks = 0;
    know_thread(m);
    watch_end(m);
    store_rlx(&m->outsider, sees_ends); /* else it counts as one that never called in */
    store_rel(&m->alive, 1);
    return m;
}

/* A signal handler that calls sem_post may come here too (hookcalls.c): so signals are blocked
 * while the thread is adopted. */
M *m_adopt_or_null(void) {
    if (unlikely(tls_vforks != 0)) vfork_stops(NULL);
    uint64_t old = set_signals(ALL_SIGNALS);
    M *m = getm() ? getm() : adopt(); /* a handler may have adopted the thread before */
    set_signals(old);
    return m;
}
