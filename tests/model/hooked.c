/*
 * A goroutine that waits for a lock of libc's (src/hook/queue.c): it queues, tries a last time and sleeps; who releases by libc's function looks at the queue
 * afterwards (src/hook/inside.h). The lock is free and somebody sleeps: never. libc's release is a read-modify-write.
 *
 * And one that waits for a futex (src/hook/futex.c): it queues, reads the word and sleeps; who has changed the word, by a plain store, makes the system call.
 */
#include "model.h"

#include "runtime.h"
#include "hook/inside.h"
#define here() ((M *)NULL)
#include <hook/queue.c>
#define private is_private
#undef libc
#define libc(name) libc_##name
#define hook_syscall syscall_of_libc
static long libc_syscall(long number, ...) { return 0; }
#include <hook/futex.c>

static M m;
static G g;
static uint32_t held;
static Sleeper w;
static int got;
static uint32_t word ALIGNED(CACHE_LINE), other ALIGNED(CACHE_LINE);

static M *enters(void) { return &m; }
static void leaves(M *by) {}
static void locks(Lock *l) { lock(l, RANK_PRIM); }
static void unlocks(Lock *l) { unlock(l); }
static uint32_t life(void) { return 1; }
long failed(long r) { wrong("a call that fails"); }
int64_t gort_now(void) { return 0; }
static uint32_t woken;
static bool is_woken(void *arg) { return woken != 0; }
static void makes_ready(M *by, G *gp) { xchg_seq(&woken, 1); }
static M *parks(M *by, Lock *l, int reason, int64_t deadline, uint32_t ticket, bool *timed_out) {
    unlock(l);
    mc_looks_at(&woken);
    mc_wait(is_woken, NULL);
    return by;
}
static const bool forked;
static const HookCore the_core = {.forked = &forked, .life = life, .enter = enters, .leave = leaves, .lock = locks, .unlock = unlocks, .ready = makes_ready, .park_until = parks};
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


static void waits_for_word(void) { got = park_at(&(Futex){.word = &word, .op = FUTEX_WAIT_PRIVATE}, GORT_FOREVER) <= 0; }
static void changes_word(void) {
    store_rlx(&word, 1);
    futex(&(Futex){.word = &word, .op = FUTEX_WAKE_PRIVATE, .value = 1});
}
static void changes_word_and_requeues(void) {
    store_rlx(&word, 1);
    futex(&(Futex){.word = &word, .op = FUTEX_REQUEUE_PRIVATE, .value = 1, .word2 = (long)&other});
}

static const struct Scene {
    const char *name;
    void (*waits)(void), (*wakes)(void);
} scenes[] = {
    {"a lock of libc's", tries_last, releases},
    {"a futex", waits_for_word, changes_word},
    {"a futex, and its waiters are sent to another", waits_for_word, changes_word_and_requeues},
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(buckets, 0, sizeof buckets);
    memset(&w, 0, sizeof w);
    m = (M){.curg = &g};
    g = (G){0};
    held = 1;
    got = word = woken = 0;
    mc_spawn(scene->waits);
    mc_spawn(scene->wakes);
}
static void model_end(void) { MUST(got || w.hit); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(MIX(MIX(h, w), *bucket_of(&held)), held), (uint64_t)got);
    return mix(mix(mix(MIX(h, *bucket_of(queue_of(&word))), word), woken), g.ticket);
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
