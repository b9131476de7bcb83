/* The lock order (lock.h), checked in a debug build, but for locks of one rank. A lock held over a
 * switch belongs to the M. A thread without an M, just starting or ending, is not checked. */
#include "base/lock.h"
#include "runtime.h"

#ifdef GORT_CHECKED
void lockrank_take(Lock *l, int rank) {
    M *m = getm();
    if (m == NULL) return;
    if (m->locks == 0) fatal("a lock of rank %d is taken outside of a section", rank);
    for (uint32_t i = 0; i < m->nheld; i++)
        if (m->held[i].rank > rank)
            fatal("a lock of rank %d is taken while one of rank %d is held", rank, m->held[i].rank);
    if (m->nheld == sizeof m->held / sizeof m->held[0]) return; /* a select over many channels */
    m->held[m->nheld].lock = l;
    m->held[m->nheld++].rank = rank;
}

void lockrank_drop(Lock *l) {
    M *m = getm();
    if (m == NULL) return;
    for (uint32_t i = m->nheld; i-- > 0;) {
        if (m->held[i].lock != l) continue;
        m->held[i] = m->held[--m->nheld];
        return;
    }
}
#endif
