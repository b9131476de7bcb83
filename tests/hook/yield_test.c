/*
 * sched_yield gives way to other goroutines: two that wait for each other by looking and yielding
 * play, on one P too, without a slice for each look. And to threads: one that waits for a thread in
 * that way does not keep it from a processor. What it has in the thread's variables stays true.
 */
#include "hook.h"
#include <sched.h>
#include <threads.h>

enum { ROUNDS = 3000 };
static int ball, ended, flag, answer;
static __thread int mine;

static void play(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        while (get(&ball) != me) {
            mine = 1 + me;
            if (i % 2) CHECK_EQ(sched_yield(), 0);
            else thrd_yield();
            CHECK_NE(mine, 0);
        }
        set(&ball, !me);
    }
    add(&ended, 1);
}

static uint64_t preemptions(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.preemptions;
}

static void *thread(void *arg) {
    for (int i = 1; i <= 200; i++) {
        while (get(&flag) != i) sched_yield();
        set(&answer, i);
    }
    return NULL;
}

static int run(int argc, char **argv) {
    pthread_t t;
    uint64_t before = preemptions();
    for (intptr_t i = 0; i < 2; i++) CHECK_EQ(gort_go(play, (void *)i), 0);
    wait_until(get(&ended) == 2);
    CHECK_LT(preemptions() - before, ROUNDS / 4);
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    errno = 77;
    for (int i = 1; i <= 200; i++) {
        set(&flag, i);
        while (get(&answer) != i) CHECK_EQ(sched_yield(), 0);
    }
    CHECK_EQ(errno, 77);
    pthread_join(t, NULL);
    return 0;
}

HOOK_MAIN(run)
