/*
 * Sleeping. The goroutine sleeps in the runtime's timers, so no signal ends it early and nothing
 * is left over. Clocks that are not the time of day or monotonic are libc's, on a handed-off
 * thread.
 *
 * Who yields, waits for somebody by looking again and again (spin locks, C++20's atomic waits):
 * most often for another goroutine, which may have no P. Where no goroutine wants to run it is a
 * thread that is waited for.
 */
#include "hook/hook_internal.h"

static void sleep_for(int64_t ns) {
    Stay s;
    stay(&s);
    gort_sleep(ns);
    stay_end(&s);
}

static int64_t ns_of(const struct timespec *ts) {
    if (ts->tv_sec >= GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER / 2;
    return (int64_t)ts->tv_sec * GORT_SEC + ts->tv_nsec;
}

HOOK unsigned sleep(unsigned seconds) {
    if (!here()) return libc(sleep)(seconds);
    sleep_for(seconds * GORT_SEC);
    return 0;
}

HOOK int usleep(useconds_t us) {
    if (!here()) return libc(usleep)(us);
    sleep_for(us * GORT_US);
    return 0;
}

HOOK int sched_yield(void) {
    if (!here()) return libc(sched_yield)();
    Stay s;
    stay(&s);
    bool others = core->yield();
    stay_end(&s);
    return others ? 0 : libc(sched_yield)();
}

HOOK int nanosleep(const struct timespec *ts, struct timespec *rest) {
    if (!here()) return libc(nanosleep)(ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return (int)returned(-EINVAL);
    sleep_for(ns_of(ts));
    return 0;
}

typedef struct ClockSleep {
    clockid_t clock;
    int flags;
    const struct timespec *ts;
    struct timespec *rest;
} ClockSleep;

static long clock_blocking(void *arg) {
    ClockSleep *o = arg;
    return libc(clock_nanosleep)(o->clock, o->flags, o->ts, o->rest);
}

HOOK int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ts,
                         struct timespec *rest) {
    if (!here()) return libc(clock_nanosleep)(clock, flags, ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return EINVAL;
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) {
        ClockSleep o = {clock, flags, ts, rest};
        Stay s;
        stay(&s);
        int r = (int)gort_blocking(clock_blocking, &o);
        stay_end(&s);
        return r;
    }
    if (!(flags & TIMER_ABSTIME)) {
        sleep_for(ns_of(ts));
        return 0;
    }
    Stay s;
    stay(&s);
    /* or it was set back */
    for (int64_t until; (until = clock_deadline(clock, ts)) != 0;) gort_sleep_until(until);
    stay_end(&s);
    return 0;
}
