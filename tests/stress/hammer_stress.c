/*
 * Goroutines that compute, switch, share and sleep while the monitor takes their Ps away without
 * any hint (GORT_DEBUG=retake=hammer), sends signals, and the world is stopped now and then.
 * Every message is counted; a P in two hands trips an invariant in a checked build.
 *
 *   hammer_stress [seconds]
 */
#include "../lib/test.h"

#define PAIRS 8

static int stop;
static gort_mutex mutex;
static long guarded, inside;
static uint64_t sent[PAIRS], received[PAIRS];
static gort_chan *chans[PAIRS];

static void compute(void) {
    for (volatile int i = 0; i < 300; i++) continue;
}

static void sender(void *arg) {
    intptr_t i = (intptr_t)arg;
    while (!get(&stop)) {
        uint64_t v = sent[i] + 1;
        CHECK_EQ(gort_chan_send(chans[i], &v), 0);
        sent[i] = v;
        compute();
    }
    gort_chan_close(chans[i]);
}

static void receiver(void *arg) {
    intptr_t i = (intptr_t)arg;
    uint64_t v;
    while (gort_chan_recv(chans[i], &v) == 0) {
        CHECK_EQ(v, received[i] + 1);
        received[i] = v;
        gort_mutex_lock(&mutex);
        CHECK_EQ(inside, 0);
        inside = 1;
        /* under the hammer and TSan a thread without a P runs on in a stopped world to its next
         * call */
        gort_pin();
        __atomic_store_n(&guarded, guarded + 1, __ATOMIC_RELAXED);
        gort_unpin();
        compute();
        inside = 0;
        gort_mutex_unlock(&mutex);
    }
}

static void spawned(void *arg) { __atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_RELAXED); }

static void spawner(void *arg) {
    uint64_t started = 0, ended = 0;
    while (!get(&stop)) {
        for (int i = 0; i < 10; i++) {
            CHECK_EQ(gort_go(spawned, &ended), 0);
            started++;
        }
        compute();
        gort_yield();
    }
    while (__atomic_load_n(&ended, __ATOMIC_RELAXED) != started) gort_yield();
}

static void stopper(void *arg) {
    while (!get(&stop)) {
        gort_stop_world();
        long before = get(&guarded);
        compute();
        CHECK_EQ(get(&guarded), before);
        gort_start_world();
        gort_sleep(5 * GORT_MS);
    }
}

static int body(int argc, char **argv) {
    int64_t end = gort_now() + (argc > 1 ? atoi(argv[1]) : 5) * GORT_SEC;
    gort_wg wg = {0};
    for (intptr_t i = 0; i < PAIRS; i++) {
        chans[i] = gort_chan_new(sizeof(uint64_t), (size_t)i % 3);
        CHECK_EQ(gort_wg_go(&wg, sender, (void *)i), 0);
        CHECK_EQ(gort_wg_go(&wg, receiver, (void *)i), 0);
    }
    CHECK_EQ(gort_wg_go(&wg, spawner, NULL), 0);
    CHECK_EQ(gort_wg_go(&wg, stopper, NULL), 0);
    while (gort_now() < end) {
        compute();
        gort_yield();
    }
    set(&stop, 1);
    gort_wg_wait(&wg);
    uint64_t total = 0;
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(sent[i], received[i]);
        total += received[i];
        gort_chan_release(chans[i]);
    }
    CHECK_EQ((uint64_t)guarded, total);
    gort_stats s;
    gort_stats_read(&s);
    printf("%" PRIu64 " messages, %" PRIu64 " retakes, %" PRIu64 " preemptions, %" PRIu64
           " switches\n",
           total, s.retakes, s.preemptions, s.switches);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
