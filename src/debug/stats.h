#ifndef STATS_H
#define STATS_H

#include "runtime.h"

uint32_t p_queue(P *p);           /* length of p's ring, without the LIFO slot. Any thread */
const char *m_state(M *m, G *gp); /* a word for what m does; gp: its current G. Any thread */

/* Is gp a goroutine that has not ended, at this moment? Any thread. */
INLINE bool g_exists(G *gp, uint32_t *status) {
    *status = load_acq(&gp->status);
    return *status != G_IDLE && *status != G_DEAD && load_rlx(&gp->id) != 0;
}

/* For how many us p has run its goroutine, as far as the monitor saw. Any thread. */
INLINE int64_t p_ran_us(P *p, int64_t now) {
    int64_t ran = load_rlx(&p->seen_tick) == load_rlx(&p->schedtick) ? now - p->seen_when : 0;
    return ran > 0 ? ran / GORT_US : 0;
}

#endif
