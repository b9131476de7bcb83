/*
 * gort: Go's goroutine scheduler as a C library.
 *
 * Write plain blocking code, start it with gort_go(), talk over channels: a few threads run
 * millions of such goroutines. This is the whole public interface, in reading order:
 *
 *     starting · goroutines · blocking calls · channels and select · synchronisation ·
 *     small objects · time · signals · contexts and groups · descriptors and files ·
 *     looking inside
 *
 * Conventions, once for all of them:
 *  - A call returns 0 or a count, or a negative errno value (-EPIPE, -ETIMEDOUT, ...). It never
 *    changes errno; errno itself travels with the goroutine.
 *  - Time is int64_t nanoseconds on the monotonic clock of gort_now(). A deadline is an absolute
 *    point on it; `ns` and `period` are durations.
 *  - "Blocks" means: blocks the goroutine, the thread goes on with another. Called from a plain
 *    thread, the same call blocks that thread and nothing else. A call that does not say that it
 *    blocks does not.
 *  - A name that ends in `_until` is the same call with a deadline, its last parameter: -ETIMEDOUT
 *    once that has passed. A call whose deadline has already passed makes one attempt and never
 *    blocks.
 *  - A name with `try` is the same call but never blocks: -EAGAIN (channels, select, groups) or
 *    -EBUSY (locks, semaphores) where the other would.
 *  - Any thread may call, with or without a runtime, unless the call says otherwise. A signal
 *    handler may call only gort_now and gort_id, and use errno.
 *  - Where a runtime is needed and none runs: -ENOTCONN or NULL.
 *  - In a child of fork() that was made while a runtime ran, a call returns -ENOTCONN, 0 or NULL
 *    and does nothing. But the calls on a mutex or rwmutex that return nothing still lock one that
 *    is free, and unlock it. A child made at another time is a process like any other.
 *  - Misuse (unlocking an unlocked mutex, ...) prints "gort: fatal: ..." and aborts. Blocking while
 *    pinned, in a stopped world or inside a blocking call is misuse.
 */
#ifndef GORT_H
#define GORT_H

#if !defined(__SIZEOF_POINTER__) || __SIZEOF_POINTER__ != 8
#error "gort needs a 64-bit machine"
#elif __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gort needs a little-endian machine"
#endif

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#define GORT_NORETURN __attribute__((noreturn))
#define GORT_INLINE static inline __attribute__((unused))

struct addrinfo; /* hidden by <netdb.h> in strict ISO modes */

/* The version of this header, as text and as the number major * 10000 + minor * 100 + patch. */
#define GORT_VERSION "0.2.0"
#define GORT_VERSION_NUM 200
/* The same number of the library that is linked. */
int gort_version(void);

/* Units of time, and the deadline that never passes. */
#define GORT_US ((int64_t)1000)
#define GORT_MS ((int64_t)1000000)
#define GORT_SEC ((int64_t)1000000000)
#define GORT_FOREVER INT64_MAX

/*
 * errno of the running goroutine. glibc declares the address of errno constant, so a compiler
 * keeps it over a call that moves the goroutine to another thread; this accessor is not const.
 * Define GORT_KEEP_ERRNO before including this header to keep libc's.
 */
int *gort_errno_location(void);
#ifndef GORT_KEEP_ERRNO
#undef errno
#define errno (*gort_errno_location())
#endif

/* A function that must never be preempted asynchronously: `GORT_NOPREEMPT int f(void) { ... }`.
 * It is placed in a section of its own; while the thread's program counter is in that section, a
 * request to preempt waits. Functions that it calls are not covered: use gort_pin() for those. */
#define GORT_NOPREEMPT __attribute__((noinline, section("gort_nopreempt")))

/* Tells the runtime where a module (program, library, plugin) has such functions. The code below
 * calls it when the module is loaded and unloaded; a program need not. */
void gort_nopreempt_range(const void *start, const void *end, int there) __attribute__((weak));
#ifndef GORT_INSIDE_
extern const char __start_gort_nopreempt[] __attribute__((weak, visibility("hidden")));
extern const char __stop_gort_nopreempt[] __attribute__((weak, visibility("hidden")));
static inline void gort_nopreempt_tell_(const char *start, const char *stop, int there) {
    if (start != stop && gort_nopreempt_range) gort_nopreempt_range(start, stop, there);
}
__attribute__((constructor)) static void gort_nopreempt_begin_(void) {
    gort_nopreempt_tell_(__start_gort_nopreempt, __stop_gort_nopreempt, 1);
}
__attribute__((destructor)) static void gort_nopreempt_end_(void) {
    gort_nopreempt_tell_(__start_gort_nopreempt, __stop_gort_nopreempt, 0);
}
#endif

/* ---- Starting ------------------------------------------------------------------------------ */

/* Starts the runtime, runs fn as goroutine 1 and returns what fn returned; with that the other
 * goroutines end. -EBUSY while another call is under way, -ENOMEM or -EAGAIN where the runtime
 * cannot start. Blocks the thread. Go's main.main. */
int gort_main(int (*fn)(int argc, char **argv), int argc, char **argv);

/* ---- Goroutines ---------------------------------------------------------------------------- */

/* The function of a goroutine or a timer. */
typedef void gort_fn(void *arg);

/* Zero means the default. The name is copied (31 bytes of UTF-8). stack_size is rounded up;
 * below 16 KB it counts as 16 KB, above 1 GB is -EINVAL. */
typedef struct gort_attr {
    const char *name;
    size_t stack_size;
    int thread; /* 1: a thread of its own to libc; -ENOTSUP where that cannot be */
} gort_attr;

/* Go's `go fn(arg)`. 0, -ENOMEM, -EINVAL: no fn, -ENOTCONN: no runtime. */
int gort_go(gort_fn *fn, void *arg);
/* The same with a name and a stack size; attr NULL: gort_go. */
int gort_go_with(const gort_attr *attr, gort_fn *fn, void *arg);
/* Copies size (at most 1024, else -E2BIG) bytes, aligned to 16, onto the new stack; fn gets the
 * copy, which lives as long as the goroutine. Size 0 takes NULL. */
int gort_go_copy(gort_fn *fn, const void *arg, size_t size);

/* Lets others run: the caller goes to the tail of the global queue. It is misuse wherever blocking
 * is. On a plain thread: sched_yield(2). runtime.Gosched. */
void gort_yield(void);
/* Ends the calling goroutine; in goroutine 1 the others go on. Goroutines only. runtime.Goexit. */
GORT_NORETURN void gort_exit(void);
/* The number of the calling goroutine, 0 outside of one. A runtime counts from 1, and gives none
 * twice; the next runtime begins anew. */
uint64_t gort_id(void);
/* The goroutines that exist, main and running timer functions included; 0 without a runtime,
 * -ENOTCONN in a child of fork(). runtime.NumGoroutine. */
int gort_count(void);
/* Sets the number of Ps (at most 1024) and returns the previous one; n < 1 only asks. Setting
 * blocks until the world has stopped. runtime.GOMAXPROCS. */
int gort_maxprocs(int n);
/* Ties the goroutine to its thread, which runs nothing else until the matching unlock; nests, at
 * most 65535 deep. An unlock without a lock, and both on a plain thread, do nothing.
 * runtime.LockOSThread. */
void gort_lock_thread(void);
void gort_unlock_thread(void);
/* Forbids preemption until the matching unpin, and returns the number of the P; nests. On a plain
 * thread: -ENOTCONN, and gort_unpin must not be called. procPin of Go's runtime. */
int gort_pin(void);
void gort_unpin(void);
/* Blocks until no other goroutine runs; none runs until gort_start_world. Callers take turns.
 * Goroutines only. stopTheWorld of Go's runtime. */
void gort_stop_world(void);
void gort_start_world(void);

/* ---- Blocking calls ------------------------------------------------------------------------ */

/* Stand around a call that is usually short and may block its thread: the P stays near and is
 * handed on when the call takes long. gort_exit_syscall blocks until there is a P, and keeps errno.
 * On a plain thread they do nothing. entersyscall and exitsyscall of Go's runtime. */
void gort_enter_syscall(void);
void gort_exit_syscall(void);
/* Calls fn, which surely blocks its thread for long, and returns its value: the P is handed on at
 * once. Blocks, and keeps errno. On a plain thread it just calls fn. */
long gort_blocking(long (*fn)(void *), void *arg);

/* ---- Channels and select ------------------------------------------------------------------- */

/* A channel, counted by reference. NULL is never ready: send and recv block for ever, try is
 * -EAGAIN, len and cap are 0, retain and release do nothing. Go's chan. */
typedef struct gort_chan gort_chan;

/* Makes one with room for capacity elements; 0: every send waits for its receiver. Elements of
 * size 0 are pure signals. NULL: no memory, or the size overflows. Go's make(chan T, n). */
gort_chan *gort_chan_new(size_t elem_size, size_t capacity);
/* Takes one more reference, and returns the channel. */
gort_chan *gort_chan_retain(gort_chan *);
/* Drops a reference; the last one frees the channel, which is misuse while it has waiters. */
void gort_chan_release(gort_chan *);
/* Copies *value into the channel or to a receiver. 0, -EPIPE: closed. Blocks while there is no
 * room. Go's c <- v. */
int gort_chan_send(gort_chan *, const void *value);
int gort_chan_send_until(gort_chan *, const void *value, int64_t deadline);
int gort_chan_try_send(gort_chan *, const void *value);
/* Takes an element into *value; NULL drops it. 0, -EPIPE: closed and drained, *value is zeroed.
 * Blocks while there is none. Go's v, ok := <-c. */
int gort_chan_recv(gort_chan *, void *value);
int gort_chan_recv_until(gort_chan *, void *value, int64_t deadline);
int gort_chan_try_recv(gort_chan *, void *value);
/* Closes it: nothing more is sent. Receivers get what is left, then -EPIPE; senders get -EPIPE,
 * also those that wait. 0, -EPIPE: it was closed already. NULL is misuse. Go's close(c). */
int gort_chan_close(gort_chan *);
/* The elements in the channel, and the room for them. Go's len(c) and cap(c). */
size_t gort_chan_len(gort_chan *);
size_t gort_chan_cap(gort_chan *);

/* One case of a select: receive into value or send from it. A NULL channel switches it off. result
 * is written in the case that ran: 0, or -EPIPE where its channel was closed. */
typedef struct gort_case {
    int op; /* GORT_RECV or GORT_SEND */
    gort_chan *ch;
    void *value;
    int result;
} gort_case;
enum { GORT_RECV = 1, GORT_SEND = 2 };

/* Runs one of n cases and returns its index; of several that are ready, one at random. -EINVAL: n
 * is below 0 or above 65536, or an op is unknown. Blocks while none is ready; n 0: for ever.
 * Go's select; gort_try_select is one with a default case. */
int gort_select(gort_case *cases, int n);
int gort_select_until(gort_case *cases, int n, int64_t deadline);
int gort_try_select(gort_case *cases, int n);

/* For C: a case, and a select over the cases listed. The index alone does not tell whether the
 * channel was closed; the forms with `result` write the result of the case that ran to *result
 * (an int *), and nothing where none ran. */
#ifndef __cplusplus
#define gort_on_recv(chan, ptr) ((gort_case){GORT_RECV, (chan), (void *)(ptr), 0})
#define gort_on_send(chan, ptr) ((gort_case){GORT_SEND, (chan), (void *)(ptr), 0})
#define gort_select_of(...) gort_select(GORT_CASES_(__VA_ARGS__))
#define gort_try_select_of(...) gort_try_select(GORT_CASES_(__VA_ARGS__))
#define gort_select_until_of(deadline, ...) gort_select_until(GORT_CASES_(__VA_ARGS__), (deadline))
#define gort_select_result_of(result, ...) \
    gort_select_result_((result), GORT_CASES_(__VA_ARGS__), GORT_FOREVER)
#define gort_try_select_result_of(result, ...) \
    gort_try_select_result_((result), GORT_CASES_(__VA_ARGS__))
#define gort_select_until_result_of(deadline, result, ...) \
    gort_select_result_((result), GORT_CASES_(__VA_ARGS__), (deadline))

#define GORT_CASES_(...) \
    (gort_case[]){__VA_ARGS__}, (int)(sizeof((gort_case[]){__VA_ARGS__}) / sizeof(gort_case))
GORT_INLINE int gort_select_result_(int *result, gort_case *cases, int n, int64_t deadline) {
    int i = gort_select_until(cases, n, deadline);
    if (i >= 0) *result = cases[i].result;
    return i;
}
GORT_INLINE int gort_try_select_result_(int *result, gort_case *cases, int n) {
    int i = gort_try_select(cases, n);
    if (i >= 0) *result = cases[i].result;
    return i;
}
#endif

/* A typed veneer at file scope, without a semicolon: `GORT_CHAN_TYPE(ints, int)` gives the type
 * `ints` and ints_new(cap), ints_send(c, v), ints_recv(c, &v) and so on as above; ints_on_recv(c,
 * &v) and ints_on_send(c, &v) are cases, and ints_chan(c) is the gort_chan. A channel or a value of
 * another type does not compile. So that this holds for gcc before 14 too, which only warns of a
 * pointer of another type in C, such pointers are errors behind this line, as in C++; define
 * GORT_KEEP_WARNINGS before including this header to be warned only. */
#if !defined(__cplusplus) && !defined(GORT_KEEP_WARNINGS)
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif
#ifdef __cplusplus
#define GORT_AS_CHAN_(c) (reinterpret_cast<gort_chan *>(c))
#define GORT_FROM_CHAN_(name, c) (reinterpret_cast<name *>(c))
#define GORT_VALUE_(v) (const_cast<void *>(static_cast<const void *>(v)))
#else
#define GORT_AS_CHAN_(c) ((gort_chan *)(c))
#define GORT_FROM_CHAN_(name, c) ((name *)(c))
#define GORT_VALUE_(v) ((void *)(uintptr_t)(v))
#endif
#define GORT_CHAN_TYPE(name, T)                                                                \
    typedef struct name name;                                                                  \
    GORT_INLINE gort_chan *name##_chan(name *c) { return GORT_AS_CHAN_(c); }                   \
    GORT_INLINE name *name##_new(size_t cap) {                                                 \
        return GORT_FROM_CHAN_(name, gort_chan_new(sizeof(T), cap));                           \
    }                                                                                          \
    GORT_INLINE name *name##_retain(name *c) {                                                 \
        return GORT_FROM_CHAN_(name, gort_chan_retain(GORT_AS_CHAN_(c)));                      \
    }                                                                                          \
    GORT_INLINE void name##_release(name *c) { gort_chan_release(GORT_AS_CHAN_(c)); }          \
    GORT_INLINE int name##_send(name *c, T v) { return gort_chan_send(GORT_AS_CHAN_(c), &v); } \
    GORT_INLINE int name##_recv(name *c, T *v) { return gort_chan_recv(GORT_AS_CHAN_(c), v); } \
    GORT_INLINE int name##_send_until(name *c, T v, int64_t deadline) {                        \
        return gort_chan_send_until(GORT_AS_CHAN_(c), &v, deadline);                           \
    }                                                                                          \
    GORT_INLINE int name##_recv_until(name *c, T *v, int64_t deadline) {                       \
        return gort_chan_recv_until(GORT_AS_CHAN_(c), v, deadline);                            \
    }                                                                                          \
    GORT_INLINE int name##_try_send(name *c, T v) {                                            \
        return gort_chan_try_send(GORT_AS_CHAN_(c), &v);                                       \
    }                                                                                          \
    GORT_INLINE int name##_try_recv(name *c, T *v) {                                           \
        return gort_chan_try_recv(GORT_AS_CHAN_(c), v);                                        \
    }                                                                                          \
    GORT_INLINE int name##_close(name *c) { return gort_chan_close(GORT_AS_CHAN_(c)); }        \
    GORT_INLINE size_t name##_len(name *c) { return gort_chan_len(GORT_AS_CHAN_(c)); }         \
    GORT_INLINE size_t name##_cap(name *c) { return gort_chan_cap(GORT_AS_CHAN_(c)); }         \
    GORT_INLINE gort_case name##_on_recv(name *c, T *v) {                                      \
        gort_case one = {GORT_RECV, GORT_AS_CHAN_(c), v, 0};                                   \
        return one;                                                                            \
    }                                                                                          \
    GORT_INLINE gort_case name##_on_send(name *c, T const *v) {                                \
        gort_case one = {GORT_SEND, GORT_AS_CHAN_(c), GORT_VALUE_(v), 0};                      \
        return one;                                                                            \
    }

/* ---- Synchronisation: structs that are valid when zeroed ----------------------------------- */

/* They may be static or embedded, need no end, and must not be copied while in use. Their members
 * are the library's. */

/* A lock, zeroed: unlocked. A goroutine that has waited for 1 ms gets it before later ones.
 * sync.Mutex. */
typedef struct gort_mutex {
    uint32_t state_, sema_;
} gort_mutex;
/* Many readers or one writer, zeroed: unlocked. A waiting writer holds back new readers.
 * sync.RWMutex. */
typedef struct gort_rwmutex {
    gort_mutex w_;
    uint32_t writer_sema_, reader_sema_;
    int32_t readers_, leaving_;
} gort_rwmutex;
/* A count of what is under way, zeroed: nothing. sync.WaitGroup. */
typedef struct gort_wg {
    uint64_t state_;
    void *waiters_;
} gort_wg;
/* What is done once, zeroed: not yet. sync.Once. */
typedef struct gort_once {
    uint32_t done_, pad_;
    gort_mutex m_;
} gort_once;
/* A condition, zeroed: no waiters. sync.Cond. */
typedef struct gort_cond {
    uint32_t lock_, pad_;
    void *head_, *tail_;
} gort_cond;
/* Permits, zeroed: none; gort_sem_release brings the first. golang.org/x/sync/semaphore. */
typedef struct gort_sem {
    uint32_t lock_, pad_;
    int64_t permits_;
    void *head_, *tail_;
} gort_sem;

/* Locks. Blocks while it is locked. Mutex.Lock, TryLock. */
void gort_mutex_lock(gort_mutex *);
int gort_mutex_lock_until(gort_mutex *, int64_t deadline);
int gort_mutex_try_lock(gort_mutex *);
/* Any goroutine or thread may unlock; one that is not locked is misuse. Mutex.Unlock. */
void gort_mutex_unlock(gort_mutex *);

/* Locks for reading. Blocks while a writer has it or waits. RWMutex.RLock, TryRLock. */
void gort_rwmutex_rlock(gort_rwmutex *);
int gort_rwmutex_rlock_until(gort_rwmutex *, int64_t deadline);
int gort_rwmutex_try_rlock(gort_rwmutex *);
/* Locks for writing. Blocks while it is locked in either way. RWMutex.Lock, TryLock. */
void gort_rwmutex_lock(gort_rwmutex *);
int gort_rwmutex_lock_until(gort_rwmutex *, int64_t deadline);
int gort_rwmutex_try_lock(gort_rwmutex *);
/* What is not locked that way is misuse. RWMutex.RUnlock, Unlock. */
void gort_rwmutex_runlock(gort_rwmutex *);
void gort_rwmutex_unlock(gort_rwmutex *);

/* Adds n, which may be negative; gort_wg_done takes one away. A sum of 0 wakes the waiters. A sum
 * below 0 or above 2147483647 is misuse. WaitGroup.Add, Done. */
void gort_wg_add(gort_wg *, int n);
void gort_wg_done(gort_wg *);
/* Blocks until the count is 0. WaitGroup.Wait. */
void gort_wg_wait(gort_wg *);
int gort_wg_wait_until(gort_wg *, int64_t deadline);
/* Adds one, starts fn, and takes one away when fn ends. The errors of gort_go. WaitGroup.Go. */
int gort_wg_go(gort_wg *, gort_fn *fn, void *arg);

/* Calls fn the first time. Blocks the other callers until that call of fn is over. Called for the
 * same gort_once inside fn it is misuse. Once.Do. */
void gort_once_do(gort_once *, void (*fn)(void *), void *arg);

/* Unlocks the mutex, blocks until the condition is signalled, and locks the mutex again, also after
 * -ETIMEDOUT. Never wakes without a signal. Cond.Wait. */
void gort_cond_wait(gort_cond *, gort_mutex *);
int gort_cond_wait_until(gort_cond *, gort_mutex *, int64_t deadline);
/* Wakes the waiter that has waited longest, or all. The caller need not hold the mutex.
 * Cond.Signal, Broadcast. */
void gort_cond_signal(gort_cond *);
void gort_cond_broadcast(gort_cond *);

/* Takes n permits, n >= 0. Blocks until there are as many; first come first served.
 * Weighted.Acquire, TryAcquire. */
void gort_sem_acquire(gort_sem *, int64_t n);
int gort_sem_acquire_until(gort_sem *, int64_t n, int64_t deadline);
int gort_sem_try_acquire(gort_sem *, int64_t n);
/* Gives n permits, n >= 0; more than the count can hold is misuse. Weighted.Release. */
void gort_sem_release(gort_sem *, int64_t n);

/* A cache of objects for each P, which may drop them at any time. sync.Pool. */
typedef struct gort_pool gort_pool;
/* make(arg) makes an object where the pool has none; drop, if any, gets those that the pool drops.
 * NULL: no memory. */
gort_pool *gort_pool_new(void *(*make)(void *arg), void (*drop)(void *object), void *arg);
/* An object that was put, else make's; NULL where make is NULL. Blocks if make does. Pool.Get. */
void *gort_pool_get(gort_pool *);
/* Gives an object to the pool; NULL does nothing. Pool.Put. */
void gort_pool_put(gort_pool *, void *object);
/* Drops all objects and the pool, which must not be used any more. */
void gort_pool_free(gort_pool *);

/* ---- Small objects ------------------------------------------------------------------------- */

/* As malloc and free, from the cache of the P: no lock, no atomics in the usual case. Aligned to
 * 16, not cleared; size 0 returns a unique pointer. What is larger than 4096 bytes is malloc's. An
 * object may be freed on another P, in a plain thread, in a later runtime; freeing NULL does
 * nothing, an object twice is misuse. Where a sanitizer or valgrind watches, every object is
 * malloc's. NULL: no memory. */
void *gort_alloc(size_t size);
void gort_free(void *object);

/* ---- Time ---------------------------------------------------------------------------------- */

/* The monotonic clock. */
int64_t gort_now(void);
/* Blocks for ns, or until the deadline; where that is over already it is gort_yield. 0, or the
 * error of the context in use. time.Sleep. */
int gort_sleep(int64_t ns);
int gort_sleep_until(int64_t deadline);

/* A timer calls its function in a goroutine of its own. It needs a runtime to be armed. */
typedef struct gort_timer gort_timer;
/* Calls fn once, after ns; <= 0: at once. NULL: no fn, no memory or no runtime. time.AfterFunc. */
gort_timer *gort_timer_new(int64_t ns, gort_fn *fn, void *arg);
/* Calls fn every period, in a new goroutine each time; <= 0: NULL. time.NewTicker. */
gort_timer *gort_ticker_new(int64_t period, gort_fn *fn, void *arg);
/* 1: it was armed and is not any more; 0: it had fired or was stopped. Does not wait for fn.
 * Timer.Stop. */
int gort_timer_stop(gort_timer *);
/* As gort_timer_stop, then arms it again. A ticker gets ns as its period, <= 0: -EINVAL.
 * Timer.Reset. */
int gort_timer_reset(gort_timer *, int64_t ns);
/* Stops it and drops it; allowed from its own fn and while fn runs. */
void gort_timer_free(gort_timer *);
/* A channel on which one int64_t, the time, arrives after ns; the caller releases it, at any time.
 * NULL: no memory or no runtime. time.After. */
gort_chan *gort_after(int64_t ns);
/* A channel on which the time arrives every period. It holds one tick; further ones are dropped for
 * a slow receiver. Free *owner, a timer, and release the channel, in any order. NULL: period <= 0,
 * no memory or no runtime. time.Tick. */
gort_chan *gort_tick(int64_t period, gort_timer **owner);

/* ---- Signals ------------------------------------------------------------------------------- */

/* Both may wait for another call of theirs, so they are misuse while pinned and in a stopped world;
 * inside a blocking call they are allowed. */

/* Each delivery of signo sends one int on the channel, dropped where there is no room. 0; -EINVAL:
 * elements that are no ints, or a signal that cannot be watched: SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL, SIGURG and the one that preempts. The watch keeps a reference to the channel.
 * signal.Notify. */
int gort_signal_notify(gort_chan *ints, int signo);
/* Ends all watching of the channel. A signal that no channel watches any more acts as before, or as
 * the program has set it since. signal.Stop. */
int gort_signal_stop(gort_chan *ints);

/* ---- Contexts and groups ------------------------------------------------------------------- */

/* Says whether work is still wanted. Contexts form a tree: cancelling one cancels its children.
 * NULL: one that is never done; cancel and release do nothing. Go's context.Context. */
typedef struct gort_ctx gort_ctx;
/* One below parent, or a root where that is NULL. NULL: no memory, here and in the next three.
 * context.WithCancel. */
gort_ctx *gort_ctx_new(gort_ctx *parent);
/* One that is cancelled when the deadline passes, or after ns. context.WithDeadline, and
 * WithTimeout. */
gort_ctx *gort_ctx_with_deadline(gort_ctx *parent, int64_t deadline);
gort_ctx *gort_ctx_with_timeout(gort_ctx *parent, int64_t ns);
/* One that carries a value under key, an address. context.WithValue. */
gort_ctx *gort_ctx_with_value(gort_ctx *parent, const void *key, void *value);
/* The value of the nearest context, upwards from here, that has the key; NULL: none.
 * Context.Value. */
void *gort_ctx_value(gort_ctx *, const void *key);
/* Cancels it and all below it; the first cause, a negative errno value, stays. The cancel function
 * of Go's context, context.WithCancelCause. */
void gort_ctx_cancel(gort_ctx *);
void gort_ctx_cancel_cause(gort_ctx *, int err);
/* A channel that is closed on cancellation. It is the context's: retain it to keep it.
 * Context.Done. */
gort_chan *gort_ctx_done(gort_ctx *);
/* 0; once it is done, -ECANCELED or -ETIMEDOUT: whether it, or one above it, was cancelled or its
 * deadline passed. Context.Err. */
int gort_ctx_err(gort_ctx *);
/* The cause it was cancelled with, else the same. context.Cause. */
int gort_ctx_cause(gort_ctx *);
/* When it will be done at the latest; GORT_FOREVER: there is no deadline. Context.Deadline. */
int64_t gort_ctx_deadline(gort_ctx *);
/* Calls fn in a goroutine of its own when the context is done, at once where it is. 0, -EINVAL: no
 * context or no fn, -ENOMEM, -ENOTCONN. context.AfterFunc. */
int gort_ctx_after(gort_ctx *, gort_fn *fn, void *arg);
/* The calling goroutine (or plain thread) uses this context from now on, NULL: none. While it does,
 * every call of its that blocks and can report an error ends with gort_ctx_err's value once the
 * context is done: channels and select, sleep, descriptors, dial, accept, getaddrinfo, and the
 * `_until` forms. Such a call makes one attempt where the context is done already. Calls without a
 * result, gort_group_go, gort_group_wait, gort_blocking and calls on regular files are not ended.
 * The use holds a reference, ends with the goroutine, and is not inherited by those it starts; the
 * functions of a group begin with the group's context in use. A select that is ended has run no
 * case; one on the context's own channel runs that case. Returns the context that was in use,
 * without a reference. */
gort_ctx *gort_ctx_use(gort_ctx *);
/* The context in use, without a reference; NULL: none. */
gort_ctx *gort_ctx_used(void);
/* Cancels it and drops it, once; contexts may be released in any order. */
void gort_ctx_release(gort_ctx *);

/* Functions that run as goroutines, and whose first error cancels the rest.
 * golang.org/x/sync/errgroup. */
typedef struct gort_group gort_group;
/* One whose context is below parent; at most limit members run, <= 0: any number. NULL: no memory.
 * errgroup.WithContext, Group.SetLimit. */
gort_group *gort_group_new(gort_ctx *parent, int limit);
/* Starts fn with the group's context; a negative result of fn cancels that, and is the cause. 0,
 * -EINVAL: no fn, -ENOMEM, -ENOTCONN. Blocks while limit members run. It is misuse where all
 * members that run wait here for a place in their own group. Group.Go, TryGo. */
int gort_group_go(gort_group *, int (*fn)(gort_ctx *, void *), void *arg);
int gort_group_try_go(gort_group *, int (*fn)(gort_ctx *, void *), void *arg);
/* Blocks until all have ended, frees the group and returns the first negative result, or 0.
 * Group.Wait. */
int gort_group_wait(gort_group *);

/* ---- Descriptors and files ----------------------------------------------------------------- */

/* As their POSIX namesakes, with a count, a descriptor or -errno as the result. Each blocks until
 * it can go on, whether or not the descriptor is O_NONBLOCK. They never return -EINTR, and -EAGAIN
 * with MSG_DONTWAIT only. The runtime may set O_NONBLOCK: gort_connect does and leaves it so, and
 * what gort_dial and gort_listen return has it, and CLOEXEC. A read or receive returns what is
 * there, even if that is less than SO_RCVLOWAT. A write or send may move less than it was asked to,
 * on a blocking descriptor, too; gort_write_full writes all. A call that has moved some bytes
 * returns their number, and the error shows on the next call. On regular files a deadline is
 * ignored. */
ssize_t gort_read(int fd, void *buf, size_t n);
ssize_t gort_read_until(int fd, void *buf, size_t n, int64_t deadline);
ssize_t gort_write(int fd, const void *buf, size_t n);
ssize_t gort_write_until(int fd, const void *buf, size_t n, int64_t deadline);
ssize_t gort_readv(int fd, const struct iovec *iov, int n);
ssize_t gort_readv_until(int fd, const struct iovec *iov, int n, int64_t deadline);
ssize_t gort_writev(int fd, const struct iovec *iov, int n);
ssize_t gort_writev_until(int fd, const struct iovec *iov, int n, int64_t deadline);
ssize_t gort_recv(int fd, void *buf, size_t n, int flags);
ssize_t gort_recv_until(int fd, void *buf, size_t n, int flags, int64_t deadline);
ssize_t gort_send(int fd, const void *buf, size_t n, int flags);
ssize_t gort_send_until(int fd, const void *buf, size_t n, int flags, int64_t deadline);
ssize_t gort_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *sa, socklen_t *len);
ssize_t gort_recvfrom_until(int fd, void *buf, size_t n, int flags, struct sockaddr *sa,
                            socklen_t *len, int64_t deadline);
ssize_t gort_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa,
                    socklen_t len);
ssize_t gort_sendto_until(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa,
                          socklen_t len, int64_t deadline);
ssize_t gort_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t gort_recvmsg_until(int fd, struct msghdr *msg, int flags, int64_t deadline);
ssize_t gort_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t gort_sendmsg_until(int fd, const struct msghdr *msg, int flags, int64_t deadline);
/* Move all n bytes, or return an error and do not tell how many they moved; -ENODATA: the end came
 * before. io.ReadFull. */
ssize_t gort_read_full(int fd, void *buf, size_t n);
ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline);
ssize_t gort_write_full(int fd, const void *buf, size_t n);
ssize_t gort_write_full_until(int fd, const void *buf, size_t n, int64_t deadline);
/* A descriptor with O_NONBLOCK and CLOEXEC, without TCP_NODELAY. Blocks until a peer connects. */
int gort_accept(int fd, struct sockaddr *sa, socklen_t *len);
int gort_accept_until(int fd, struct sockaddr *sa, socklen_t *len, int64_t deadline);
/* Blocks until it is connected. After -ETIMEDOUT the socket can only be closed. */
int gort_connect(int fd, const struct sockaddr *sa, socklen_t len);
int gort_connect_until(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline);
/* poll(2): the number of descriptors with events, 0 after timeout_ms (< 0: never). Blocks until
 * then. gort_poll_until returns -ETIMEDOUT instead of 0; every revents is 0 then, too. */
int gort_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int gort_poll_until(struct pollfd *fds, nfds_t n, int64_t deadline);
/* Closes fd; every call that waits on it returns -EBADF. */
int gort_close(int fd);
/* shutdown(2): no more reads (SHUT_RD), writes (SHUT_WR), or both. Calls that wait on that side try
 * again: a read returns 0, a write -EPIPE, an accept -EINVAL. The number stays open: this is how
 * another goroutine's connection is stopped. Conn.CloseRead, CloseWrite. */
int gort_shutdown(int fd, int how);
/* Copies from src to dst until the end of src: the number of bytes, or an error, even after some
 * were copied. What was read and not written yet is lost then. Blocks as reads and writes do. A
 * context in use ends it after any piece, also between regular files. io.Copy. */
ssize_t gort_copy(int dst, int src);

/* Buffered reading of a descriptor, by one goroutine at a time. Errors of gort_read, -ETIMEDOUT or
 * -ECANCELED of a context too, lose nothing: the next call goes on. bufio.Reader. */
typedef struct gort_reader gort_reader;
/* limit: the longest line, without its end; 0: 64 KB. fd stays the caller's. NULL: no memory. */
gort_reader *gort_reader_new(int fd, size_t limit);
/* The deadline of every later call on the reader; GORT_FOREVER, as at first: none.
 * Conn.SetReadDeadline. */
void gort_reader_deadline(gort_reader *, int64_t deadline);
/* The next line: its length without "\n" or "\r\n", and where it is, with a NUL behind it, until
 * the next call. What is left at the end of the stream is the last line; then -ENODATA. -EMSGSIZE:
 * longer than the limit; the next call goes on behind the end of that line. */
ssize_t gort_reader_line(gort_reader *, char **line);
/* The same up to another end, a character and no deadline; "\r" is nothing special.
 * Reader.ReadSlice. */
ssize_t gort_reader_until(gort_reader *, char end, char **text);
/* As gort_read, from the buffer first. */
ssize_t gort_reader_read(gort_reader *, void *buf, size_t n);
/* Drops the reader with what it has read; fd stays open. NULL does nothing. */
void gort_reader_free(gort_reader *);

/* Buffered writing, by one goroutine at a time. After an error the next call goes on with what is
 * not written yet. bufio.Writer. */
typedef struct gort_writer gort_writer;
/* room: for that many bytes; 0: 64 KB. fd stays the caller's. NULL: no memory. */
gort_writer *gort_writer_new(int fd, size_t room);
/* The deadline of every later call on the writer; GORT_FOREVER, as at first: none.
 * Conn.SetWriteDeadline. */
void gort_writer_deadline(gort_writer *, int64_t deadline);
/* Takes n bytes, and writes where there is no room. n; less, where an error came after some; the
 * error, where it took none. */
ssize_t gort_writer_write(gort_writer *, const void *buf, size_t n);
/* The same with text: its length. Taken as a whole or not at all; where it is longer than the room,
 * that grows for it and stays so. */
ssize_t gort_writer_printf(gort_writer *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes all that was taken: 0 or an error. */
int gort_writer_flush(gort_writer *);
/* Drops the writer without a flush, with what it has not written; fd stays open. NULL does
 * nothing. */
void gort_writer_free(gort_writer *);

/* Files, and names. Each blocks, by io_uring or on a thread of its own; none has a deadline.
 * gort_getaddrinfo returns 0 or an EAI_ code, -ENOTCONN in a child of fork(), or the error of the
 * context in use. */
int gort_open(const char *path, int flags, mode_t mode);
ssize_t gort_pread(int fd, void *buf, size_t n, off_t offset);
ssize_t gort_pwrite(int fd, const void *buf, size_t n, off_t offset);
int gort_fsync(int fd);
int gort_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res);

/* Addresses: 127.0.0.1:8080, [::1]:0, localhost:80, :80 (both families), unix:/path,
 * unix:@abstract. -EINVAL: malformed, -ENOENT: no such name, -EHOSTUNREACH: no name server. */

/* Words for the error of a call that was given this address ("no such host": strerror has "No such
 * file or directory" for it). NULL: for what gort_getaddrinfo returned. Blocks nothing, any thread.
 * The text is valid until the thread's next call of it or of strerror. */
const char *gort_addr_strerror(const char *addr, int error);

/* A listening socket; backlog <= 0: the largest. -EADDRINUSE: taken, or the unix path is a file
 * that is no socket. Nothing but the program removes a unix socket's file. Blocks while a name is
 * looked up. With a unix address it may wait for another such call: misuse while pinned and in a
 * stopped world, allowed inside a blocking call. net.Listen. */
int gort_listen(const char *addr, int backlog);
/* A UDP socket bound to an address, with O_NONBLOCK and CLOEXEC, for gort_recvfrom and gort_sendto.
 * -EADDRINUSE: taken, -EINVAL: a unix address. Blocks while a name is looked up.
 * net.ListenPacket. */
int gort_listen_udp(const char *addr);
/* A connected socket, TCP_NODELAY set. Blocks until it is connected; the deadline covers the lookup
 * of a name and all of its addresses. gort_dial is the same call. net.Dialer.Dial. */
int gort_dial_until(const char *addr, int64_t deadline);
int gort_dial(const char *addr, int64_t deadline);
/* Writes the socket's own address, as above, with its port: 0, -ENOSPC: size is too small. A unix
 * socket that was dialled has none: "unix:", which no call takes. Conn.LocalAddr, Listener.Addr. */
int gort_local_addr(int fd, char *buf, size_t size);
/* The same of its peer; -ENOTCONN: it has none. Conn.RemoteAddr. */
int gort_peer_addr(int fd, char *buf, size_t size);

/* ---- Looking inside ------------------------------------------------------------------------ */

/* The figures of the runtime. Later versions add fields at the end. Counters never go back. */
typedef struct gort_stats {
    uint64_t goroutines;           /* that exist now */
    uint64_t goroutines_created;   /* so far */
    uint64_t maxprocs;             /* Ps */
    uint64_t idle_procs;           /*   that no thread holds */
    uint64_t threads;              /* alive, the monitor included */
    uint64_t idle_threads;         /*   asleep in the pool */
    uint64_t spinning_threads;     /*   searching for work */
    uint64_t global_queue;         /* goroutines ready to run in the global queue */
    uint64_t local_queues;         /*   and in the local ones: sum, LIFO slots included */
    uint64_t switches;             /* times a goroutine was put on a P */
    uint64_t steals;               /* that succeeded */
    uint64_t stolen;               /* goroutines they moved */
    uint64_t global_gets;          /* goroutines taken from the global queue */
    uint64_t overflows;            /* times a local queue overflowed */
    uint64_t handoffs;             /* Ps taken from a thread in a blocking call */
    uint64_t preempt_requests;     /* goroutines asked to give way */
    uint64_t preemptions;          /*   that did */
    uint64_t timers;               /* armed, sleepers and deadlines included */
    uint64_t netpoll_wakeups;      /* goroutines the poller made ready */
    uint64_t stack_bytes_reserved; /* address space of stacks */
    uint64_t stack_bytes_cached;   /*   that is kept for reuse */
    uint64_t syscalls_blocking;    /* announced blocking calls */
    uint64_t threads_created;      /* so far */
    uint64_t retakes;              /* Ps taken from a thread in a call nobody announced */
    uint64_t allocs;               /* small objects given out, those of the runtime included */
    uint64_t frees;                /*   and taken back */
    uint64_t alloc_bytes_used;     /* memory of spans that hold small objects */
    uint64_t alloc_bytes_cached;   /*   and of free ones */
    uint64_t forced_collections;   /* asked for by the monitor, in a program with a collector */
    /* 1: guard regions, 2: mprotect, 3: some stacks have only canaries */
    uint64_t stack_guard_kind;
    /* 0: lazy stacks, 1: hybrid, 2: compact (gort(7), -fsplit-stack) */
    uint64_t stack_mode;
    uint64_t stack_segments; /* segments that goroutines have grown by and not left */
    /* times the program closed the runtime's own, as closefrom(3) does */
    uint64_t descriptors_remade;
} gort_stats;

/* Writes a consistent snapshot into the first size bytes and no further, whatever this library
 * knows; fields that it does not know are 0. Cheap. */
void gort_stats_read_sized(gort_stats *, size_t size);
/* The same for the whole of the caller's gort_stats. runtime/metrics.Read. */
#ifndef GORT_INSIDE_
GORT_INLINE void gort_stats_read(gort_stats *stats) { gort_stats_read_sized(stats, sizeof *stats); }
#else
void gort_stats_read(gort_stats *); /* for callers without this header: as of version 0.2 */
#endif

/* Writes every goroutine, with its state and backtrace, to fd. Blocks the thread if writing does.
 * runtime.Stack. */
void gort_dump(int fd);
/* Records an execution trace into a new file until gort_trace_stop. 0, -EBUSY: one is running, or
 * an error of open(2). gort_trace_stop: -EINVAL: none is running. Both block while the file does.
 * trace.Start, Stop. */
int gort_trace_start(const char *path);
int gort_trace_stop(void);
/* A named stretch of the calling goroutine in the trace; the first 31 bytes of the name are copied,
 * and regions nest: an end ends the last one, whose name it is given, unchecked. While no trace is
 * recorded, and on a plain thread, they do nothing. trace.StartRegion. */
void gort_region_begin(const char *name);
void gort_region_end(const char *name);
/* Serves the live page on an address until gort_main returns. The address is as for gort_listen,
 * but without a host it is on 127.0.0.1. 0 or the errors of gort_listen. Blocks as that does.
 * net/http/pprof. */
int gort_debug_listen(const char *addr);

#ifdef __cplusplus
}
#endif
#endif
