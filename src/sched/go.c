/*
 * Goroutines begin and end.
 *
 * A goroutine gets its stack when it first runs. When one ends and the next on this P has not run
 * yet, that one starts on the same stack, which is still warm, with no switch at all: the entry
 * below is a loop. So a burst of short goroutines runs on a single stack.
 */
#include "mem/compact_stack.h"
#include "base/hint.h"
#include "base/print.h"
#include "base/upstairs.h"
#include "sched/body.h"
#include "sched/goexit.h"
#include "sched/g.h"
#include "sched/schedule.h"
#include "sched/runq.h"
#include "base/san.h"
#include "sched/sched.h"
#include "mem/split/split.h"
#include "sched/fastpath.h"
#include "sched/trace.h"
#include "sched/wake.h"

void (*values_end)(void);
void (*values_lost)(void *values);

#define MAX_COPY 1024
#define MAX_COMPACT_COPY 256
#define MIN_STACK ((size_t)16 << 10)
#define MAX_STACK ((size_t)1 << 30)

/* ---- end ------------------------------------------------------------------------------------ */

INLINE void forget(M *m, G *gp) {
    if (gp->flags & GF_CREDIT) stack_credit_give(m);
    bump(&m->p->n.ended, 1);
    g_free(m, gp);
}

static void drop_stack(M *m, Stack *s, bool lost) {
    if (unlikely(split.mode != SPLIT_OFF)) split_release(m, s);
    if (s->custom == STACK_SLAB) {
        stack_put(m, s);
    } else if (s->custom == STACK_COMPACT) {
        compact_put(m, s);
        compact_credit_give();
    } else if (s->custom == STACK_BODY) {
        body_release(s, lost);
    } else {
        stack_custom_free(s);
    }
}

/* What a goroutine did is over for whoever goes on: to be there for a moment says so to TSan. */
void tsan_visit(void *fiber) {
    void *here = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber, 0);
    __tsan_switch_to_fiber(here, 0);
}
static void tsan_over(void *fiber) {
    tsan_visit(fiber);
    /* pairs with stop (init.c): it comes before what the program does after gort_main */
    __tsan_release(&sched);
    __tsan_destroy_fiber(fiber);
}

/* After the stack was left: gives it back, and the record. */
static void bury(M *m, void *arg) {
    G *gp = arg;
    Stack *s = gp->stack;
    gp->stack = NULL;
    TSAN_TELL(tsan_over, s->san_fiber);
    forget(m, gp);
    drop_stack(m, s, false);
}

/* The runtime has ended and gp with it. */
void go_abandon(M *m, G *gp) {
    Stack *s = gp->stack;
    if (gp->odd & ODD_USES) upstairs.use_ends(gp); /* one that was left behind in a call */
    store_rlx(&gp->status, G_DEAD);
    /* the next goroutine of this record is not the one that was left behind there (init.c) */
    store_rel(&gp->m, NULL);
    gp->stack = NULL;
    gp->lock_depth = 0;
    gp->odd = 0;
    if (gp->flags & GF_CREDIT) stack_credit_give(m);
    if (gp->flags & GF_PARCEL) parcel_free(m, gp->arg);
    if (s) {
        if (s->values) values_lost(s->values);
        s->values = NULL;
        s->settled = 0;
        if (tsan_on()) tsan_over(s->san_fiber);
        drop_stack(m, s, true);
    } else if (gp->flags & GF_COMPACT) {
        compact_credit_give();
    }
    g_free(m, gp);
}

/* next has not run, may run anywhere, and needs a stack of the kind gp has. */
INLINE bool may_follow(const G *gp, const G *next) {
    return next->sp == NULL && next->home == NULL && ((next->flags ^ gp->flags) & GF_COMPACT) == 0;
}

/* The next goroutine takes the stack of the one that has ended. False: it cannot. */
INLINE bool take_over(M *m, G *gp) {
    P *p = m->p;
    if (san_on()) return false;
    /* GF_NAMED: among them are all stacks of a size of their own */
    if (unlikely((obstacles(m, p) | (gp->flags & GF_NAMED)) != 0)) return false;
    check(gp->stack->custom != STACK_CUSTOM);
    G *next = pick_own(m, p, gp, may_follow);
    if (next == NULL) return false;
    next->stack = gp->stack;
    gp->stack = NULL;
    if (unlikely(split.mode != SPLIT_OFF)) {
        split_release(m, next->stack);                     /* left by gort_exit or a longjmp */
        if (gp->flags & GF_COMPACT) compact_credit_give(); /* next has one of its own */
    }
    /* it has a stack: not NULL; the true value comes with a switch */
    next->sp = (void *)next->stack;
    now_runs(m, p, next);
    trace_start_direct(m, next);
    return true;
}

NORETURN void ends_in_child(void) {
    child_ends("a goroutine ends in a child, where there is no other: call _exit");
}

/* Something stands against its end, or is to be done first. */
static NOINLINE void before_the_end(M *m, const char *how) {
    /* its P may have been taken just before, which looks like a blocking call */
    if (in_forked_child()) ends_in_child();
    const char *why = unfinished(m);
    /* the next goroutine on this thread would have to answer for it */
    if (why) fatal("%s %s", how, why);
    if (m->curg->odd & ODD_USES) upstairs.use_ends(m->curg);
}

NORETURN void exit_hook_jumped(void) {
    fatal("longjmp out of a function of gort_once_do, gort_blocking or a hooked pthread_once: it "
          "has to return, throw or call gort_exit");
}

void exit_hooks_unwound(G *gp) {
    for (ExitHook *h; (h = gp->spare) != NULL && h->fn == NULL;) {
        M *m = enter();
        exit_hook_alive(gp, h);
        exit_hook_pop(gp, h);
        if (h->abandon) h->abandon(h);
        leave(m);
    }
}

INLINE void mark_dead(M *m, G *gp) {
    trace_end(m, gp);
    store_rlx(&gp->status, G_DEAD);
    /* 0 < 1: not locked, and in no child (fork.c) */
    if (likely(gp->lock_depth < process.same)) return;
    if (in_forked_child()) ends_in_child();
    if (gp->lock_depth == 0) return;
    m->dying = true; /* it ends with its thread locked: the thread goes with it */
    store_rlx(&m->lockedg, NULL);
    m->detour = NULL;
    gp->lock_depth = 0;
    gp->home = NULL;
}

/* Ends the current goroutine at the bottom of its stack. Returns where another took the stack. */
static M *end_or_go_on(void) {
    M *m = enter();
    G *gp = m->curg;
    if (unlikely(((m->locks ^ 1) | gp->odd) != 0)) before_the_end(m, "a goroutine returned");
    if (unlikely(gp->spare != NULL)) exit_hook_jumped();
    mark_dead(m, gp);
    if (!m->dying && take_over(m, gp)) {
        arch_fp_default(); /* as behind a switch: what gp set ends with it */
        forget(m, gp);
        return m;
    }
    leave_for_good(m, bury, gp);
}

__attribute__((hot)) /* it never returns, which compilers take for a sign of the opposite */
void goroutine_entry(void *arg) {
    char copy[(PARCEL + 15) & ~(size_t)15] ALIGNED(16);
    M *m = getm();
    finish_switch(m);
    for (;;) {
        G *gp = m->curg;
        guard_restore(gp);
        *m->errno_at = 0;
        if (gp->flags & GF_PARCEL) {
            void *parcel = gp->arg;
            memcpy(copy, parcel, PARCEL);
            gp->arg = copy;
            gp->flags &= (uint8_t)~GF_PARCEL;
            parcel_free(m, parcel);
        }
        tsan_acquire(gp);
        leave(m);
        gp->fn(gp->arg);
        values_over(gp);
        m = end_or_go_on();
    }
}

NOINLINE void goroutine_goes_on(void) {
    M *m = getm();
    finish_switch(m);
    guard_restore(m->curg);
    *__errno_location() = 0;
    leave(m);
}

/* As goroutine_entry, for one life. */
void goroutine_with_body(void) {
    goroutine_goes_on();
    G *gp = getm()->curg;
    gp->fn(gp->arg);
}

/* Returns when libc is to end the thread, on a kernel thread that is none of ours. */
void end_with_body(void **save) {
    M *m = enter();
    G *gp = m->curg;
    if (unlikely(((m->locks ^ 1) | gp->odd) != 0)) before_the_end(m, "a goroutine returned");
    if (unlikely(gp->spare != NULL)) exit_hook_jumped();
    mark_dead(m, gp);
    m->commit = bury;
    m->commit_arg = gp;
    m->curg = NULL;
    arch_switch(save, m->g0sp);
}

EXPORT void gort_exit(void) {
    M *m = enter();
    G *gp = m->curg;
    if (gp->flags & GF_THREAD) fatal("gort_exit outside a goroutine");
    before_the_end(m, "gort_exit");
    leave(m);
    values_over(gp);
    exit_hooks_run(gp);
    if (has_body(gp)) body_exit(gp);
    m = enter();
    if (in_catch(m)) *m->handling = (Handling){0}; /* its catch block has no end any more */
    if (m->curg->id == 1) store_rlx(&sched.main_exited, 1);
    mark_dead(m, m->curg);
    leave_for_good(m, bury, m->curg);
}

/* ---- begin ---------------------------------------------------------------------------------- */

/* A stack right away: for a name, a copy, or a size of its own. Outside the caches: may map. */
static Stack *early_stack(M *m, const gort_attr *attr, G *gp) {
    size_t size = attr ? attr->stack_size : 0;
    if (gp->flags & GF_COMPACT) return compact_credit_take() ? compact_get(m) : NULL;
    if (size == 0 && settings.stack_size == 0 && m->p) {
        if (!stack_credit_take(m)) return NULL;
        gp->flags |= GF_CREDIT;
        return stack_get_with_room(m);
    }
    if (size == 0) size = settings.stack_size ? settings.stack_size : STACK_USABLE;
    if (size < MIN_STACK) size = MIN_STACK;
    return stack_custom(size);
}

static int equip(M *m, G *gp, const gort_attr *attr, const void *copy, size_t size) {
    Stack *s = early_stack(m, attr, gp);
    if (s == NULL) return -ENOMEM;
    stack_forget(s);
    gp->stack = s;
    gp->flags |= GF_NAMED; /* also: what lies above the first frame is in use */
    copy_name(s->name, sizeof s->name, attr && attr->name ? attr->name : "");
    char *top = stack_top(s);
    if (size > 0) {
        top -= (size + 63) & ~(size_t)63;
        valgrind_anew(top - ARCH_FIRST_FRAME, size + ARCH_FIRST_FRAME);
        memcpy(top, copy, size);
        gp->arg = top;
    }
    gp->sp = arch_first_frame(top, goroutine_entry, NULL);
    return 0;
}

/* The usual case: a stack is promised, and comes when gp first runs. */
INLINE int promise(M *m, G *gp, const void *copy, size_t size) {
    if (likely(!(gp->flags & GF_COMPACT))) {
        if (unlikely(!stack_credit_take(m))) return -ENOMEM;
        gp->flags = GF_CREDIT;
    } else if (unlikely(!compact_credit_take())) {
        return -ENOMEM;
    }
    if (size == 0) return 0;
    void *parcel = parcel_alloc(m);
    if (unlikely(parcel == NULL)) {
        if (gp->flags & GF_CREDIT) stack_credit_give(m);
        else compact_credit_give();
        return -ENOMEM;
    }
    memcpy(parcel, copy, size);
    gp->arg = parcel;
    gp->flags |= GF_PARCEL;
    return 0;
}

/* A copy takes its place on the stack, and a size of its own asks for a lazy one. */
static bool starts_compact(M *m, const gort_attr *attr, gort_fn *fn, const void *copy,
                           size_t size) {
    if (m->p == NULL || size > MAX_COMPACT_COPY || (attr && attr->stack_size) ||
        settings.stack_size)
        return false;
    return split_starts(fn, copy);
}

INLINE void fill_in(M *m, G *gp, gort_fn *fn, void *arg, uintptr_t pc) {
    gp->sp = NULL;
    gp->fn = fn;
    gp->arg = arg;
    gp->home = NULL;
    gp->stack = NULL;
    gp->spare = NULL;
    gp->param = NULL;
    gp->created_at = pc;
    gp->since = coarse_now();
}

/* gp has all it needs. */
static void go_begins(M *m, G *gp) {
    gp->id = g_next_id(m, m->p);
    gp->parent = m->curg ? (uint32_t)m->curg->id : 0;
    tsan_release(gp);
    count(m, created, 1);
    trace_create(m, gp);
    store_rel(&gp->status, G_WAITING);
    ready(m, gp);
}

int go_start(M *m, const gort_attr *attr, gort_fn *fn, void *arg, const void *copy, size_t size,
             uintptr_t pc) {
    if (unlikely(!load_acq(&sched.running))) /* in this section: init.c */
        return hint_no_runtime("gort_go");
    G *gp = g_alloc(m);
    if (unlikely(gp == NULL)) return -ENOMEM;
    fill_in(m, gp, fn, arg, pc);
    gp->flags = 0;
    if (unlikely(split.mode == SPLIT_TRUE) && starts_compact(m, attr, fn, copy, size))
        gp->flags = GF_COMPACT;
    bool early = attr != NULL || size > PARCEL || settings.stack_size != 0;
    int r = unlikely(early) ? equip(m, gp, attr, copy, size) : promise(m, gp, copy, size);
    if (unlikely(r < 0)) {
        g_free(m, gp);
        return r;
    }
    go_begins(m, gp);
    return 0;
}

/* The usual start, where all it takes is at hand. False: nothing was done. In a section. */
INLINE bool start_straight(M *m, gort_fn *fn, void *arg, uintptr_t pc) {
    P *p = m->p;
    if (unlikely(p == NULL)) return false;
    G *gp = p->gfree, *creator = m->curg;
    uintptr_t against =
        split.mode | settings.stack_size | load_rlx(&trace_on) | (load_rlx(&sched.running) ^ 1);
    if (unlikely(against != 0) || unlikely(gp == NULL) || unlikely(p->credits == 0) ||
        unlikely(creator == NULL))
        return false;
    p->gfree = gp->schedlink;
    p->ngfree--;
    p->credits--;
    fill_in(m, gp, fn, arg, pc);
    gp->flags = GF_CREDIT;
    uint64_t id = gp->id = g_next_id(m, p);
    gp->parent = (uint32_t)creator->id;
    tsan_release(gp);
    bump(&p->n.created, 1);
    PROBE2(create, id, fn);
    PROBE1(ready, id);
    store_rel(&gp->status, G_RUNNABLE);
    slot_taken(m, p, runnext_swap(p, gp));
    return true;
}

/* A goroutine on a body. In a section. */
int go_on_body(M *m, Stack *s, const char *name, gort_fn *fn, void *arg, uintptr_t pc) {
    G *gp = g_alloc(m);
    if (unlikely(gp == NULL)) return -ENOMEM;
    fill_in(m, gp, fn, arg, pc);
    gp->flags = GF_NAMED | GF_SOFT;
    gp->home = &body_home;
    gp->stack = s;
    gp->sp = body_context(s);
    copy_name(s->name, sizeof s->name, name ? name : "");
    go_begins(m, gp);
    return 0;
}

/* The body is made outside of the section. */
static int go_with_body(const gort_attr *attr, gort_fn *fn, void *arg, uintptr_t pc) {
    size_t size = attr->stack_size ? attr->stack_size : settings.stack_size;
    int error;
    if (size == 0) size = STACK_USABLE;
    if (!load_acq(&sched.running)) return -ENOTCONN; /* before one is made */
    Stack *s = body_take(size < MIN_STACK ? MIN_STACK : size, &error);
    if (s == NULL) return error;
    M *m = enter();
    int r = load_acq(&sched.running) ? go_on_body(m, s, attr->name, fn, arg, pc) : -ENOTCONN;
    leave(m);
    if (r < 0) body_untake(s);
    return r;
}

static int go_checked(const gort_attr *attr, gort_fn *fn, void *arg, const void *copy, size_t size,
                      uintptr_t pc) {
    if (in_forked_child()) return -ENOTCONN;
    if (fn == NULL) return -EINVAL;
    if (size > MAX_COPY) return -E2BIG;
    if (size > 0 && copy == NULL) return -EINVAL;
    if (attr && attr->stack_size > MAX_STACK) return -EINVAL;
    if (attr && attr->thread && copy == NULL) return go_with_body(attr, fn, arg, pc);
    M *m = enter();
    int r = go_start(m, attr, fn, arg, copy, size, pc);
    leave(m);
    return r;
}

EXPORT int gort_go(gort_fn *fn, void *arg) {
    if (unlikely(fn == NULL)) return in_forked_child() ? -ENOTCONN : -EINVAL;
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    M *m = enter_here();
    if (unlikely(m == NULL)) return -ENOTCONN;
    int r = 0;
    if (unlikely(!start_straight(m, fn, arg, pc))) r = go_start(m, NULL, fn, arg, NULL, 0, pc);
    leave(m);
    return r;
}

EXPORT int gort_go_with(const gort_attr *attr, gort_fn *fn, void *arg) {
    return go_checked(attr, fn, arg, NULL, 0, (uintptr_t)__builtin_return_address(0));
}

EXPORT int gort_go_copy(gort_fn *fn, const void *arg, size_t size) {
    return go_checked(NULL, fn, NULL, arg, size, (uintptr_t)__builtin_return_address(0));
}

/* ---- who am I ------------------------------------------------------------------------------- */

EXPORT uint64_t gort_id(void) {
    if (in_forked_child()) return 0;
    M *m = getm();
    return m && !m->plain && m->curg ? m->curg->id : 0;
}

EXPORT int gort_count(void) {
    if (in_forked_child()) return -ENOTCONN;
    if (!load_rlx(&sched.running)) return 0;
    /* Ends are read before beginnings, so that none is seen ended that is not seen begun. */
    uint64_t ended = load_acq(&sched.other.ended), created;
    for (uint32_t i = 0; i < MAX_PROCS && sched.ps[i]; i++)
        ended += load_acq(&sched.ps[i]->n.ended);
    created = load_acq(&sched.other.created);
    for (uint32_t i = 0; i < MAX_PROCS && sched.ps[i]; i++)
        created += load_acq(&sched.ps[i]->n.created);
    return (int)(created - ended);
}
