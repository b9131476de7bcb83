/*
 * libgort-hook.so from inside. Every interposed function begins with one test:
 *
 *     M *m = runner(read);
 *     if (m == NULL) return libc(read)(fd, buf, n);
 *
 * On a thread that runs goroutines the function tries without blocking, by the bare system call or
 * libc's own function. That is right anywhere on such a thread: in the runtime, pinned, inside
 * gort_blocking, in a signal handler. Only a call that would block looks closer:
 *
 *     if (!here()) return libc(read)(fd, buf, n);
 *     return returned(staying(gort_...()));
 *
 * The call parks, and staying() brings the goroutine back to this thread (preferred.c). Then
 * returned() sets errno, whose address may differ after a switch.
 *
 * After a microsecond in the kernel the first cache has few of the hook's lines, and a miss costs 4
 * ns. So a name's test word and libc's function share a line, and close looks at a hint only.
 */
#ifndef HOOK_INTERNAL_H
#define HOOK_INTERNAL_H

#include "base/base.h" /* first: it defines _GNU_SOURCE */
#include "base/deadline.h"
#define exit_hook_jumped hook_jumped /* libgort's is not exported (once.c) */
#include "sched/body.h"
#include "sched/goexit.h"
#include "api/hookcalls.h"
#include "mem/stack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define HOOK EXPORT
#define COLD __attribute__((noinline, cold))

int capset(void *header, const void *data); /* of libc, without a header there */
/* clang-format off */
#define EVERY_NAME(X) \
    X(read) X(write) X(readv) X(writev) \
    X(recv) X(send) X(recvfrom) X(sendto) X(recvmsg) X(sendmsg) X(accept) X(accept4) X(connect) \
    X(poll) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait) \
    X(sleep) X(usleep) X(nanosleep) X(clock_nanosleep) X(sched_yield) \
    X(getaddrinfo) X(gethostbyname_r) \
    X(socket) X(socketpair) X(pipe) X(pipe2) X(eventfd) \
    X(close) X(dup) X(dup2) X(dup3) X(fcntl) X(fclose) X(freopen) X(closefrom) \
    X(open) X(fsync) X(fdatasync) X(flock) \
    X(waitpid) X(system) X(clone) \
    X(flockfile) X(ftrylockfile) X(funlockfile) \
    X(pthread_mutex_init) X(pthread_mutex_lock) X(pthread_mutex_trylock) \
    X(pthread_mutex_timedlock) X(pthread_mutex_clocklock) X(pthread_mutex_unlock) \
    X(pthread_rwlock_rdlock) X(pthread_rwlock_tryrdlock) X(pthread_rwlock_timedrdlock) \
    X(pthread_rwlock_wrlock) X(pthread_rwlock_trywrlock) X(pthread_rwlock_timedwrlock) \
    X(pthread_rwlock_clockrdlock) X(pthread_rwlock_clockwrlock) X(pthread_rwlock_unlock) \
    X(sem_wait) X(sem_trywait) X(sem_timedwait) X(sem_clockwait) X(sem_post) \
    X(pthread_once) X(pthread_join) X(pthread_tryjoin_np) X(pthread_clockjoin_np) \
    X(pthread_create) X(pthread_detach) X(pthread_exit) X(thrd_create) \
    X(pthread_setname_np) X(pthread_getname_np) X(prctl) \
    X(pthread_getattr_np) X(pthread_setattr_default_np) \
    X(pthread_setaffinity_np) X(pthread_getaffinity_np) \
    X(pthread_setschedparam) X(pthread_getschedparam) X(pthread_setschedprio) \
    X(sched_setscheduler) X(sched_getscheduler) X(sched_setparam) X(sched_getparam) \
    X(sched_rr_get_interval) X(setpriority) X(getpriority) X(nice) \
    X(unshare) X(setns) X(setfsuid) X(setfsgid) X(personality) X(capset) \
    X(pthread_getcpuclockid) X(clock_gettime) X(clock_getres) X(getrusage) \
    X(pthread_barrier_init) X(pthread_barrier_wait) X(pthread_barrier_destroy) \
    X(pthread_key_create) X(pthread_key_delete) X(pthread_getspecific) X(pthread_setspecific) \
    X(syscall) X(sigaction) X(signal) X(__sysv_signal) X(sigset) X(sigaltstack) \
    X(siginterrupt) X(sighold) X(sigrelse) X(sigblock) X(sigsetmask) \
    X(pthread_sigmask) X(sigprocmask) X(sigpending) X(sigsuspend) X(pause) \
    X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(siglongjmp) \
    X(pthread_kill) X(pthread_sigqueue) X(raise) X(tgkill) X(kill) X(sigqueue) \
    X(pthread_cancel) X(pthread_testcancel) X(pthread_setcancelstate) \
    X(pthread_setcanceltype) \
    X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_clockwait) \
    X(pthread_cond_signal) X(pthread_cond_broadcast) \
    X(gettimeofday) X(time) X(clock) X(timespec_get) \
    X(timer_create) X(timer_delete) X(timer_getoverrun)
/* clang-format on */

/* libc's own functions, each beside the word of its test. libc_syms.c finds them. */
typedef struct Real {
#define FIELD(name)               \
    struct {                      \
        long tls; /* known.tls */ \
        __typeof__(&name) fn;     \
    } name;
    EVERY_NAME(FIELD)
#undef FIELD
} ALIGNED(CACHE_LINE) Real;
extern Real real;
extern const HookCore *core;
COLD void *libc_find(const char *name);

/* On x86-64 fn is never NULL (libc_syms.c has stubs): callers save no registers for a search. */
#ifdef __x86_64__
#define libc(name) (*real.name.fn)
#else
#define libc(name)                                                   \
    (*({                                                             \
        void **at_ = (void **)(void *)&real.name.fn;                 \
        if (unlikely(real.name.fn == NULL)) *at_ = libc_find(#name); \
        real.name.fn;                                                \
    }))
#endif

#define NO_TLS 1       /* the core is not known yet; no aligned word has this distance */
#define SIMULATED 3    /* in a name's word: each call is a point of choice (points.c) */
typedef struct Known { /* one cache line */
    long tls;          /* the core's tls_runner */
    long tls_vforks;   /* core's */
    const uint32_t *taken, *looks;
    Chunk *const *descs;
    bool retakes;                        /* the core tells */
    bool unseen;                         /* atomic: libc releases what no hook sees */
    bool simulated;                      /* the core tells */
    bool threads;                        /* the program's threads are goroutines (src/threads) */
    uint32_t doubt;                      /* connect.c */
    uintptr_t allocator, allocator_size; /* threadkeys.c */
} ALIGNED(CACHE_LINE) Known;
extern Known known;

/* The M of a thread that runs goroutines, also inside the runtime; NULL: any other thread. */
INLINE M *runner_at(long at) { return likely(!(at & 1)) ? ARCH_TLS_AT(at) : NULL; }
COLD M *runner_at_point(long at, bool may_switch); /* points.c */
#define runner_from(name, by_allocator)                        \
    (likely(!(real.name.tls & 1)) ? ARCH_TLS_AT(real.name.tls) \
                                  : runner_at_point(real.name.tls, !(by_allocator)))
#define runner(name) runner_from(name, called_by_allocator())
/* In a function that has no need of runner(). */
#define POINT(name) (void)(unlikely(real.name.tls & 1) && runner(name))

INLINE uintptr_t stack_pointer(void) {
#ifdef __x86_64__
    uintptr_t sp;
    __asm__("movq %%rsp, %0" : "=r"(sp));
    return sp;
#else
    return (uintptr_t)__builtin_frame_address(0);
#endif
}
/* In a child of vfork (vfork.c), on any thread. The hook's notes are the parent's. */
INLINE bool vforked(void) {
    return known.tls != NO_TLS && (uint32_t)(uintptr_t)ARCH_TLS_AT(known.tls_vforks) != 0;
}
/* In any child, also of a bare vfork: notes and waiters are not its own. Costs a system call. */
INLINE bool hook_in_child(void) { return core == NULL || core->in_child(); }
/* On a goroutine outside of the runtime, or in a child that looks like one: its thread's M. */
INLINE M *maybe_here(void) {
    M *m = runner_at(known.tls);
    return m != NULL && may_park(m, stack_pointer()) ? m : NULL;
}
/* In a hooked function: its caller is the allocator's library, whose thread must not change hands
 * in the middle of malloc: the next goroutine would find the thread's cache half changed. */
INLINE bool called_by_allocator(void) {
    return unlikely((uintptr_t)__builtin_return_address(0) - known.allocator <
                    known.allocator_size);
}
/* Of a goroutine outside of the runtime; NULL: call libc's. A system call: only before a wait. */
INLINE M *here(void) {
    M *m = maybe_here();
    return m != NULL && !called_by_allocator() && !hook_in_child() ? m : NULL;
}
/* The goroutine that this thread runs, also inside the runtime; NULL: none. */
INLINE G *runner_g(void) {
    M *m = runner_at(known.tls);
    return m == NULL ? NULL : m->curg;
}

/* A bare system call: -errno. No cancellation point, which would cost more than the whole hook
 * (bench/hook_cost.c): on plain threads only for calls that are none in libc either. */
#define sys(nr, a, b, c, d, e, f) \
    arch_sys6((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* threads/signals.c, where the program's threads are goroutines. A call that waits; point: it is a
 * cancellation point. r: what has come of it; true: it is to be made again (restarts: as with
 * SA_RESTART). */
bool thread_stay(bool point);
bool thread_stay_over(long r, bool restarts);
bool thread_interrupted(void); /* waits end with -EINTR */
bool thread_call_ended(bool restarts);
/* fn, which waits, with that mask meanwhile; -EINTR: a handler has run, by either mask. */
long thread_masked(const sigset_t *mask, long (*fn)(void *), void *arg);
void thread_attend(void); /* then: handlers run. The caller is in no queue */
long thread_blocking(long (*fn)(void *), void *arg); /* as gort_blocking */

/* From stay() to stay_end() the current goroutine comes back to its thread after each switch. */
INLINE bool stay_with(bool point) {
    return unlikely(known.threads) ? thread_stay(point) : core->stay_begin();
}
INLINE bool stay(void) { return stay_with(false); }
INLINE bool stay_over(bool mine, long r, bool restarts) {
    if (!mine) return false;
    if (unlikely(known.threads)) return thread_stay_over(r, restarts);
    core->stay_end();
    return false;
}
INLINE void stay_end(bool mine) { stay_over(mine, 0, false); }
#define staying_with(on_goroutine, restarts, call)              \
    ({                                                          \
        bool mine_ = (on_goroutine) && stay_with(true);         \
        __typeof__(call) r_;                                    \
        do r_ = (call);                                         \
        while (unlikely(stay_over(mine_, (long)r_, restarts))); \
        r_;                                                     \
    })
#define staying_if(on_goroutine, call) staying_with(on_goroutine, true, call)
#define staying(call) staying_with(true, true, call)
/* A handler ends it, also one with SA_RESTART. */
#define staying_once(call) staying_with(true, false, call)
/* Only if it has a deadline, as the kernel's sockets and futexes. */
#define staying_until(deadline, call) staying_with(true, (deadline) == GORT_FOREVER, call)
/* In a call that waits: a signal has ended a wait of the goroutine's. */
INLINE bool interrupted(void) { return unlikely(known.threads) && thread_interrupted(); }
/* A hot_call gave -EINTR: a handler has ended it, and not the monitor. */
INLINE bool handler_ended(bool restarts) {
    return unlikely(known.threads) && thread_call_ended(restarts);
}
/* Then its handlers run; the caller is in no queue. */
INLINE void attend(void) {
    if (unlikely(known.threads)) thread_attend();
}

/* After a call in which the monitor took the P: gets a P again. */
INLINE void core_pass(void) {
    if (!here()) return;
    bool mine = stay();
    core->leave(core->enter());
    stay_end(mine);
}

/* On a goroutine: fn in gort_blocking, which hands the P on. */
INLINE long stay_blocking(long (*fn)(void *), void *arg) {
    return staying(unlikely(known.threads) ? thread_blocking(fn, arg) : gort_blocking(fn, arg));
}
/* Likewise libc's function. Integers and pointers are passed alike as words, variadic or not. */
typedef struct LibcCall {
    long (*fn)(long, ...);
    long args[6];
} LibcCall;
long libc_call(void *call);
#define LIBC_CALL(name, a, b, c, d, e, f)                \
    ((LibcCall){(long (*)(long, ...))(void *)libc(name), \
                {(long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)}})
#define libc_blocking(name, a, b, c, d, e, f) \
    stay_blocking(libc_call, &LIBC_CALL(name, a, b, c, d, e, f))

NORETURN void __chk_fail(void); /* glibc's "buffer overflow detected" */
COLD void set_errno(int e);
NOINLINE int get_errno(void);
COLD long errno_failed(long r);
INLINE long returned(long r) { return likely(r >= 0) ? r : errno_failed(r); }

#include "hook/fdhints.h"

/* ---- descriptors ---------------------------------------------------------------------------- */

/* poll(2) without waiting: a count, or -errno. A pending signal makes even this call EINTR. */
INLINE long poll_ready(struct pollfd *fds, unsigned long n) {
    long r;
#ifndef SYS_poll
    const struct timespec now = {0, 0};
#endif
    do {
#ifdef SYS_poll
        r = sys(SYS_poll, fds, n, 0, 0, 0, 0);
#else
        r = sys(SYS_ppoll, fds, n, &now, NULL, 0, 0);
#endif
    } while (unlikely(r == -EINTR));
    return r;
}
long poll_fd(int fd, short events);
/* The deadline that SO_RCVTIMEO or SO_SNDTIMEO sets for a call that begins now. */
int64_t socket_deadline(int fd, int option);
/* r: the result of a call until socket_deadline(). */
long timeout_as_again(long r, int64_t deadline);
/* r: core->move's result. Raises SIGPIPE, which gort's calls never do. */
ssize_t move_result(const HookMove *v, long r);

/* terminal.c */
bool is_terminal(int fd); /* asks the kernel; not the master of a pair */
ssize_t terminal_read(int fd, const struct iovec *iov, int n);
INLINE bool terminal_at(int fd) {
    return unlikely((unsigned)fd >= FD_HINTS) ? is_terminal(fd) : flags_hint(fd) & HINT_TERMINAL;
}
/* The goroutine cannot park, so its thread waits, with a number of the hook's own: the caller's may
 * be another file by then. nr: readv or writev. (stream.c) */
ssize_t vector_on_thread(long nr, int fd, const struct iovec *iov, int n, uint32_t life);

/* ---- bad pointers (readable.c) --------------------------------------------------------------- */

/* Where a call looks at the caller's memory before the kernel has: false: libc's call says EFAULT,
 * or whatever comes before that. A hint: what was readable once may be unmapped since. */
NOINLINE bool can_read(const void *at, size_t n);
#define NEAR 4096
INLINE bool readable(const void *at, size_t n) {
    return likely((uintptr_t)at - stack_pointer() < NEAR) || can_read(at, n);
}

/* ---- times (sleep.c) ------------------------------------------------------------------------- */

int64_t nanoseconds(int64_t seconds, int64_t ns); /* the sum; NEVER: a century and more */
int64_t deadline_after(int64_t ns);               /* from now on */
int64_t sleep_for(int64_t ns); /* on a goroutine: what is left where a handler has ended it */
int64_t clock_deadline(clockid_t clock, const struct timespec *at);
bool valid_time(const struct timespec *ts);
/* The deadline that a timeout sets from now on; NULL: none. False: the timeout is not valid. */
bool timeout_deadline(const struct timespec *ts, int64_t *deadline);
INLINE bool valid_clock(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ---- waiting for an address (waitqueue.c) ---------------------------------------------------- */

typedef struct WaitEntry WaitEntry;
struct WaitEntry {
    /* its bucket's lock: */
    WaitEntry *next, *prev;
    const void *addr;
    G *gp;
    uint32_t ticket, bits;
    bool queued, parked, hit;
    bool naps; /* the waiter's own: a deadline that passes leaves the entry queued */
};

#define WAIT_ENDS 0x100   /* with a reason of waitq_acquire: a handler ends it, EINTR */
#define WAIT_SHARED 0x200 /* likewise: another process, or the kernel, may release, unseen */
#define EVERY_BIT UINT32_MAX
#define NO_BIT 0
/* From here on a waker with one of these bits hits w. */
void waitq_join(WaitEntry *w, const void *addr, uint32_t bits);
/* Parks until w is hit (true) or the deadline passes (false), when only a nap is still queued. */
bool waitq_wait(WaitEntry *w, int reason, int64_t deadline);
bool waitq_leave(WaitEntry *w); /* true: it was hit already */
uint32_t waitq_wake_some(const void *addr, uint32_t most, uint32_t bits); /* how many */
INLINE bool waitq_wake(const void *addr, bool all) {
    return waitq_wake_some(addr, all ? UINT32_MAX : 1, EVERY_BIT) != 0;
}
/* Likewise, also in a signal handler. 0 if that has interrupted the runtime: the monitor wakes. */
COLD uint32_t waitq_wake_anywhere(const void *addr, uint32_t most, uint32_t bits);
void waitq_pay(M *m); /* the monitor */

typedef struct WaitBucket {
    Lock lock;
    uint32_t count; /* lock; read without it after a full fence */
    uint32_t life;  /* lock: the runtime whose goroutines wait here */
    uint32_t owed;  /* atomic: the monitor is to wake them all */
    /* as count: bits of the addresses in the queue; also of some that have left it */
    uint64_t addrs;
    WaitEntry *first, *last;
} ALIGNED(CACHE_LINE) WaitBucket;
#define WAITQ_BUCKETS 256
extern WaitBucket waitq_table[WAITQ_BUCKETS];
INLINE WaitBucket *waitq_bucket(const void *addr) {
    return &waitq_table[((uintptr_t)addr >> 3) % WAITQ_BUCKETS];
}
INLINE uint64_t waitq_bit(const void *addr) {
    return UINT64_C(1) << ((uint64_t)(uintptr_t)addr * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}
/* False: nobody waits for addr. Behind the fence that the caller's protocol asks for. Most buckets
 * are empty; of a program with a thousand threads none is, hence the second look. */
INLINE bool waitq_has(const void *addr) {
    const WaitBucket *b = waitq_bucket(addr);
    return unlikely(load_rlx(&b->count) != 0) && (load_rlx(&b->addrs) & waitq_bit(addr)) != 0;
}

/* After a release by libc's function, on any thread: wakes goroutines that wait for addr. A Dekker
 * pair with waitq_join: the waiter queues itself, then tries; the releaser releases, then reads the
 * count. On x86 the release was a locked instruction, which is the fence. */
INLINE bool has_waiters(const void *addr) {
    fence_after_rmw();
    return waitq_has(addr);
}
INLINE void released(const void *addr, bool all) {
    if (has_waiters(addr) && !called_by_allocator()) waitq_wake(addr, all); /* may switch */
}

/* Tries until the attempt gives something other than EBUSY, or the deadline has passed (ETIMEDOUT):
 * after each hit, and at intervals where libc, on a thread of its own, or another process
 * (WAIT_SHARED) may release. On a goroutine. */
/* The call, by a function whose frame stays for dumps: the name that the program called. */
#define keeping_frame(call)                 \
    ({                                      \
        __typeof__(call) kept_ = (call);    \
        __asm__ volatile("" : "+r"(kept_)); \
        kept_;                              \
    })
#define PAUSE_FIRST GORT_MS
#define PAUSE_MOST (16 * GORT_MS)
typedef int try_fn(void *object);
int waitq_acquire(void *object, try_fn *attempt, int reason, int64_t deadline);
/* Likewise a cancellation point, which a signal's handler ends: EINTR; without a deadline only one
 * without SA_RESTART, as the kernel has it. */
int waitq_acquire_once(void *object, try_fn *attempt, int reason, int64_t deadline);
/* Outside of the runtime. libc is about to release something where no hook sees it: a thread of its
 * own begins, or one waits in its condition. From now on waiters look at intervals. */
void waitq_sees_less(void);
/* The program's threads are goroutines, and each release is seen. */
INLINE bool waitq_sees_all(void) { return known.threads && !load_rlx(&known.unseen); }
/* What gp waits for; NULL: nothing here. While nothing moves. */
const void *waitq_place(const G *gp);
bool waitq_announced(const void *addr); /* there is an entry with NO_BIT, which no waker hits */

/* ---- simulation (points.c) ------------------------------------------------------------------- */

void points_tell(bool simulated); /* the core, when a runtime begins */

/* ---- keys (threadkeys.c) --------------------------------------------------------------------- */

/* Of the thread's own: none any more; its top, for a handler on sp's stack. 0: none. */
void altstack_forget(void), altstack_adopt(void);
uintptr_t altstack_for(uintptr_t sp);
void handlers_adopt(void); /* handlers.c, when the hook is loaded: libraries came before it */
void allocator_find(void); /* when the hook is loaded */
void values_run_out(void); /* the current goroutine ends */
/* Without destructors: the goroutine was stopped for good. Any thread that has no P. */
void values_free(void *values);
void values_to_thread(void *values); /* in a forked child */
/* Destructors of the current goroutine's values, which are libc's. True: some have run. */
bool keys_destroy_round(void);
void keys_drop(void);        /* without destructors */
void values_bound(int more); /* mutex.c locks the goroutine to its thread, or unlocks it */
/* pthread_key_create; caller: where in the program it was called */
int key_create(pthread_key_t *key, void (*destroy)(void *), const void *caller);

/* ---- signals of threads (threads/signals.c) -------------------------------------------------- */

/* A signal's handler is to run. TAKEN: not now, or not here. HERE: by signal_runs, on the stack
 * where the kernel would run it. Else this is another kind of thread, or inside the runtime. */
enum { SIGNAL_AS_EVER, SIGNAL_HERE, SIGNAL_TAKEN };
int signal_comes(int signo, siginfo_t *info, void *context);
void signal_runs(int signo, siginfo_t *info, void *context);
bool is_cores(uintptr_t code); /* it is in the runtime */
/* handlers.c: runs the program's handler; true: it has no SA_RESTART. breaks: that is installed. */
void handler_enter(int signo, siginfo_t *info, void *context);
bool handler_call(int signo, siginfo_t *info, void *context);
bool handler_breaks(int signo);
void signals_pay(M *m); /* the monitor: waits that handlers could not end */

/* ---- owners (mutex.c) ------------------------------------------------------------------------ */

/* The number of the current goroutine in place of a thread's, in libc's locks; 0: no goroutine runs
 * here, or one that is a thread to libc (sched/body.c), whose locks know it by a number of its own.
 * No thread has such a mark. Ids begin at 1 in each runtime, but goroutines of earlier ones may
 * still hold locks: marks go on where the last runtime's ended. They repeat after 2^30. */
INLINE int owner_mark(void) {
    M *m = runner_at(known.tls);
    G *gp = m ? m->curg : NULL;
    return gp && !has_body(gp) ? (int)(0x40000000 | ((m->marks + gp->id) & 0x3fffffff)) : 0;
}
/* On a goroutine that is a thread to libc. */
INLINE bool is_thread_to_libc(void) {
    G *gp = runner_g();
    return gp && has_body(gp);
}
/* Changes a MARKED mutex's owner, around a libc function that unlocks and locks as the thread. */
const void *mutex_waited_for(G *gp, int *holder); /* upstairs.h */
void mutex_lend(pthread_mutex_t *mutex, int from, int to);

#endif
