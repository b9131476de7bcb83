/* sleep, usleep, nanosleep, clock_nanosleep: goroutines sleep together, threads do not. */
#include "hook.h"

static int done;

static void sleeper(void *arg) {
    int i = (int)(intptr_t)arg;
    int64_t from = gort_now();
    struct timespec ts = {0, 200000000};
    switch (i % 5) {
    case 0: CHECK_EQ(sleep(1), 0); break;
    case 1: CHECK_EQ(usleep(200000), 0); break;
    case 2: CHECK_EQ(nanosleep(&ts, NULL), 0); break;
    case 3: CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), 0); break;
    case 4: {
        clock_gettime(CLOCK_REALTIME, &ts);
        ts.tv_sec += 1;
        CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, NULL), 0);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        CHECK(now.tv_sec > ts.tv_sec || (now.tv_sec == ts.tv_sec && now.tv_nsec >= ts.tv_nsec));
    }
    }
    CHECK_GE(gort_now() - from, 200 * GORT_MS);
    add(&done, 1);
}

/* The thread that does not sleep in the kernel is what counts: hardly any are made. */
static int run(int argc, char **argv) {
    int64_t from = gort_now();
    for (intptr_t i = 0; i < MANY; i++) gort_go(sleeper, (void *)i);
    wait_until(get(&done) == MANY);
    CHECK_LT(gort_now() - from, 100 * GORT_SEC); /* one after the other: over 130 s */
    CHECK_LT(threads(), 40);
    struct timespec bad = {0, 1000000000}, none = {0, 0};
    CHECK_FAILS(nanosleep(&bad, NULL), EINVAL);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
    CHECK_EQ(nanosleep(&none, NULL), 0);
    bad.tv_nsec = 1000000;
    CHECK_EQ(clock_nanosleep(CLOCK_BOOTTIME, 0, &bad, NULL), 0);
    return 0;
}
HOOK_MAIN(run)
