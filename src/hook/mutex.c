/*
 * Mutexes, in four classes.
 *
 * COMMON: no owner that counts. A goroutine takes one as libc's trylock does, and waits in
 * waitqueue.c where that fails. The few instructions of lock and unlock stand here: a call into
 * libc costs more. Owner and count of users are right for debuggers and pthread_mutex_destroy.
 *
 * MARKED: recursive and error-checking ones. By its thread as the owner, two goroutines of one
 * thread would both be let in. So the goroutine's mark (owner_mark), a number that no thread has,
 * is noted in glibc's field, which is part of its ABI. To libc another thread holds the mutex, so
 * plain threads wait; nested locks and the unlock are done here, on any thread.
 *
 * BOUND: robust ones, those with a priority protocol, process-shared ones with an owner. The kernel
 * or other processes know the owner by its thread's number, so the goroutine that holds one is
 * locked to its thread (gort_lock_thread), and libc's functions are right: owners, nesting, errors,
 * priorities. If it ends while it holds a robust one its thread ends too, and the kernel tells the
 * next owner (EOWNERDEAD). A goroutine that waits for a BOUND one occupies no thread.
 *
 * KNOWN: all of these on a goroutine that is a thread to libc (sched/body.c). libc knows the owner
 * by a number that stays with the goroutine, so its functions are right on any thread.
 */
#include "hook/hook_internal.h"

#include <linux/futex.h>

/* glibc's bits in __kind. */
enum { TYPE_COMMON = 0, TYPE_RECURSIVE = 1, TYPE_ERRORCHECK = 2, TYPE_MASK = 3 };
enum { MUTEX_ROBUST = 16, MUTEX_INHERIT = 32, MUTEX_PROTECT = 64, MUTEX_SHARED = 128 };
enum { MUTEX_ELISION = 256 | 512 };

enum { COMMON, MARKED, BOUND, KNOWN };

static int mutex_type(pthread_mutex_t *mutex) {
    return load_rlx(&mutex->__data.__kind) & TYPE_MASK;
}

static int mutex_class(pthread_mutex_t *mutex) {
    int kind = load_rlx(&mutex->__data.__kind) & ~MUTEX_ELISION, type = kind & TYPE_MASK;
    bool owned = type == TYPE_RECURSIVE || type == TYPE_ERRORCHECK;
    if (kind & (MUTEX_ROBUST | MUTEX_INHERIT | MUTEX_PROTECT)) return BOUND;
    return !owned ? COMMON : kind & MUTEX_SHARED ? BOUND : MARKED;
}

/* The kernel, or another process, may release it. */
static int mutex_unseen(pthread_mutex_t *mutex) {
    int kind = load_rlx(&mutex->__data.__kind);
    return kind & (MUTEX_ROBUST | MUTEX_INHERIT | MUTEX_SHARED) ? WAIT_SHARED : 0;
}

static int mutex_owner(pthread_mutex_t *mutex) { return load_rlx(&mutex->__data.__owner); }

/* As libc's trylock. */
INLINE int mutex_take_free(pthread_mutex_t *mutex, int owner) {
    int none = 0;
    if (unlikely(!cas_seq(&mutex->__data.__lock, &none, 1))) return EBUSY;
    store_rlx(&mutex->__data.__owner, owner);
    mutex->__data.__nusers++;
    return 0;
}

/* EBUSY, or as pthread_mutex_lock. */
static int mutex_take_marked(pthread_mutex_t *mutex, int me) {
    if (mutex_owner(mutex) == me) {
        if (mutex_type(mutex) == TYPE_ERRORCHECK) return EDEADLK;
        if (mutex->__data.__count == UINT32_MAX) return EAGAIN;
        mutex->__data.__count++;
        return 0;
    }
    int r = mutex_take_free(mutex, me);
    if (r == 0) mutex->__data.__count = 1;
    return r;
}

static NOINLINE void mutex_wake_thread(pthread_mutex_t *mutex) {
    sys(SYS_futex, &mutex->__data.__lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

INLINE int mutex_release(pthread_mutex_t *mutex) {
    store_rlx(&mutex->__data.__owner, 0);
    mutex->__data.__nusers--;
    if (unlikely(xchg_seq(&mutex->__data.__lock, 0) > 1)) mutex_wake_thread(mutex);
    released(mutex, false);
    return 0;
}

static int mutex_release_marked(pthread_mutex_t *mutex) {
    if (mutex_type(mutex) == TYPE_RECURSIVE && --mutex->__data.__count > 0) return 0;
    mutex->__data.__count = 0;
    return mutex_release(mutex);
}

/* The current goroutine, or the plain thread, has it more than once. */
static bool mutex_nested(pthread_mutex_t *mutex) {
    return mutex_type(mutex) == TYPE_RECURSIVE && mutex->__data.__count > 1;
}

/* Its keys remain the goroutine's (threadkeys.c). */
static void lock_for_mutex(void) {
    values_bound(1);
    gort_lock_thread();
}
static void unlock_for_mutex(void) {
    gort_unlock_thread();
    values_bound(-1);
}

/* The goroutine stays locked to its thread if it got the mutex; once, for nested locks. */
static int mutex_take_bound(pthread_mutex_t *mutex, try_fn *take) {
    lock_for_mutex();
    int r = take(mutex);
    if ((r != 0 && r != EOWNERDEAD) || mutex_nested(mutex)) unlock_for_mutex();
    return r;
}

INLINE int mutex_release_libc(pthread_mutex_t *mutex) {
    int r = libc(pthread_mutex_unlock)(mutex);
    released(mutex, false);
    return r;
}

static int mutex_release_bound(pthread_mutex_t *mutex) {
    bool last = !mutex_nested(mutex);
    int r = mutex_release_libc(mutex);
    if (r == 0 && last) unlock_for_mutex();
    return r;
}

static int mutex_libc_try(void *mutex) { return libc(pthread_mutex_trylock)(mutex); }
static int mutex_libc_now(void *mutex) { /* unlike trylock, it reports EDEADLK */
    struct timespec over = {0, 0};
    int r = libc(pthread_mutex_timedlock)(mutex, &over);
    return r == ETIMEDOUT ? EBUSY : r;
}

static int mutex_try_marked(void *mutex) { return mutex_take_marked(mutex, owner_mark()); }
static int mutex_try_bound(void *mutex) { return mutex_take_bound(mutex, mutex_libc_now); }
static try_fn *const mutex_tries[] = {[COMMON] = mutex_libc_try,
                                      [MARKED] = mutex_try_marked,
                                      [BOUND] = mutex_try_bound,
                                      [KNOWN] = mutex_libc_now};

/* The G is pinned, or inside a blocking call: it cannot park. */
static int mutex_try_spin(pthread_mutex_t *mutex, try_fn *attempt, int64_t deadline) {
    int r;
    while ((r = attempt(mutex)) == EBUSY) {
        if (deadline != GORT_FOREVER && deadline <= gort_now()) return ETIMEDOUT;
        libc(usleep)(50);
    }
    return r;
}

/* A mutex with an owner, on a goroutine. */
static NOINLINE int mutex_lock_owned(pthread_mutex_t *mutex, try_fn *attempt, int64_t deadline) {
    int r = attempt(mutex);
    if (r != EBUSY) return r;
    return here() ? waitq_acquire(mutex, attempt, WAIT_MUTEX | mutex_unseen(mutex), deadline)
                  : mutex_try_spin(mutex, attempt, deadline);
}

/* Neither owned, shared, robust, elided, nor with a priority protocol. */
INLINE bool mutex_is_common(pthread_mutex_t *mutex) {
    return likely(load_rlx(&mutex->__data.__kind) == 0);
}

/* On a goroutine: the mutex's class; else COMMON. */
INLINE int mutex_class_here(pthread_mutex_t *mutex) {
    if (mutex_is_common(mutex) || !runner_g()) return COMMON;
    int class = mutex_class(mutex);
    return class != COMMON && is_thread_to_libc() ? KNOWN : class;
}

static NOINLINE int mutex_lock_waits(pthread_mutex_t *mutex, bool by_allocator) {
    M *m = runner_from(pthread_mutex_lock, by_allocator);
    int class = mutex_class_here(mutex);
    if (class != COMMON) return mutex_lock_owned(mutex, mutex_tries[class], GORT_FOREVER);
    if (m == NULL) return libc(pthread_mutex_lock)(mutex);
    int r = mutex_is_common(mutex) ? mutex_take_free(mutex, m->owner) : mutex_libc_try(mutex);
    if (r != EBUSY) return r;
    return !by_allocator && here() ? waitq_acquire(mutex, mutex_libc_try,
                                                   WAIT_MUTEX | mutex_unseen(mutex), GORT_FOREVER)
                                   : libc(pthread_mutex_lock)(mutex);
}

HOOK int pthread_mutex_lock(pthread_mutex_t *mutex) {
    M *m = runner_at(real.pthread_mutex_lock.tls);
    if (likely(m != NULL) && mutex_is_common(mutex) &&
        likely(mutex_take_free(mutex, m->owner) == 0))
        return 0;
    return keeping_frame(mutex_lock_waits(mutex, called_by_allocator()));
}

HOOK int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    POINT(pthread_mutex_trylock);
    int class = mutex_class_here(mutex);
    if (likely(class == COMMON)) return libc(pthread_mutex_trylock)(mutex);
    if (class == KNOWN) return libc(pthread_mutex_trylock)(mutex);
    if (class == BOUND) return mutex_take_bound(mutex, mutex_libc_try);
    int r = mutex_try_marked(mutex);
    return r == EDEADLK ? EBUSY : r;
}

/* A COMMON one on a goroutine: tried before here(), which costs a system call. */
static bool mutex_take_first(pthread_mutex_t *mutex) {
    return maybe_here() && mutex_libc_try(mutex) == 0;
}

/* On a goroutine. */
static int mutex_lock_until(pthread_mutex_t *mutex, int class, clockid_t clock,
                            const struct timespec *at) {
    int r = mutex_tries[class](mutex);
    if (r != EBUSY) return r;
    if (!valid_time(at)) return EINVAL;
    return mutex_lock_owned(mutex, mutex_tries[class], clock_deadline(clock, at));
}

HOOK int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict at) {
    POINT(pthread_mutex_timedlock);
    int class = mutex_class_here(mutex);
    if (class == COMMON && mutex_take_first(mutex)) return 0;
    if (class == COMMON && !here()) return libc(pthread_mutex_timedlock)(mutex, at);
    return keeping_frame(mutex_lock_until(mutex, class, CLOCK_REALTIME, at));
}

HOOK int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                 const struct timespec *restrict at) {
    POINT(pthread_mutex_clocklock);
    int class = mutex_class_here(mutex);
    if (class == COMMON && !maybe_here()) return libc(pthread_mutex_clocklock)(mutex, clock, at);
    if (!valid_clock(clock)) return EINVAL;
    if (class == COMMON && mutex_take_first(mutex)) return 0;
    if (class == COMMON && !here()) return libc(pthread_mutex_clocklock)(mutex, clock, at);
    return keeping_frame(mutex_lock_until(mutex, class, clock, at));
}

/* If this goroutine does not hold a MARKED one, libc unlocks it, or reports EPERM. */
static NOINLINE int mutex_unlock_owned(pthread_mutex_t *mutex, int class) {
    if (class == KNOWN) return mutex_release_libc(mutex);
    if (class == BOUND) return mutex_release_bound(mutex);
    bool mine = mutex_owner(mutex) == owner_mark();
    return mine ? mutex_release_marked(mutex) : mutex_release_libc(mutex);
}

HOOK int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (mutex_is_common(mutex) && runner_at(real.pthread_mutex_unlock.tls))
        return mutex_release(mutex);
    POINT(pthread_mutex_unlock);
    int class = mutex_class_here(mutex);
    return likely(class == COMMON) ? mutex_release_libc(mutex) : mutex_unlock_owned(mutex, class);
}

void mutex_lend(pthread_mutex_t *mutex, int from, int to) {
    if (mutex_class_here(mutex) == MARKED && mutex_owner(mutex) == from)
        store_rlx(&mutex->__data.__owner, to);
}

const void *mutex_waited_for(G *gp, int *holder) {
    const pthread_mutex_t *mutex = waitq_place(gp);
    if (mutex) *holder = load_rlx(&mutex->__data.__owner);
    return mutex;
}
