/* What the floors below call up here (base/upstairs.h): entries of sched, sync, gc and the hook. */
#include "api/hookcalls.h"
#include "base/upstairs.h"
#include "gc/boehm.h"
#include "sched/goexit.h"
#include "sched/preempt.h"
#include "sync/chan.h"
#include "sync/clock.h"
#include "sync/houselock.h"
#include "sync/sema.h"

static void unwound(G *gp) {
    exit_hooks_unwound(gp);
    ExitHook *h = gp->spare;
    exit_hook_alive(gp, h);
    h->fn(h);
}

static void undo_wait_of(G *gp) {
    if (chan_waits(gp)) chan_abandon(gp);
    else sleeper_abandon(gp);
}

static void forget_threads(void) {
    house_in_child();
    clock_in_child();
}

__attribute__((constructor(101))) static void api_floor(void) {
    upstairs.unwound = unwound;
    upstairs.in_prologue = preempt_in_prologue;
    upstairs.wg_member = wg_member_run;
    upstairs.group_member = group_member_run;
    upstairs.clock_armed = clock_armed;
    upstairs.use_ends = ctx_use_ends;
    upstairs.fork_child = forget_threads;
    upstairs.undo_wait = undo_wait_of;
    upstairs.forked = hook_forked;
    upstairs.collect_alloc = collect_alloc;
    upstairs.collect_free = collect_free;
    upstairs.collect_threads = collect_threads;
    upstairs.collect_thread_begin = collect_thread_begin;
    upstairs.collect_thread_end = collect_thread_end;
    monitor_serves(&collect_client);
}
