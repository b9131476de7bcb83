/*
 * Times and sleeping. A goroutine sleeps in the runtime's timers, so no signal ends its sleep
 * early, unless it is a thread of a program whose threads are goroutines. Clocks other than the
 * time of day and the monotonic one are libc's, in gort_blocking.
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

int64_t sleep_for(int64_t ns) {
    int64_t until = deadline_after(ns);
    return staying_once(core->sleep_until(until)) == 0 ? 0 : time_left(until, gort_now());
}

HOOK unsigned sleep(unsigned seconds) {
    if (!here()) return libc(sleep)(seconds);
    return (unsigned)((sleep_for(seconds * GORT_SEC) + GORT_SEC / 2) / GORT_SEC);
}

HOOK int usleep(useconds_t us) {
    if (!here()) return libc(usleep)(us);
    return sleep_for(us * GORT_US) ? (int)returned(-EINTR) : 0;
}

HOOK int sched_yield(void) { return here() && staying(core->yield()) ? 0 : libc(sched_yield)(); }

HOOK int nanosleep(const struct timespec *ts, struct timespec *rest) {
    if (!here() || !readable(ts, sizeof *ts)) return libc(nanosleep)(ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return (int)returned(-EINVAL);
    int64_t left = sleep_for(nanoseconds(ts->tv_sec, ts->tv_nsec));
    if (left == 0) return 0;
    if (rest) *rest = (struct timespec){left / GORT_SEC, left % GORT_SEC};
    return (int)returned(-EINTR);
}

/* Again if the clock was set back meanwhile. */
static int sleep_clock(clockid_t clock, const struct timespec *at) {
    int r = 0;
    for (int64_t until; r == 0 && (until = clock_deadline(clock, at)) != 0;)
        r = core->sleep_until(until);
    return r;
}

HOOK int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ts,
                         struct timespec *rest) {
    if (!here() || !readable(ts, sizeof *ts)) return libc(clock_nanosleep)(clock, flags, ts, rest);
    if (ts->tv_sec < 0 || !valid_time(ts)) return EINVAL;
    if (!valid_clock(clock))
        return (int)libc_blocking(clock_nanosleep, clock, flags, ts, rest, 0, 0);
    if (flags & TIMER_ABSTIME) return -staying_once(sleep_clock(clock, ts));
    int64_t left = sleep_for(nanoseconds(ts->tv_sec, ts->tv_nsec));
    if (left && rest) *rest = (struct timespec){left / GORT_SEC, left % GORT_SEC};
    return left ? EINTR : 0;
}
