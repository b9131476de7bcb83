/*
 * A goroutine that waits for a lock of libc's (src/hook/waitqueue.c): it queues, tries a last time
 * and sleeps; who releases by libc's function looks at the queue afterwards
 * (src/hook/hook_internal.h). The lock is free and somebody sleeps: never. libc's release is a
 * read-modify-write.
 *
 * And one that waits for a futex (src/hook/futex.c): it queues, reads the word and sleeps; who has
 * changed the word, by a plain store, makes the system call.
 *
 * And who releases in a signal handler that has interrupted the runtime: it may take no lock, and
 * leaves the wake-up to the monitor (owed, and what sysmon_ask does: tests/model/idle.c). While the
 * handler runs its thread may hold the bucket's lock.
 *
 * And a bucket of two addresses: somebody is woken at the other one, then nobody is found there,
 * and the bit of those that have left is taken away.
 */
#include "model.h"

#include "runtime.h"
#include "hook/hook_internal.h"
#define here() ((M *)NULL)
#define maybe_here() ((M *)NULL)
#include <hook/waitqueue.c>
#undef libc
#define libc(name) libc_##name
#define hook_syscall syscall_of_libc
static long libc_syscall(long number, ...) { return 0; }
#include <hook/futex.c>

static M m;
static G g;
static uint32_t held;
static WaitEntry w, neighbour;
static int got;
static uint32_t word ALIGNED(CACHE_LINE), other ALIGNED(CACHE_LINE);

static M *enters(void) { return &m; }
static void leaves(M *by) {}
static void locks(Lock *l) { lock(l, RANK_PRIM); }
static void unlocks(Lock *l) { unlock(l); }
static uint32_t life(void) { return 1; }
long errno_failed(long r) { wrong("a call that fails"); }
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
static bool no_child(void) { return false; }
static bool in_section; /* the handler has interrupted one */
static M *enters_anywhere(void) { return in_section ? NULL : &m; }
static uint32_t asked;
static bool is_asked(void *arg) { return asked != 0; }
static void owes(void) { xchg_seq(&asked, 1); }
static const HookCore the_core = {
    .in_child = no_child,
    .life = life,
    .enter = enters,
    .leave = leaves,
    .enter_anywhere = enters_anywhere,
    .leave_anywhere = leaves,
    .owe = owes,
    .lock = locks,
    .unlock = unlocks,
    .ready = makes_ready,
    .park_until = parks,
};
const HookCore *core = &the_core;
Known known = {.tls = NO_TLS};
Real real;
M *runner_at_point(long at, bool may_switch) { return NULL; }
Threads threads; /* no thread is a goroutine */
bool thread_syscall(long number, long a, long b, long c, long *r) { return false; }

static void tries_last(void) {
    uint32_t none = 0;
    waitq_join(&w, &held, EVERY_BIT);
    got = cas_acq(&held, &none, 1);
}
static void releases(void) {
    xchg_rel(&held, 0);
    released(&held, false);
}
static void walks_for_another(void) {
    const void *another = (const void *)((uintptr_t)&held + sizeof(void *) * WAITQ_BUCKETS);
    waitq_join(&neighbour, another, EVERY_BIT);
    for (int i = 0; i < 2; i++) waitq_wake(another, false);
}

/* One after the other: it waits by itself now and then (waitq_acquire), so its deadline is far away
 * here. */
static void waits_for_post(void) {
    tries_last();
    if (got) waitq_leave(&w);
    else got = waitq_wait(&w, WAIT_SEMA, GORT_FOREVER);
}
static void posts(void) { /* as sem_post */
    xchg_rel(&held, 0);
    if (has_waiters(&held)) waitq_wake_anywhere(&held, 1, EVERY_BIT);
}
/* In the middle of a section that holds the lock of that bucket. */
static void is_interrupted(void) {
    lock(&waitq_bucket(&held)->lock, RANK_PRIM);
    posts();
    unlock(&waitq_bucket(&held)->lock);
}
static void monitors(void) {
    for (;;) {
        mc_looks_at(&asked);
        mc_wait(is_asked, NULL);
        xchg_seq(&asked, 0);
        waitq_pay(&m);
    }
}

static void waits_for_word(void) {
    got = futex_park(&(Futex){.word = &word, .op = FUTEX_WAIT_PRIVATE}, GORT_FOREVER) <= 0;
}
static void changes_word(void) {
    store_rlx(&word, 1);
    futex(&(Futex){.word = &word, .op = FUTEX_WAKE_PRIVATE, .value = 1});
}
static void waits_twice(void) {
    for (long i = 0; i < 2; i++)
        got = futex_park(&(Futex){.word = &word, .op = FUTEX_WAIT_PRIVATE, .value = i},
                         GORT_FOREVER) <= 0;
}
static void changes_word_twice(void) {
    for (uint32_t i = 1; i <= 2; i++) {
        store_rlx(&word, i);
        futex(&(Futex){.word = &word, .op = FUTEX_WAKE_PRIVATE, .value = 1});
    }
}
static void changes_word_and_requeues(void) {
    store_rlx(&word, 1);
    futex(&(Futex){.word = &word, .op = FUTEX_REQUEUE_PRIVATE, .value = 1, .word2 = (long)&other});
}

static const struct Scene {
    const char *name;
    void (*waits)(void), (*wakes)(void);
    void (*third)(void); /* monitors: a handler wakes, which has interrupted a section */
} scenes[] = {
    {"a lock of libc's", tries_last, releases, NULL},
    {"a lock of libc's, beside a walk", tries_last, releases, walks_for_another},
    {"a futex", waits_for_word, changes_word, NULL},
    {"a futex, and its waiters are sent to another", waits_for_word, changes_word_and_requeues,
     NULL},
    {"a post in a handler", waits_for_post, posts, NULL},
    {"a post in a handler that has interrupted a section", waits_for_post, is_interrupted,
     monitors},
    {"a futex, woken by a handler that has interrupted a section", waits_for_word, changes_word,
     monitors},
    {"likewise, twice", waits_twice, changes_word_twice, monitors},
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(waitq_table, 0, sizeof waitq_table);
    memset(&w, 0, sizeof w);
    memset(&neighbour, 0, sizeof neighbour);
    m = (M){.curg = &g};
    g = (G){0};
    held = 1;
    got = word = woken = asked = 0;
    in_section = scene->third == monitors;
    mc_spawn(scene->waits);
    mc_spawn(scene->wakes);
    if (scene->third == NULL) return;
    mc_spawn(scene->third);
    mc_threads[2].daemon = in_section;
}
static void model_end(void) { MUST(got || w.hit); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(MIX(MIX(MIX(h, w), neighbour), *waitq_bucket(&held)), held), (uint64_t)got);
    return mix(mix(mix(MIX(h, *waitq_bucket(futex_queue(&word))), word), woken),
               mix(g.ticket, asked));
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
