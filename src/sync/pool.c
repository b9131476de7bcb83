/*
 * The pool: sync.Pool for C, in Bonwick's design.
 *
 * Each P has a cache that needs no atomics: only the holder of the P touches it, in a section. It
 * has two magazines of 31 pointers, `loaded` and `spare`. Put fills and get empties the loaded one;
 * when that fails they are swapped. When both are full (or both empty), one is exchanged with the
 * depot, a list under a lock shared by all Ps and by threads without a P.
 *
 * The caches of alloc.c would not do: they write links into free objects, while a pool's objects
 * are the program's, from any allocator, and stay as they were put. A get and a put take 134
 * instructions, malloc and free of 256 bytes 146: what a pool saves is the making of its objects.
 *
 * Go's collector empties its pools. Here the depot remembers its smallest stock of full magazines,
 * and every two seconds, at the next exchange, drops half of it. What a P caches is bounded.
 *
 * The caches are indexed by P in two steps and made on demand, outside of sections since that
 * allocates. They stay when gort_maxprocs() or the end of a runtime takes the P away, for the next
 * holder of a P of that number; the P's change of hands orders the two holders.
 */
#include "sync/chan.h"

#define ROUNDS 31
#define GROUP 16 /* caches allocated at a time */
#define TRIM_EVERY (2 * GORT_SEC)

typedef struct Magazine {
    struct Magazine *next;
    uint32_t count;
    void *objects[ROUNDS];
} Magazine;

typedef struct PoolCache {
    Magazine *loaded, *spare; /* the holder of the P, in a section; NULL: none yet */
} ALIGNED(CACHE_LINE) PoolCache;

struct gort_pool {
    void *(*make)(void *arg);
    void (*drop)(void *object);
    void *arg;
    Lock lock; /* RANK_LEAF */
    /* lock: */
    Magazine *full, *empty, *partial; /* partial: of callers without a P */
    uint32_t nfull, low;              /* stock, and its smallest since `trimmed` */
    int64_t trimmed;
    /* atomic, set once: */
    PoolCache *groups[MAX_PROCS / GROUP]; /* GROUP of them each */
};

INLINE void mag_push(Magazine **list, Magazine *mag) {
    mag->next = *list;
    *list = mag;
}
INLINE Magazine *mag_pop(Magazine **list) {
    Magazine *mag = *list;
    if (mag != NULL) {
        *list = mag->next;
        mag->next = NULL;
    }
    return mag;
}

/* Zeroed, on a cache line, with the program's errno kept. Outside of sections. */
static void *new_memory(size_t size) {
    void *p = quiet_alloc(size);
    if (p != NULL) memset(p, 0, size);
    return p;
}

EXPORT gort_pool *gort_pool_new(void *(*make)(void *arg), void (*drop)(void *object), void *arg) {
    if (in_forked_child()) return NULL;
    gort_pool *pool = quiet_alloc(sizeof *pool);
    if (pool == NULL) return NULL;
    *pool = (gort_pool){.make = make, .drop = drop, .arg = arg, .trimmed = os_now()};
    return pool;
}

/* The cache of m's P. NULL: no P, or (*missing) its group is not made yet. */
INLINE PoolCache *pool_cache(M *m, gort_pool *pool, uint32_t *missing) {
    uint32_t id;
    *missing = MAX_PROCS;
    if (!p_number(m, &id)) return NULL;
    PoolCache *group = load_acq(&pool->groups[id / GROUP]); /* pairs with group_make */
    if (likely(group != NULL)) return &group[id % GROUP];
    *missing = id / GROUP;
    return NULL;
}

static bool group_make(gort_pool *pool, uint32_t which) {
    PoolCache *fresh = new_memory(GROUP * sizeof *fresh), *old = NULL;
    if (fresh == NULL) return false;
    if (!cas_acq_rel(&pool->groups[which], &old, fresh)) quiet_free(fresh);
    return true;
}

/* ---- the depot; in a section ----------------------------------------------------------------- */

/* A full magazine, or NULL. Locked. */
static Magazine *full_pop(gort_pool *pool) {
    Magazine *mag = mag_pop(&pool->full);
    if (mag != NULL && --pool->nfull < pool->low) pool->low = pool->nfull;
    return mag;
}

/* Gives a full magazine for the empty one `back` (or NULL). NULL: none; back stays the caller's. */
static Magazine *depot_full(gort_pool *pool, Magazine *back) {
    lock(&pool->lock, RANK_LEAF);
    Magazine *mag = full_pop(pool);
    if (mag != NULL && back != NULL) mag_push(&pool->empty, back);
    unlock(&pool->lock);
    return mag;
}

/* Takes the full magazine `back` (or NULL) for an empty one. NULL: none; back was taken. */
static Magazine *depot_empty(gort_pool *pool, Magazine *back) {
    lock(&pool->lock, RANK_LEAF);
    if (back != NULL) {
        mag_push(&pool->full, back);
        pool->nfull++;
    }
    Magazine *mag = mag_pop(&pool->empty);
    unlock(&pool->lock);
    return mag;
}

/* Drops a list of magazines with their objects. Outside of sections. */
static void drop_all(gort_pool *pool, Magazine *list) {
    Magazine *mag;
    while ((mag = mag_pop(&list)) != NULL) {
        for (uint32_t i = 0; pool->drop != NULL && i < mag->count; i++) pool->drop(mag->objects[i]);
        quiet_free(mag);
    }
}

/* Drops half of what the depot has not needed for a while, and the empty magazines. */
static void pool_trim(gort_pool *pool) {
    int64_t now = os_now();
    Magazine *list = NULL, *empty = NULL;
    if (now - load_rlx(&pool->trimmed) < TRIM_EVERY) return;
    M *m = enter();
    lock(&pool->lock, RANK_LEAF);
    if (now - pool->trimmed >= TRIM_EVERY) {
        for (uint32_t n = (pool->low + 1) / 2; n > 0 && pool->full != NULL; n--)
            mag_push(&list, full_pop(pool));
        empty = pool->empty;
        pool->empty = NULL;
        pool->low = pool->nfull;
        pool->trimmed = now;
    }
    unlock(&pool->lock);
    leave(m);
    drop_all(pool, list);
    drop_all(pool, empty);
}

INLINE void swap(PoolCache *c) {
    Magazine *mag = c->loaded;
    c->loaded = c->spare;
    c->spare = mag;
}

/* An object from a P's cache, refilled from the depot. */
static void *cache_get(gort_pool *pool, PoolCache *c) {
    if (c->loaded == NULL || c->loaded->count == 0) {
        swap(c);
        if (c->loaded == NULL || c->loaded->count == 0) {
            Magazine *mag = load_rlx(&pool->full) ? depot_full(pool, c->loaded) : NULL;
            if (mag == NULL) return NULL;
            c->loaded = mag;
        }
    }
    return c->loaded->objects[--c->loaded->count];
}

/* An object for a caller without a P, or whose cache is empty. */
static void *shared_get(gort_pool *pool) {
    void *object = NULL;
    lock(&pool->lock, RANK_LEAF);
    Magazine *mag = pool->partial;
    if (mag == NULL && (mag = full_pop(pool)) != NULL) mag_push(&pool->partial, mag);
    if (mag != NULL) {
        object = mag->objects[--mag->count];
        if (mag->count == 0) mag_push(&pool->empty, mag_pop(&pool->partial));
    }
    unlock(&pool->lock);
    return object;
}

EXPORT void *gort_pool_get(gort_pool *pool) {
    uint32_t missing;
    void *object = NULL;
    if (unlikely(in_forked_child())) return NULL;
    M *m = enter();
    PoolCache *c = pool_cache(m, pool, &missing);
    if (likely(c != NULL)) object = cache_get(pool, c);
    if (object == NULL && (load_rlx(&pool->partial) || load_rlx(&pool->full)))
        object = shared_get(pool);
    leave(m);
    if (object == NULL) return pool->make ? pool->make(pool->arg) : NULL;
    tsan_acquire(pool);
    return object;
}

INLINE bool has_room(const Magazine *mag) { return mag != NULL && mag->count < ROUNDS; }

/* mag, or if there is none the one that the caller has brought. */
INLINE Magazine *or_fresh(Magazine *mag, Magazine **fresh) {
    if (mag != NULL) return mag;
    mag = *fresh;
    *fresh = NULL;
    return mag;
}

/* False: an empty magazine is needed. *exchanged: the depot was visited. */
static bool cache_put(gort_pool *pool, PoolCache *c, void *object, Magazine **fresh,
                      bool *exchanged) {
    if (!has_room(c->loaded)) {
        if (has_room(c->spare)) {
            swap(c);
        } else {
            Magazine *full = c->spare;
            c->spare = c->loaded;
            c->loaded = or_fresh(depot_empty(pool, full), fresh);
            *exchanged = true;
            if (c->loaded == NULL) return false;
        }
    }
    c->loaded->objects[c->loaded->count++] = object;
    return true;
}

/* From a caller without a P. False: an empty magazine is needed. */
static bool shared_put(gort_pool *pool, void *object, Magazine **fresh) {
    lock(&pool->lock, RANK_LEAF);
    Magazine *mag = pool->partial;
    if (mag == NULL) {
        mag = or_fresh(mag_pop(&pool->empty), fresh);
        if (mag != NULL) mag_push(&pool->partial, mag);
    }
    if (mag != NULL) {
        mag->objects[mag->count++] = object;
        if (mag->count == ROUNDS) {
            mag_push(&pool->full, mag_pop(&pool->partial));
            pool->nfull++;
        }
    }
    unlock(&pool->lock);
    return mag != NULL;
}

EXPORT void gort_pool_put(gort_pool *pool, void *object) {
    if (object == NULL || unlikely(in_forked_child())) return;
    Magazine *fresh = NULL;
    uint32_t missing;
    bool done = false, exchanged = false, memory = true;
    tsan_release(pool);
    while (!done && memory) {
        M *m = enter();
        PoolCache *c = pool_cache(m, pool, &missing);
        if (likely(c != NULL)) done = cache_put(pool, c, object, &fresh, &exchanged);
        else if (missing == MAX_PROCS) done = shared_put(pool, object, &fresh);
        leave(m);
        if (likely(done)) break;
        if (c == NULL && missing != MAX_PROCS) memory = group_make(pool, missing);
        else memory = (fresh = new_memory(sizeof *fresh)) != NULL;
    }
    if (!done && pool->drop != NULL) pool->drop(object);
    if (unlikely(fresh != NULL)) quiet_free(fresh);
    if (unlikely(exchanged)) pool_trim(pool);
}

EXPORT void gort_pool_free(gort_pool *pool) {
    if (pool == NULL || in_forked_child()) return;
    tsan_acquire(pool);
    drop_all(pool, pool->full);
    drop_all(pool, pool->empty);
    drop_all(pool, pool->partial);
    for (int i = 0; i < MAX_PROCS / GROUP; i++) {
        PoolCache *group = load_acq(&pool->groups[i]);
        for (int k = 0; group != NULL && k < GROUP; k++) {
            drop_all(pool, group[k].loaded);
            drop_all(pool, group[k].spare);
        }
        quiet_free(group);
    }
    quiet_free(pool);
}
