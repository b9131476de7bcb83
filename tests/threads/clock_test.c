/* The clocks, which a simulation replaces (gort-run --explore): elsewhere they are the kernel's. */
#include "threads_test.h"

#include <sys/syscall.h>
#include <sys/time.h>

static double kernel(clockid_t clock) {
    struct timespec ts;
    CHECK(syscall(SYS_clock_gettime, clock, &ts) == 0);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}
static double of(time_t seconds, double part) { return (double)seconds + part; }
static bool between(double before, double value, double after) {
    return before - 0.02 <= value && value <= after; /* a coarse clock is behind */
}

static void *looks(void *arg) {
    struct timespec ts;
    struct timeval tv;
    time_t now, same;
    double before = kernel(CLOCK_REALTIME);
    CHECK(clock_gettime(CLOCK_REALTIME, &ts) == 0);
    CHECK(between(before, of(ts.tv_sec, (double)ts.tv_nsec / 1e9), kernel(CLOCK_REALTIME)));
    CHECK(gettimeofday(&tv, NULL) == 0);
    CHECK(between(before, of(tv.tv_sec, (double)tv.tv_usec / 1e6), kernel(CLOCK_REALTIME)));
    CHECK(timespec_get(&ts, TIME_UTC) == TIME_UTC && timespec_get(&ts, 77) == 0);
    CHECK(between(before, of(ts.tv_sec, (double)ts.tv_nsec / 1e9), kernel(CLOCK_REALTIME)));
    now = time(&same);
    CHECK(now == same && between(before - 1, (double)now, kernel(CLOCK_REALTIME)));
    before = kernel(CLOCK_MONOTONIC);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    CHECK(between(before, of(ts.tv_sec, (double)ts.tv_nsec / 1e9), kernel(CLOCK_MONOTONIC)));
    before = kernel(CLOCK_PROCESS_CPUTIME_ID);
    double used = (double)clock() / CLOCKS_PER_SEC;
    CHECK(between(before, used, kernel(CLOCK_PROCESS_CPUTIME_ID)));
    CHECK(clock_gettime(12345, &ts) == -1 && errno == EINVAL);
    return arg;
}

int main(void) {
    pthread_t thread;
    looks(NULL);
    CHECK(pthread_create(&thread, NULL, looks, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}
