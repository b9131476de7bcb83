/* Sums with points in time. A program may ask for any int64_t, so a sum with a deadline may
 * overflow. It saturates: beyond NEVER it is NEVER, below the first moment the first. Every sum and
 * difference of points in time goes through here (tests/script/deadlines.sh looks for others),
 * those of the runtime's own clock too, since a reader cannot tell the one from the other. */
#ifndef DEADLINE_H
#define DEADLINE_H

#include "base/base.h"

/* A deadline that is armed but never comes; GORT_FOREVER is not armed at all. */
#define NEVER (GORT_FOREVER - 1)

/* t + ns. Callers do not pass GORT_FOREVER. */
INLINE int64_t time_after(int64_t t, int64_t ns) {
    int64_t sum;
    if (unlikely(__builtin_add_overflow(t, ns, &sum))) return ns > 0 ? NEVER : INT64_MIN;
    return sum > NEVER ? NEVER : sum;
}

/* From now to t; 0 where t has passed. */
INLINE int64_t time_left(int64_t t, int64_t now) {
    int64_t ns;
    if (t <= now) return 0;
    return unlikely(__builtin_sub_overflow(t, now, &ns)) ? NEVER : ns;
}

#endif
