/*
 * Sums with points in time.
 *
 * A program may ask for any int64_t, so a sum with a deadline may leave the range. Such a sum stays
 * at its end: one beyond NEVER is NEVER, one below the first moment is the first. Every sum and
 * difference of points in time goes through here (tests/script/deadlines.sh looks for others),
 * those of the runtime's own clock readings too, since a reader cannot tell the one from the other.
 */
#ifndef DEADLINE_H
#define DEADLINE_H

#include "base/base.h"

/* A deadline that is armed but never comes; GORT_FOREVER would not be armed at all. */
#define NEVER (GORT_FOREVER - 1)

/* t + ns. t is not GORT_FOREVER, which stays what it is by not being passed. */
INLINE int64_t time_after(int64_t t, int64_t ns) {
    int64_t sum;
    if (unlikely(__builtin_add_overflow(t, ns, &sum))) return ns > 0 ? NEVER : INT64_MIN;
    return sum > NEVER ? NEVER : sum;
}

/* From now to t, 0 where it has passed. */
INLINE int64_t time_left(int64_t t, int64_t now) {
    int64_t ns;
    if (t <= now) return 0;
    return unlikely(__builtin_sub_overflow(t, now, &ns)) ? NEVER : ns;
}

#endif
