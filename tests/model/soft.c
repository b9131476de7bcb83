/*
 * A goroutine is sent home (src/sched/preferred.c) while its home goes to sleep in the poller
 * (src/sched/find.c): the home sees it on its list, or is broken off.
 */
enum { MS = 2, PS = 1, GS = 1 };
#define MODEL_SOFT 1
#include "whole.h"
#undef PATIENCE
#include <sched/preferred.c>

static uint32_t broken_off, asleep;
static bool is_broken_off(void *arg) { return broken_off != 0; }
void netpoll(int64_t deadline, GList *list) {
    store_rlx(&asleep, 1);
    mc_looks_at(&broken_off);
    mc_wait(is_broken_off, NULL);
    store_rlx(&asleep, 0);
}
void netpoll_break(void) { xchg_seq(&broken_off, 1); }
char os_thread_state(int tid) { return 'R'; }
int os_tgkill(int tid, int signo) { return 0; }

static void goes_to_sleep(void) {
    G *gp = NULL;
    wait_in_poller(getm(), &gp);
}
static void sends(void) { soft_send(getm(), &gs[0]); }

static void model_reset(void) {
    whole_reset();
    add_g(0, NULL);
    gs[0].flags |= GF_SOFT;
    gs[0].home = &ms[0];
    sched.poll_waiters = 1;
    broken_off = asleep = 0;
    ms[1].p = &all_ps[0];
    all_ps[0].m = &ms[1];
    mc_spawn(goes_to_sleep);
    mc_threads[0].daemon = true;
    mc_spawn(sends);
    mc_watch(&ms[0].soft.head);
}
static void model_end(void) { MUST(!asleep && ms[0].soft.count == 1); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(whole_hash(h), broken_off), asleep), sched.soft_waiting);
    return MIX(h, ms[0].soft);
}
int main(void) { return model_main("sent home"); }
