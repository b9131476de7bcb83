/*
 * A goroutine that waits for a lock of libc's (src/hook/queue.c): it queues, tries a last time and sleeps; who releases by libc's function looks at the queue
 * afterwards (src/hook/inside.h). The lock is free and somebody sleeps: never. libc's release is a read-modify-write.
 */
#include "model.h"

#include "runtime.h"
#include "hook/inside.h"
#define here() ((M *)NULL)
#include <hook/queue.c>

static M m;
static G g;
static uint32_t held;
static Sleeper w;
static int got;

static M *enters(void) { return &m; }
static void leaves(M *by) {}
static void locks(Lock *l) { lock(l, RANK_PRIM); }
static void unlocks(Lock *l) { unlock(l); }
static uint32_t life(void) { return 1; }
static void makes_ready(M *by, G *gp) {}
static const bool forked;
static const HookCore the_core = {.forked = &forked, .life = life, .enter = enters, .leave = leaves, .lock = locks, .unlock = unlocks, .ready = makes_ready};
const HookCore *core = &the_core;

static void tries_last(void) {
    uint32_t none = 0;
    sleeper_queue(&w, &held, EVERY_BIT);
    got = cas_acq(&held, &none, 1);
}
static void releases(void) {
    xchg_rel(&held, 0);
    released(&held, false);
}

static void model_reset(void) {
    memset(bucket_of(&held), 0, sizeof(Bucket));
    memset(&w, 0, sizeof w);
    m = (M){.curg = &g};
    held = 1;
    got = 0;
    mc_spawn(tries_last);
    mc_spawn(releases);
}
static void model_end(void) { MUST(got || w.hit); }
static uint64_t model_hash(uint64_t h) { return mix(mix(MIX(MIX(h, w), *bucket_of(&held)), held), (uint64_t)got); }
int main(void) { return model_main("a lock of libc's"); }
