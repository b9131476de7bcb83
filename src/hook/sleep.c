/*
 * Times and sleeping. A goroutine sleeps in the runtime's timers, so no signal ends its sleep
 * early. Clocks other than the time of day and the monotonic one are libc's, in gort_blocking.
 *
 * A caller of sched_yield most often polls for another goroutine, which may have no P (spin locks,
 * C++20's atomic waits). If no goroutine wants to run, it waits for a thread: the call is libc's.
 */
#include "hook/hook_internal.h"

int64_t deadline_after(int64_t ns) {
    int64_t when = time_after(gort_now(), ns > 0 ? ns : 0);
    return when == NEVER ? GORT_FOREVER : when;
}

bool valid_time(const struct timespec *ts) { return ts->tv_nsec >= 0 && ts->tv_nsec < GORT_SEC; }

int64_t clock_deadline(clockid_t clock, const struct timespec *at) {
    struct timespec now;
    clock_gettime(clock, &now);
    int64_t seconds = (int64_t)at->tv_sec - now.tv_sec;
    if (seconds > GORT_FOREVER / GORT_SEC / 2) return GORT_FOREVER;
    if (seconds < -(GORT_FOREVER / GORT_SEC / 2)) return 0;
    int64_t left = seconds * GORT_SEC + at->tv_nsec - now.tv_nsec;
    return left <= 0 ? 0 : deadline_after(left);
}

bool timeout_deadline(const struct timespec *ts, int64_t *deadline) {
    *deadline = GORT_FOREVER;
    if (ts == NULL) return true;
    if (ts->tv_sec < 0 || !valid_time(ts)) return false;
    if (ts->tv_sec < GORT_FOREVER / GORT_SEC / 2)
        *deadline = deadline_after((int64_t)ts->tv_sec * GORT_SEC + ts->tv_nsec);
    return true;
}

void sleep_for(int64_t ns) {
    bool mine = stay();
    gort_sleep(ns);
    stay_end(mine);
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

HOOK int sched_yield(void) { return here() && staying(core->yield()) ? 0 : libc(sched_yield)(); }

HOOK int nanosleep(const struct timespec *ts, struct timespec *rest) {
    if (!here()) return libc(nanosleep)(ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return (int)returned(-EINVAL);
    sleep_for(ns_of(ts));
    return 0;
}

HOOK int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ts,
                         struct timespec *rest) {
    if (!here()) return libc(clock_nanosleep)(clock, flags, ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return EINVAL;
    if (!valid_clock(clock))
        return (int)libc_blocking(clock_nanosleep, clock, flags, ts, rest, 0, 0);
    if (!(flags & TIMER_ABSTIME)) {
        sleep_for(ns_of(ts));
        return 0;
    }
    bool mine = stay();
    /* again if the clock was set back meanwhile */
    for (int64_t until; (until = clock_deadline(clock, ts)) != 0;) gort_sleep_until(until);
    stay_end(mine);
    return 0;
}
