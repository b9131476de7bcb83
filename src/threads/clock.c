/* The clocks in a simulation, whose time is virtual (sched/sim.c): they begin at the same date in
 * every run, and go on when a thread looks at one, or all wait. Outside of one they are libc's. A
 * look is a point, too: a loop that waits for a time lets others run. */
#include "threads/threads.h"

#define DATE 1735689600 /* the beginning of 2025 */

/* Seconds that the clock shows at the beginning; -1: it is libc's. */
static int64_t clock_begin(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI: return DATE;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: return 1000;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID: return 0;
    default: return -1;
    }
}

static struct timespec virtual_time(clockid_t clock) {
    int64_t now = core->sim_elapsed();
    return (struct timespec){clock_begin(clock) + now / GORT_SEC, now % GORT_SEC};
}

bool clock_virtual(clockid_t clock, struct timespec *at) {
    if (clock_begin(clock) < 0) return false;
    *at = virtual_time(clock);
    return true;
}

HOOK int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    if (!simulated()) return libc(gettimeofday)(at, zone);
    POINT(gettimeofday);
    struct timespec now = virtual_time(CLOCK_REALTIME);
    if (at) *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

HOOK time_t time(time_t *at) {
    if (!simulated()) return libc(time)(at);
    POINT(time);
    time_t now = virtual_time(CLOCK_REALTIME).tv_sec;
    if (at) *at = now;
    return now;
}

HOOK clock_t clock(void) {
    if (!simulated()) return libc(clock)();
    POINT(clock);
    struct timespec now = virtual_time(CLOCK_PROCESS_CPUTIME_ID);
    return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (GORT_SEC / CLOCKS_PER_SEC);
}

HOOK int timespec_get(struct timespec *at, int base) {
    if (base != TIME_UTC || !simulated()) return libc(timespec_get)(at, base);
    POINT(timespec_get);
    *at = virtual_time(CLOCK_REALTIME);
    return base;
}
