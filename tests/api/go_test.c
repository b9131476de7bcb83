/* gort_main, gort_go, ids and counts: every goroutine runs exactly once, and none outlives main. */
#include "../lib/test.h"
#include <pthread.h>
#include <unistd.h>

enum { MANY = 10000 };
static int ran[MANY];
static uint64_t ids[MANY];
static int total;
static uint64_t spins;

static void mark(void *arg) {
    int *slot = arg;
    add(slot, 1);
    set(&ids[slot - ran], gort_id());
    add(&total, 1);
}

static void wait_for(void *arg) { gort_chan_recv(arg, NULL); }

static void forever(void *arg) {
    add((int *)arg, 1);
    for (;;) __atomic_add_fetch(&spins, 1, __ATOMIC_RELAXED); /* no call at all */
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void each_runs_once_with_its_own_id(void) {
    for (int i = 0; i < MANY; i++) CHECK_EQ(gort_go(mark, &ran[i]), 0);
    wait_until(get(&total) == MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(ran[i], 1);
    qsort(ids, MANY, sizeof ids[0], by_value);
    CHECK(ids[0] > 1);
    for (int i = 1; i < MANY; i++) CHECK(ids[i] > ids[i - 1]);
}

static void count_follows(void) {
    gort_chan *c = gort_chan_new(0, 0);
    wait_until(gort_count() == 1);
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_go(wait_for, c), 0);
    CHECK_EQ(gort_count(), 101); /* they exist from the call on */
    gort_chan_close(c);
    wait_until(gort_count() == 1);
    gort_chan_release(c);
}

static int other(int argc, char **argv) { return 0; }

static void *from_plain_thread(void *arg) {
    CHECK_EQ(gort_id(), 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_go(mark, &ran[i]), 0);
    CHECK_EQ(gort_main(other, 0, NULL), -EBUSY);
    return NULL;
}

static long join(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }

static void plain_threads_may_start_them(void) {
    pthread_t t;
    set(&total, 0);
    CHECK_EQ(pthread_create(&t, NULL, from_plain_thread, NULL), 0);
    CHECK_EQ(gort_blocking(join, &t), 0);
    wait_until(get(&total) == 100);
    for (int i = 0; i < 100; i++) CHECK_EQ(ran[i], 2);
}

static int body(int argc, char **argv) {
    static int spinning;
    CHECK_EQ(argc, 2);
    CHECK_STR(argv[1], "two");
    CHECK_EQ(gort_id(), 1);
    CHECK_EQ(gort_count(), 1);
    CHECK_EQ(gort_go(NULL, NULL), -EINVAL);
    CHECK_EQ(gort_go_with(&(gort_attr){0}, NULL, NULL), -EINVAL);
    CHECK_EQ(gort_main(other, 0, NULL), -EBUSY);
    each_runs_once_with_its_own_id();
    count_follows();
    plain_threads_may_start_them();
    set(&total, 0);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "a name longer than thirty-one bytes, which is cut"},
                          mark, ran),
             0);
    CHECK_EQ(gort_go_with(&(gort_attr){0}, mark, ran), 0);
    wait_until(get(&total) == 2);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_go(forever, &spinning), 0);
    wait_until(get(&spinning) > 0);
    return 42;
}

int main(void) {
    char *argv[] = {"one", "two", NULL};
    CHECK_EQ(gort_id(), 0);
    CHECK_EQ(gort_main(body, 2, argv), 42);
    /* "no other goroutine runs any further, also one that loops without a call" */
    uint64_t before = get(&spins);
    usleep(30000);
    CHECK_EQ(get(&spins), before);
    CHECK_EQ(gort_count(), 0);
    return 0;
}
