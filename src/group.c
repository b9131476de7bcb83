/*
 * Groups: errgroup. Goroutines that work on one thing, of which the first failure cancels the rest.
 *
 * Made of the rooms below: a wait group for the end, a context for the cancellation, a semaphore
 * for the limit. The first negative result is kept by a CAS from 0. The order at the end of a
 * function matters: result, then the place in the limit, then the wait group; after the last
 * one gort_group_wait() may free everything, so nothing is touched any more.
 *
 * A function that calls gort_exit() has ended, with 0 (exit_hook.h).
 *
 * A member that calls gort_group_go() of its own full group waits for another member to end. Once all of them wait
 * there, none will: that is fatal, whatever else the program does. `waiting` counts the members that
 * wait. Each of them has a place, and so has whoever was given one and does not yet know: so while one
 * of those that are counted has been given a place, at most limit - 1 members are there to be counted.
 */
#include "chan.h"
#include "exit_hook.h"
#include "sema.h"

struct gort_group {
    gort_ctx *ctx;
    gort_wg wg;
    gort_sem places;
    int limit;       /* <= 0: none */
    int32_t waiting; /* atomic: members that wait for a place */
    int32_t result; /* atomic: the first negative one */
};

typedef struct Member {
    gort_group *group;
    int (*fn)(gort_ctx *, void *);
    void *arg;
} Member;

EXPORT gort_group *gort_group_new(gort_ctx *parent, int limit) {
    if (in_forked_child()) return NULL;
    gort_group *g = quiet_alloc(sizeof *g);
    if (g == NULL) return NULL;
    *g = (gort_group){0};
    g->ctx = gort_ctx_new(parent);
    if (g->ctx == NULL) {
        quiet_free(g);
        return NULL;
    }
    g->limit = limit;
    if (limit > 0) gort_sem_release(&g->places, limit);
    return g;
}

static void leave_group(gort_group *g) {
    if (g->limit > 0) gort_sem_release(&g->places, 1);
    gort_wg_done(&g->wg);
}

static void exited(void *arg) { leave_group(arg); }

static void failed(gort_group *g, int result) {
    int32_t none = 0;
    if (cas_acq_rel(&g->result, &none, result)) gort_ctx_cancel(g->ctx);
}

/* A goroutine's function; arg is its own copy. */
void group_member_run(void *arg) {
    Member *me = arg;
    gort_group *g = me->group;
    ExitHook hook = {.fn = exited, .arg = g};
    exit_hook_push(current(), &hook);
    int result = me->fn(g->ctx, me->arg);
    values_over(current());
    exit_hook_pop(current(), &hook);
    if (result < 0) failed(g, result);
    leave_group(g);
}

static NOINLINE void wait_for_place(gort_group *g) {
    bool member = exit_hook_has(current(), exited, g); /* inside a function of this group */
    if (member && add_seq(&g->waiting, 1) == g->limit)
        fatal("gort_group_go: all %d members of the group wait for a place in it (see gort_group_try_go)", g->limit);
    gort_sem_acquire(&g->places, 1);
    if (member) sub_seq(&g->waiting, 1);
}

/* The caller has taken a place. */
static int start_member(gort_group *g, int (*fn)(gort_ctx *, void *), void *arg, uintptr_t pc) {
    Member me = {g, fn, arg};
    gort_wg_add(&g->wg, 1);
    M *m = enter();
    int r = go_start(m, NULL, group_member_run, NULL, &me, sizeof me, pc);
    leave(m);
    if (r < 0) leave_group(g);
    return r;
}

EXPORT int gort_group_go(gort_group *g, int (*fn)(gort_ctx *, void *), void *arg) {
    if (!runtime_running()) return -ENOTCONN;
    if (fn == NULL) return -EINVAL;
    if (g->limit > 0 && gort_sem_try_acquire(&g->places, 1) < 0) wait_for_place(g);
    return start_member(g, fn, arg, (uintptr_t)__builtin_return_address(0));
}

EXPORT int gort_group_try_go(gort_group *g, int (*fn)(gort_ctx *, void *), void *arg) {
    if (!runtime_running()) return -ENOTCONN;
    if (fn == NULL) return -EINVAL;
    if (g->limit > 0 && gort_sem_try_acquire(&g->places, 1) < 0) return -EAGAIN;
    return start_member(g, fn, arg, (uintptr_t)__builtin_return_address(0));
}

EXPORT int gort_group_wait(gort_group *g) {
    if (in_forked_child()) return -ENOTCONN;
    gort_wg_wait(&g->wg);
    int result = load_acq(&g->result);
    gort_ctx_release(g->ctx);
    quiet_free(g);
    return result;
}
