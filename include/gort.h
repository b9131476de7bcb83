/*
 * gort: Go's goroutine scheduler as a C library.
 *
 * Write plain blocking code, start it with gort_go(), talk over channels; a few threads run
 * millions of such goroutines. This is the whole public interface, in reading order:
 *
 *     starting · goroutines · blocking calls · channels and select · synchronisation · time ·
 *     signals · contexts and groups · descriptors and files · looking inside
 *
 * Conventions, once for all of them:
 *  - A call returns 0 or a count, or a negative errno value (-EPIPE, -ETIMEDOUT, ...). It never
 *    changes errno; errno itself travels with the goroutine.
 *  - Time is int64_t nanoseconds on the monotonic clock of gort_now(). A deadline is an absolute
 *    point on it. `_until` twins return -ETIMEDOUT once theirs has passed; one that has already
 *    passed makes one attempt and never parks.
 *  - "Blocks" means: blocks the goroutine, the thread goes on with another. Called from a plain
 *    thread, the same call blocks that thread and nothing else.
 *  - Misuse (unlocking an unlocked mutex, ...) prints "gort: fatal: ..." and aborts.
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
#define GORT_NORETURN [[noreturn]]
#else
#define GORT_NORETURN _Noreturn
#endif

struct addrinfo; /* hidden by <netdb.h> in strict ISO modes */

#define GORT_VERSION "0.1.0"

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
 * It is placed in a section of its own; while the thread's program counter is there, a request
 * waits. Functions that it calls are not covered: use gort_pin() for those. */
#define GORT_NOPREEMPT __attribute__((noinline, section("gort_nopreempt")))

/* Each module (program, library, plugin) reports its section of them to the runtime, by itself. */
void gort_nopreempt_range(const void *start, const void *end, int there) __attribute__((weak));
#ifndef GORT_INSIDE_
extern const char __start_gort_nopreempt[] __attribute__((weak, visibility("hidden")));
extern const char __stop_gort_nopreempt[] __attribute__((weak, visibility("hidden")));
__attribute__((constructor)) static void gort_nopreempt_begin_(void) {
    if (&__start_gort_nopreempt[0] != &__stop_gort_nopreempt[0] && gort_nopreempt_range)
        gort_nopreempt_range(__start_gort_nopreempt, __stop_gort_nopreempt, 1);
}
__attribute__((destructor)) static void gort_nopreempt_end_(void) {
    if (&__start_gort_nopreempt[0] != &__stop_gort_nopreempt[0] && gort_nopreempt_range)
        gort_nopreempt_range(__start_gort_nopreempt, __stop_gort_nopreempt, 0);
}
#endif

/* ---- Starting ------------------------------------------------------------------------------ */

/* Starts the runtime, runs fn as goroutine 1 and returns what it returned. -EBUSY while another
 * call is under way, -ENOMEM or -EAGAIN where the runtime cannot start. Blocks the thread. */
int gort_main(int (*fn)(int argc, char **argv), int argc, char **argv);

/* ---- Goroutines ---------------------------------------------------------------------------- */

typedef void gort_fn(void *arg);

/* Zero means the default. The name is copied (31 bytes). stack_size is rounded up; below 16 KB
 * it counts as 16 KB, above 1 GB is -EINVAL. */
typedef struct gort_attr {
    const char *name;
    size_t stack_size;
} gort_attr;

/* Go's `go fn(arg)`. 0, -ENOMEM, -EINVAL: no fn, -ENOTCONN: no runtime. Never blocks; any
 * thread. */
int gort_go(gort_fn *fn, void *arg);
int gort_go_with(const gort_attr *attr, gort_fn *fn, void *arg);
/* Copies size (at most 1024, else -E2BIG) bytes, aligned to 16, onto the new stack; fn gets the
 * copy, which lives as long as the goroutine. */
int gort_go_copy(gort_fn *fn, const void *arg, size_t size);

void gort_yield(void);              /* runtime.Gosched: to the tail of the global queue */
GORT_NORETURN void gort_exit(void); /* runtime.Goexit; goroutines only */
uint64_t gort_id(void);             /* from 1, never reused; 0 outside a goroutine */
int gort_count(void);               /* goroutines that exist */
int gort_maxprocs(int n);           /* sets the number of Ps; the previous one; n < 1 only asks */
void gort_lock_thread(void);        /* runtime.LockOSThread; nests */
void gort_unlock_thread(void);
int gort_pin(void);         /* procPin: this P's id; no preemption until the matching */
void gort_unpin(void);      /*   unpin; nests; blocking while pinned is misuse */
void gort_stop_world(void); /* returns when no other goroutine runs */
void gort_start_world(void);

/* ---- Blocking calls ------------------------------------------------------------------------ */

void gort_enter_syscall(void); /* around a call that is usually short: the P stays near */
void gort_exit_syscall(void);  /*   and is handed off when the call takes long */
long gort_blocking(long (*fn)(void *), void *arg); /* surely long: hands the P off at once */

/* ---- Channels and select ------------------------------------------------------------------- */

typedef struct gort_chan gort_chan;

gort_chan *gort_chan_new(size_t elem_size, size_t capacity); /* NULL: no memory, or overflow */
gort_chan *gort_chan_retain(gort_chan *);
void gort_chan_release(gort_chan *);                /* the last release frees it */
int gort_chan_send(gort_chan *, const void *value); /* 0, -EPIPE: closed */
int gort_chan_recv(gort_chan *, void *value);       /* 0, -EPIPE: closed and drained */
int gort_chan_send_until(gort_chan *, const void *value, int64_t deadline);
int gort_chan_recv_until(gort_chan *, void *value, int64_t deadline);
int gort_chan_try_send(gort_chan *, const void *value); /* -EAGAIN: would block */
int gort_chan_try_recv(gort_chan *, void *value);
int gort_chan_close(gort_chan *); /* -EPIPE: was closed already */
size_t gort_chan_len(gort_chan *);
size_t gort_chan_cap(gort_chan *);

/* One case of a select. result is 0, or -EPIPE where the channel was closed. */
typedef struct gort_case {
    int op; /* GORT_RECV or GORT_SEND */
    gort_chan *ch;
    void *value;
    int result;
} gort_case;
enum { GORT_RECV = 1, GORT_SEND = 2 };

int gort_select(gort_case *cases, int n); /* the index of the case that ran */
int gort_select_until(gort_case *cases, int n, int64_t deadline);
int gort_try_select(gort_case *cases, int n); /* -EAGAIN: Go's default case */

#ifndef __cplusplus
#define gort_on_recv(chan, ptr) ((gort_case){GORT_RECV, (chan), (void *)(ptr), 0})
#define gort_on_send(chan, ptr) ((gort_case){GORT_SEND, (chan), (void *)(ptr), 0})
#define gort_select_of(...)                 \
    gort_select((gort_case[]){__VA_ARGS__}, \
                (int)(sizeof((gort_case[]){__VA_ARGS__}) / sizeof(gort_case)))
#endif

/* A typed veneer at file scope, without a semicolon: `GORT_CHAN_TYPE(ints, int)` gives the type
 * `ints` and ints_new(cap), ints_send(c, v), ints_recv(c, &v), ..., and ints_chan(c) for select. */
#ifdef __cplusplus
#define GORT_INLINE static inline __attribute__((unused))
#define GORT_AS_CHAN_(c) (reinterpret_cast<gort_chan *>(c))
#define GORT_FROM_CHAN_(name, c) (reinterpret_cast<name *>(c))
#else
#define GORT_INLINE static inline __attribute__((unused))
#define GORT_AS_CHAN_(c) ((gort_chan *)(c))
#define GORT_FROM_CHAN_(name, c) ((name *)(c))
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
    GORT_INLINE size_t name##_cap(name *c) { return gort_chan_cap(GORT_AS_CHAN_(c)); }

/* ---- Synchronisation: structs that are valid when zeroed ----------------------------------- */

typedef struct gort_mutex {
    uint32_t state_, sema_;
} gort_mutex;
typedef struct gort_rwmutex {
    gort_mutex w_;
    uint32_t writer_sema_, reader_sema_;
    int32_t readers_, leaving_;
} gort_rwmutex;
typedef struct gort_wg {
    uint64_t state_;
    void *waiters_;
} gort_wg;
typedef struct gort_once {
    uint32_t done_, pad_;
    gort_mutex m_;
} gort_once;
typedef struct gort_cond {
    uint32_t lock_, pad_;
    void *head_, *tail_;
} gort_cond;
typedef struct gort_sem {
    uint32_t lock_, pad_;
    int64_t permits_;
    void *head_, *tail_;
} gort_sem;

void gort_mutex_lock(gort_mutex *); /* sync.Mutex, starvation mode after 1 ms */
int gort_mutex_lock_until(gort_mutex *, int64_t deadline);
int gort_mutex_try_lock(gort_mutex *); /* every try: 0 or -EBUSY */
void gort_mutex_unlock(gort_mutex *);

void gort_rwmutex_rlock(gort_rwmutex *); /* a waiting writer holds back new readers */
int gort_rwmutex_rlock_until(gort_rwmutex *, int64_t deadline);
void gort_rwmutex_lock(gort_rwmutex *);
int gort_rwmutex_lock_until(gort_rwmutex *, int64_t deadline);
int gort_rwmutex_try_rlock(gort_rwmutex *);
int gort_rwmutex_try_lock(gort_rwmutex *);
void gort_rwmutex_runlock(gort_rwmutex *);
void gort_rwmutex_unlock(gort_rwmutex *);

void gort_wg_add(gort_wg *, int n);
void gort_wg_done(gort_wg *);
void gort_wg_wait(gort_wg *);
int gort_wg_wait_until(gort_wg *, int64_t deadline);
int gort_wg_go(gort_wg *, gort_fn *fn, void *arg); /* add, start, done when fn ends */

void gort_once_do(gort_once *, void (*fn)(void *), void *arg);

void gort_cond_wait(gort_cond *, gort_mutex *);
int gort_cond_wait_until(gort_cond *, gort_mutex *, int64_t deadline);
void gort_cond_signal(gort_cond *);
void gort_cond_broadcast(gort_cond *);

void gort_sem_acquire(gort_sem *, int64_t n); /* first come first served */
int gort_sem_acquire_until(gort_sem *, int64_t n, int64_t deadline);
int gort_sem_try_acquire(gort_sem *, int64_t n);
void gort_sem_release(gort_sem *, int64_t n);

typedef struct gort_pool gort_pool; /* sync.Pool: one cache per P */
gort_pool *gort_pool_new(void *(*make)(void *arg), void (*drop)(void *object), void *arg);
void *gort_pool_get(gort_pool *);
void gort_pool_put(gort_pool *, void *object);
void gort_pool_free(gort_pool *);

/* ---- Small objects ------------------------------------------------------------------------- */

/* As malloc and free, from the cache of the P: no lock, no atomics in the usual case. Aligned to
 * 16, not cleared; size 0 is one of its own. What is larger than 4096 bytes is malloc's. An object
 * may be freed on another P, in a plain thread, in a later runtime; freeing NULL does nothing, an
 * object twice is misuse. Never blocks; any thread. Where a sanitizer or valgrind watches, every
 * object is malloc's. NULL: no memory. */
void *gort_alloc(size_t size);
void gort_free(void *object);

/* ---- Time ---------------------------------------------------------------------------------- */

int64_t gort_now(void);      /* the monotonic clock; anywhere */
void gort_sleep(int64_t ns); /* ns <= 0 yields */
void gort_sleep_until(int64_t deadline);

typedef struct gort_timer gort_timer;
gort_timer *gort_timer_new(int64_t ns, gort_fn *fn, void *arg);      /* time.AfterFunc */
gort_timer *gort_ticker_new(int64_t period, gort_fn *fn, void *arg); /* a goroutine per tick */
int gort_timer_stop(gort_timer *); /* 1: it was armed and is not any more; 0: fired or stopped */
int gort_timer_reset(gort_timer *, int64_t ns); /* likewise, then armed again */
void gort_timer_free(gort_timer *);             /* stops it first; allowed from its own fn */
gort_chan *gort_after(int64_t ns); /* one int64_t arrives on it; the caller releases it */
gort_chan *gort_tick(int64_t period, gort_timer **owner);

/* ---- Signals ------------------------------------------------------------------------------- */

int gort_signal_notify(gort_chan *ints, int signo); /* os/signal.Notify: never blocks the sender */
int gort_signal_stop(gort_chan *ints);

/* ---- Contexts and groups ------------------------------------------------------------------- */

typedef struct gort_ctx gort_ctx;
gort_ctx *gort_ctx_new(gort_ctx *parent); /* parent NULL: a root */
gort_ctx *gort_ctx_with_deadline(gort_ctx *parent, int64_t deadline);
gort_ctx *gort_ctx_with_value(gort_ctx *parent, const void *key, void *value);
void *gort_ctx_value(gort_ctx *, const void *key);
void gort_ctx_cancel(gort_ctx *);
gort_chan *gort_ctx_done(gort_ctx *); /* closed on cancellation; retain to keep */
int gort_ctx_err(gort_ctx *);         /* 0, -ECANCELED, -ETIMEDOUT */
void gort_ctx_release(gort_ctx *);    /* cancels it and drops it; in any order */

typedef struct gort_group gort_group;
gort_group *gort_group_new(gort_ctx *parent, int limit); /* limit <= 0: none */
/* Waits while limit members run. Misuse: all of those wait here for a place in their own group. */
int gort_group_go(gort_group *, int (*fn)(gort_ctx *, void *), void *arg);
int gort_group_try_go(gort_group *, int (*fn)(gort_ctx *, void *), void *arg); /* -EAGAIN: full */
int gort_group_wait(gort_group *); /* waits for all, frees it; the first negative result */

/* ---- Descriptors and files: as their POSIX namesakes, blocking the goroutine only ----------- */

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
ssize_t gort_read_full(int fd, void *buf, size_t n); /* n, -ENODATA: end of file before that */
ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline);
ssize_t gort_write_full(int fd, const void *buf, size_t n);
ssize_t gort_write_full_until(int fd, const void *buf, size_t n, int64_t deadline);
int gort_accept(int fd, struct sockaddr *sa, socklen_t *len);
int gort_accept_until(int fd, struct sockaddr *sa, socklen_t *len, int64_t deadline);
int gort_connect(int fd, const struct sockaddr *sa, socklen_t len);
int gort_connect_until(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline);
int gort_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int gort_close(int fd); /* wakes whoever is blocked on fd with -EBADF */
int gort_open(const char *path, int flags, mode_t mode);
ssize_t gort_pread(int fd, void *buf, size_t n, off_t offset);
ssize_t gort_pwrite(int fd, const void *buf, size_t n, off_t offset);
int gort_fsync(int fd);
int gort_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res); /* 0 or an EAI_ code */

/* Addresses: 127.0.0.1:8080, [::1]:0, localhost:80, :80, unix:/path, unix:@abstract. */
int gort_listen(const char *addr, int backlog);
int gort_dial(const char *addr, int64_t deadline);
int gort_local_addr(int fd, char *buf, size_t size);

/* ---- Looking inside ------------------------------------------------------------------------ */

/* A consistent snapshot. Counters never go back. */
typedef struct gort_stats {
    uint64_t goroutines; /* that exist now */
    uint64_t goroutines_created;
    uint64_t maxprocs;
    uint64_t idle_procs;
    uint64_t threads; /* alive, the monitor included */
    uint64_t idle_threads;
    uint64_t spinning_threads;
    uint64_t global_queue;
    uint64_t local_queues; /* sum, LIFO slots included */
    uint64_t switches;     /* times a goroutine was put on a P */
    uint64_t steals;       /* that succeeded */
    uint64_t stolen;       /* goroutines they moved */
    uint64_t global_gets;  /* goroutines taken from the global queue */
    uint64_t overflows;    /* times a local queue overflowed */
    uint64_t handoffs;     /* a P taken from a thread in a blocking call */
    uint64_t preempt_requests;
    uint64_t preemptions;     /* carried out */
    uint64_t timers;          /* armed, sleepers and deadlines included */
    uint64_t netpoll_wakeups; /* goroutines the poller made ready */
    uint64_t stack_bytes_reserved;
    uint64_t stack_bytes_cached;
    uint64_t syscalls_blocking;
    uint64_t threads_created;
    uint64_t retakes;            /* Ps taken from a thread in a call nobody announced */
    uint64_t allocs;             /* small objects given out, those of the runtime included */
    uint64_t frees;              /*   and taken back */
    uint64_t alloc_bytes_used;   /* memory of spans that hold small objects */
    uint64_t alloc_bytes_cached; /*   and of free ones */
    uint64_t forced_collections; /* asked for by the monitor, in a program with a collector */
    /* 1: guard regions, 2: mprotect, 3: some stacks have only canaries */
    uint64_t stack_guard_kind;
    /* 0: lazy stacks, 1: hybrid, 2: compact (gort(7), -fsplit-stack) */
    uint64_t stack_mode;
    uint64_t stack_segments; /* segments that goroutines have grown by and not left */
    /* times the program closed the runtime's own, as closefrom(3) does */
    uint64_t descriptors_remade;
} gort_stats;

void gort_stats_read(gort_stats *);
void gort_dump(int fd);                 /* every goroutine */
int gort_trace_start(const char *path); /* -EBUSY: one is running */
int gort_trace_stop(void);              /* -EINVAL: none is running */
/* A named stretch of the calling goroutine in the trace (the first 31 bytes are copied; regions
 * nest); nothing while none runs, and from a plain thread. Never blocks. */
void gort_region_begin(const char *name);
void gort_region_end(const char *name);
int gort_debug_listen(const char *addr); /* the live page */

#ifdef __cplusplus
}
#endif
#endif
