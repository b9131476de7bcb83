/*
 * Mutexes.
 *
 * The common ones have no owner that counts: a goroutine takes them as libc's trylock does, and waits in
 * queue.c where that fails. The few instructions of both stand here, since another call into libc would cost more
 * than they do; the owner and the count of users are kept for debuggers and pthread_mutex_destroy.
 *
 * Recursive and error-checking ones are owned by a thread, and two goroutines of one thread would
 * both be let in. Where a goroutine takes one, the owner noted in it is the goroutine: a number no
 * thread has, in the field where libc keeps the thread's. For libc it is locked by somebody else,
 * so plain threads wait as they should; nested locks and the unlock are done here, on whatever
 * thread the goroutine is by then. This is glibc's layout, part of its ABI. Robust, priority and
 * process-shared ones are left to libc's own ways.
 */
#include "inside.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { KIND_COMMON = 0, KIND_RECURSIVE = 1, KIND_ERRORCHECK = 2 };
#define KIND_NO_ELISION 512

static int type_of(pthread_mutex_t *mutex) {
    int kind = load_rlx(&mutex->__data.__kind) & ~KIND_NO_ELISION;
    return kind == KIND_RECURSIVE || kind == KIND_ERRORCHECK ? kind : 0;
}

/* The owner's mark of the current goroutine; 0: none runs here. Thread ids have at most 22 bits. */
static int mark(void) {
    G *gp = current();
    return gp ? (int)(0x40000000 | (gp->id & 0x3fffffff)) : 0;
}

static int owner(pthread_mutex_t *mutex) { return load_rlx(&mutex->__data.__owner); }

/* EBUSY, or as pthread_mutex_lock. */
static int take_owned(pthread_mutex_t *mutex, int me) {
    if (owner(mutex) == me) {
        if (type_of(mutex) == KIND_ERRORCHECK) return EDEADLK;
        if (mutex->__data.__count == UINT32_MAX) return EAGAIN;
        mutex->__data.__count++;
        return 0;
    }
    int none = 0;
    if (!cas_seq(&mutex->__data.__lock, &none, 1)) return EBUSY;
    store_rlx(&mutex->__data.__owner, me);
    mutex->__data.__count = 1;
    mutex->__data.__nusers++;
    return 0;
}

static NOINLINE void wake_thread(pthread_mutex_t *mutex) {
    sys(SYS_futex, &mutex->__data.__lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

INLINE int release(pthread_mutex_t *mutex) {
    store_rlx(&mutex->__data.__owner, 0);
    mutex->__data.__nusers--;
    if (unlikely(xchg_seq(&mutex->__data.__lock, 0) > 1)) wake_thread(mutex); /* threads wait */
    released(mutex, false);
    return 0;
}

static int release_owned(pthread_mutex_t *mutex) {
    if (type_of(mutex) == KIND_RECURSIVE && --mutex->__data.__count > 0) return 0;
    mutex->__data.__count = 0;
    return release(mutex);
}

static int try_owned(void *mutex) { return take_owned(mutex, mark()); }
static int try_common(void *mutex) { return libc(pthread_mutex_trylock)(mutex); }

/* Pinned, or inside a blocking call: it cannot park. */
static int spin(pthread_mutex_t *mutex, int64_t deadline) {
    int r;
    while ((r = try_owned(mutex)) == EBUSY) {
        if (deadline != GORT_FOREVER && deadline <= gort_now()) return ETIMEDOUT;
        libc(usleep)(50);
    }
    return r;
}

/* A mutex with an owner, on a goroutine. */
static NOINLINE int lock_owned(pthread_mutex_t *mutex, int64_t deadline) {
    int r = try_owned(mutex);
    if (r != EBUSY) return r;
    return here() ? wait_for(mutex, try_owned, WAIT_MUTEX, deadline) : spin(mutex, deadline);
}

/* Neither owned nor shared, robust, of a priority, elided. */
INLINE bool is_common(pthread_mutex_t *mutex) { return likely(load_rlx(&mutex->__data.__kind) == KIND_COMMON); }

/* What libc's trylock does. On a goroutine. */
INLINE int take_common(M *m, pthread_mutex_t *mutex) {
    int none = 0;
    if (unlikely(!cas_seq(&mutex->__data.__lock, &none, 1))) return EBUSY;
    store_rlx(&mutex->__data.__owner, m->tid);
    mutex->__data.__nusers++;
    return 0;
}

HOOK int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (unlikely(type_of(mutex) != 0) && mark()) return lock_owned(mutex, GORT_FOREVER);
    M *m = runner(pthread_mutex_lock);
    if (m == NULL) return libc(pthread_mutex_lock)(mutex);
    int r = is_common(mutex) ? take_common(m, mutex) : try_common(mutex);
    if (likely(r != EBUSY)) return r;
    return here() ? wait_for(mutex, try_common, WAIT_MUTEX, GORT_FOREVER) : libc(pthread_mutex_lock)(mutex);
}

HOOK int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    int r;
    if (likely(type_of(mutex) == 0) || !mark()) return libc(pthread_mutex_trylock)(mutex);
    r = try_owned(mutex);
    return r == EDEADLK ? EBUSY : r;
}

/* A mutex with an owner (owned), or any other, on a goroutine. */
static int lock_until(pthread_mutex_t *mutex, bool owned, clockid_t clock, const struct timespec *at) {
    int r = owned ? try_owned(mutex) : try_common(mutex);
    if (r != EBUSY) return r;
    if (!valid_time(at)) return EINVAL;
    int64_t deadline = deadline_of(clock, at);
    if (owned) return lock_owned(mutex, deadline);
    return wait_for(mutex, try_common, WAIT_MUTEX, deadline);
}

HOOK int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
    bool owned = type_of(mutex) != 0 && mark();
    if (!owned && !here()) return libc(pthread_mutex_timedlock)(mutex, at);
    return lock_until(mutex, owned, CLOCK_REALTIME, at);
}

HOOK int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict at) {
    bool owned = type_of(mutex) != 0 && mark();
    if (!owned && !here()) return libc(pthread_mutex_clocklock)(mutex, clock, at);
    if (!valid_clock(clock)) return EINVAL;
    return lock_until(mutex, owned, clock, at);
}

HOOK int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (unlikely(type_of(mutex) != 0)) {
        int me = mark();
        if (me && owner(mutex) == me) return release_owned(mutex);
    }
    if (is_common(mutex) && runner(pthread_mutex_unlock)) return release(mutex);
    int r = libc(pthread_mutex_unlock)(mutex);
    released(mutex, false);
    return r;
}
