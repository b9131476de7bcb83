/* What the runtime needs of the system. Every function is a bare system call, which takes no lock,
 * allocates nothing, leaves errno alone and returns -errno: also for g0, the monitor, handlers. */
#ifndef OS_H
#define OS_H

#include "base/base.h"
#include "base/deadline.h"

/* A clock in place of the kernel's (sim.c), or NULL. Set while no thread of ours runs. */
typedef struct OsClock {
    int64_t (*now)(void);
    int64_t (*to_real)(int64_t deadline, int64_t real_now); /* a deadline for the kernel */
} OsClock;
extern const OsClock *os_clock;
int64_t os_now(void);                 /* CLOCK_MONOTONIC, ns (through the vDSO) */
int64_t os_thread_cpu(int tid_clock); /* CPU time of a thread, by its clock id; -1: gone */
int os_thread_clock(int tid);         /* the clock id of a thread */

/* Waits while *word == value, until the absolute deadline: 0, or -ETIMEDOUT. May return early. */
int os_futex_wait(uint32_t *word, uint32_t value, int64_t deadline);
void os_futex_wake(uint32_t *word, int count);
extern void (*os_wake_refused)(void); /* called where the kernel refuses a wake-up (preempt.c) */

/* Moves a descriptor to a number out of the way: of programs that count theirs from 3, and of those
 * that make the standard ones later, by dup2(2). fd itself where no number is free. */
int os_fd_away(int fd);
/* Opens a file to read, although the process has no descriptor left: above its limit, if it may. */
int os_open_beyond(const char *path);
int os_fd_copy_away(int fd); /* a second number, out of the way; -errno: none is free */

/* An alarm to sleep on, which any thread may set to a point of the clock; GORT_FOREVER: never.
 * Setting it is a plain system call and wakes nobody. */
int os_alarm_open(void); /* a descriptor, -errno */
void os_alarm_close(int fd);
int os_alarm_set(int fd, int64_t when); /* 0; -errno: fd is no alarm any more */
/* Until it has gone off since it was last set, or this signal comes, which the caller has blocked:
 * 1. 0: `most` ns have passed. -errno: the kernel refuses. */
int os_alarm_wait(int fd, int signo, int64_t most);

void *os_map(size_t size, bool stack); /* NULL: no memory. Reserved, not committed */
bool os_space_limited(void);           /* by RLIMIT_AS or RLIMIT_DATA */
void os_unmap(void *at, size_t size);
int os_protect_none(void *at, size_t size);
int os_guard_install(void *at, size_t size); /* MADV_GUARD_INSTALL, -EINVAL on older kernels */
int os_discard(void *at, size_t size);       /* MADV_DONTNEED */
void os_populate(void *at, size_t size);     /* commits it now; on older kernels, when touched */
int os_no_huge(void *at, size_t size);
int os_huge(void *at, size_t size);           /* may become huge pages in time */
int os_dump(void *at, size_t size, bool yes); /* whether a core file has it */

int os_gettid(void);
int os_getpid(void);
int os_tgkill(int tid, int signo);
void os_yield(void);
void os_nap(int64_t ns);
int os_membarrier_register(void); /* 0, or -errno where the kernel has none */
int os_membarrier(void);          /* 0, or -errno */
int os_cpu_count(void);           /* CPUs in the affinity mask */
/* CPUs that the cgroup allows, rounded up; 0: no limit, -1: no free descriptor to ask with */
int os_cpu_quota(void);
int os_groups_quota(char *groups);     /* of these lines of /proc/self/cgroup, which it changes */
void os_cgroup_root(const char *root); /* for tests: in place of /sys/fs/cgroup; NULL: that */
int os_thread_count(void);             /* threads of this process, from /proc; -1: unknown */
int os_io_workers(void);               /* of those, the kernel's for io_uring; -1: unknown */
char os_thread_state(int tid);         /* 'R', 'S', 'D' ... from /proc/self/task; 0: unknown */
long os_thread_sleeps_in(int tid);     /* the system call; -1: it runs, -2: unknown */
bool os_thread_blocks(int tid, int signo); /* by its mask; false also where it is unknown */

long os_write(int fd, const void *buf, size_t n);
long os_sys(long nr, long a, long b, long c, long d, long e, long f);
#define sys6(nr, a, b, c, d, e, f) \
    os_sys((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
