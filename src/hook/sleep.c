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

int64_t nanoseconds(int64_t seconds, int64_t ns) {
    return seconds < NEVER / GORT_SEC / 2 ? seconds * GORT_SEC + ns : NEVER;
}

int64_t clock_deadline(clockid_t clock, const struct timespec *at) {
    struct timespec now;
    clock_gettime(clock, &now);
    if (at->tv_sec < now.tv_sec) return 0;
    int64_t left = nanoseconds(at->tv_sec - now.tv_sec, at->tv_nsec - now.tv_nsec);
    return left <= 0 ? 0 : deadline_after(left);
}

bool timeout_deadline(const struct timespec *ts, int64_t *deadline) {
    if (ts && (ts->tv_sec < 0 || !valid_time(ts))) return false;
    *deadline = ts ? deadline_after(nanoseconds(ts->tv_sec, ts->tv_nsec)) : GORT_FOREVER;
    return true;
}

void sleep_for(int64_t ns) {
    bool mine = stay();
    core->sleep_until(deadline_after(ns));
    stay_end(mine);
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
    if (!here() || !readable(ts, sizeof *ts)) return libc(nanosleep)(ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return (int)returned(-EINVAL);
    sleep_for(nanoseconds(ts->tv_sec, ts->tv_nsec));
    return 0;
}

HOOK int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ts,
                         struct timespec *rest) {
    if (!here() || !readable(ts, sizeof *ts)) return libc(clock_nanosleep)(clock, flags, ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return EINVAL;
    if (!valid_clock(clock))
        return (int)libc_blocking(clock_nanosleep, clock, flags, ts, rest, 0, 0);
    bool mine = stay();
    if (!(flags & TIMER_ABSTIME))
        core->sleep_until(deadline_after(nanoseconds(ts->tv_sec, ts->tv_nsec)));
    else /* again if the clock was set back meanwhile */
        for (int64_t until; (until = clock_deadline(clock, ts)) != 0;) core->sleep_until(until);
    stay_end(mine);
    return 0;
}
