/*
 * Its policy, asked by a goroutine that is a thread to libc: libc would ask by a number that the
 * kernel does not know (abseil's Mutex asks whenever it waits).
 */
#include "hook.h"

static gort_wg wg;

static void asks(void *arg) {
    for (int i = 0; i < 10; i++) {
        struct sched_param param = {.sched_priority = -1};
        int policy = -1;
        CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &param), 0);
        CHECK_EQ(policy, SCHED_OTHER);
        CHECK_EQ(param.sched_priority, 0);
        gort_yield();
    }
    gort_wg_done(&wg);
}

static int app(int argc, char **argv) {
    for (int i = 0; i < 20; i++) {
        gort_wg_add(&wg, 1);
        int r = gort_go_with(&(gort_attr){.thread = i % 2}, asks, NULL);
        if (r == -ENOTSUP) SKIP("no goroutine can be a thread here");
        CHECK_EQ(r, 0);
    }
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
