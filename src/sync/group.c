/*
 * Groups (errgroup): goroutines that work on one thing; the first failure cancels the rest.
 *
 * A group is a wait group for the end, a context for the cancellation, a semaphore for the limit. A
 * CAS from 0 keeps the first negative result, which becomes the context's cause. A member that ends
 * gives its result, then its place in the limit, then leaves the wait group, in this order: then
 * gort_group_wait() may free all.
 *
 * A function that calls gort_exit() has ended with 0 (goexit.h). A member whose runtime has ended,
 * perhaps before it ran, has failed with -ENOTCONN: the work was not done.
 *
 * A member that calls gort_group_go() of its own full group waits for another member to end. Once
 * all members wait so, none will: fatal. `waiting` counts them. There is no false alarm: every
 * counted member has its own place; while one has been given a second and does not yet know, at
 * most limit - 1 members are there to be counted.
 *
 * A group ends with gort_group_wait(). A call after that is fatal while the freed memory is still
 * as it was, like a use of a channel after its last release.
 */
#include "base/hint.h"
#include "sync/chan.h"
#include "sched/goexit.h"
#include "sync/sema.h"

#define GROUP_OVER (-1)
struct gort_group {
    gort_ctx *ctx;
    gort_wg wg;
    gort_sem places;
    int limit;       /* 0: none; GROUP_OVER: gort_group_wait() has freed it */
    int32_t waiting; /* atomic: members that wait for a place */
    int32_t result;  /* atomic: the first negative one */
};

typedef struct GroupMember {
    gort_group *group; /* NULL: it has left */
    int (*fn)(gort_ctx *, void *);
    void *arg;
    bool waits; /* counted in `waiting`; changed in a section */
} GroupMember;

EXPORT gort_group *gort_group_new(gort_ctx *parent, int limit) {
    if (in_forked_child()) return NULL;
    gort_group *g = quiet_alloc(sizeof *g);
    if (g == NULL) return NULL;
    *g = (gort_group){.ctx = gort_ctx_new(parent), .limit = limit > 0 ? limit : 0};
    if (g->ctx == NULL) {
        quiet_free(g);
        return NULL;
    }
    if (limit > 0) gort_sem_release(&g->places, limit);
    return g;
}

static void leave_group(gort_group *g) {
    if (g->limit > 0) gort_sem_release(&g->places, 1);
    gort_wg_done(&g->wg);
}

/* In one section, so that the end of a runtime finds a whole member or none. */
static void group_member_leaves(ExitHook *h) {
    GroupMember *me = h->object;
    gort_group *g = me->group;
    M *m = enter();
    exit_hook_pop(self(m), h);
    me->group = NULL;
    leave_group(g);
    leave(m);
}

static bool group_fails(gort_group *g, int result) {
    int32_t none = 0;
    return cas_acq_rel(&g->result, &none, result);
}

/* The work was not done: gort_group_wait() says so. */
void group_member_abandon(void *arg) {
    GroupMember *me = arg;
    gort_group *g = me->group;
    if (g == NULL) return;
    if (me->waits) sub_seq(&g->waiting, 1);
    if (group_fails(g, -ENOTCONN)) ctx_cancel_in_section(g->ctx, -ENOTCONN);
    leave_group(g);
}

void group_member_run(void *arg) {
    GroupMember *me = arg;
    gort_group *g = me->group;
    ExitHook hook = {.fn = group_member_leaves, .object = me};
    M *m = enter();
    exit_hook_push(self(m), &hook);
    leave(m);
    gort_ctx_use(g->ctx);
    int result = me->fn(g->ctx, me->arg);
    gort_ctx_use(NULL);
    values_over(current_g());
    /* INT32_MIN is no cause: it stands for a deadline (ctx.c) */
    if (result < 0 && group_fails(g, result))
        gort_ctx_cancel_cause(g->ctx, result == INT32_MIN ? -INT32_MAX : result);
    group_member_leaves(&hook);
}

/* gp's membership in g, if it is inside a function of g. */
static GroupMember *membership(G *gp, gort_group *g) {
    for (ExitHook *h = gp->spare; h; h = h->next) {
        exit_hook_alive(gp, h);
        if (h->fn == group_member_leaves && ((GroupMember *)h->object)->group == g)
            return h->object;
    }
    return NULL;
}

/* In a section of depth 1, which goes on. */
static NOINLINE M *wait_for_place(M *m, gort_group *g) {
    GroupMember *me = membership(self(m), g);
    int ended;
    if (me && add_seq(&g->waiting, 1) == g->limit)
        fatal("gort_group_go: all %d members of the group wait for a place in it (see "
              "gort_group_try_go)",
              g->limit);
    if (me) me->waits = true;
    m = sem_acquire_in_section(m, &g->places, 1, GORT_FOREVER, &ended);
    if (me) me->waits = false;
    if (me) sub_seq(&g->waiting, 1);
    return m;
}

static void check_group(const gort_group *g, const char *call) {
    if (unlikely(load_rlx(&g->limit) == GROUP_OVER))
        fatal("%s: group %p is used after gort_group_wait", call, (const void *)g);
}

/* The caller has taken a place, in the section that ends here. */
static int start_member(M *m, gort_group *g, int (*fn)(gort_ctx *, void *), void *arg,
                        uintptr_t pc) {
    GroupMember me = {.group = g, .fn = fn, .arg = arg};
    gort_wg_add(&g->wg, 1);
    int r = go_start(m, NULL, group_member_run, NULL, &me, sizeof me, pc);
    if (r < 0) leave_group(g);
    leave(m);
    return r;
}

EXPORT int gort_group_go(gort_group *g, int (*fn)(gort_ctx *, void *), void *arg) {
    if (fn == NULL) return -EINVAL;
    if (!runtime_running()) return hint_no_runtime("gort_group_go");
    check_group(g, "gort_group_go");
    M *m = enter();
    if (g->limit > 0 && gort_sem_try_acquire(&g->places, 1) < 0) m = wait_for_place(m, g);
    return start_member(m, g, fn, arg, (uintptr_t)__builtin_return_address(0));
}

EXPORT int gort_group_try_go(gort_group *g, int (*fn)(gort_ctx *, void *), void *arg) {
    if (fn == NULL) return -EINVAL;
    if (!runtime_running()) return -ENOTCONN;
    check_group(g, "gort_group_try_go");
    M *m = enter();
    if (g->limit <= 0 || gort_sem_try_acquire(&g->places, 1) == 0)
        return start_member(m, g, fn, arg, (uintptr_t)__builtin_return_address(0));
    leave(m);
    return -EAGAIN;
}

EXPORT int gort_group_wait(gort_group *g) {
    if (in_forked_child()) return -ENOTCONN;
    check_group(g, "gort_group_wait");
    gort_wg_wait(&g->wg);
    int result = load_acq(&g->result);
    gort_ctx_release(g->ctx);
    store_rlx(&g->limit, GROUP_OVER);
    quiet_free(g);
    return result;
}
