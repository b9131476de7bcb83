/* Counted objects, and how they are freed where nothing may be freed: the last user of a timer or a
 * context may be a timer's function, which runs in the scheduler, where malloc takes nothing back.
 * It leaves the object on a list (`garbage`, in time.c), and the next caller that may free does. */
#ifndef FREE_LATER_H
#define FREE_LATER_H

#include "base/san.h"
#include "sched/sched.h"

typedef struct Refs {
    uint32_t count;    /* atomic */
    struct Refs *next; /* on the list */
    /* Outside of sections. Acquires for TSan what others did before their drop. */
    void (*destroy)(struct Refs *);
} Refs;

extern Refs *garbage;
void garbage_leave(Refs *r); /* anywhere */
void garbage_collect_slow(void);
/* Outside of sections. */
INLINE void garbage_collect(void) {
    if (unlikely(load_rlx(&garbage) != NULL)) garbage_collect_slow();
}

/* One more reference; false: the last has been dropped, and the object goes. */
INLINE bool refs_try(Refs *r) {
    uint32_t n = load_rlx(&r->count);
    while (n != 0)
        if (cas_seq(&r->count, &n, n + 1)) return true;
    return false;
}

/* Drops a reference. True: it was the last, and the caller owns the object. */
INLINE bool refs_last(Refs *r) {
    tsan_release(r);
    return sub_seq(&r->count, 1) == 0;
}
/* Outside of sections. */
INLINE void refs_drop(Refs *r) {
    if (refs_last(r)) r->destroy(r);
}
/* Anywhere. */
INLINE void refs_drop_later(Refs *r) {
    if (refs_last(r)) garbage_leave(r);
}

#endif
