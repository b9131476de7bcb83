/* Linux. Bare system calls through arch_sys6: no errno, no cancellation points, no locks. Each
 * passes os_sys(), where one can be made to fail (sysfault.c). */
#include "os/os.h"
#include "base/atomic.h"
#include "base/print.h"
#include "base/san.h"
#include "base/sysfault.h"
#include "arch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#define FD_AWAY 1010    /* below the usual limit of 1024, above what most programs use */
#define FD_AWAY_LOW 100 /* where the limit is lower */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

static NOINLINE long sys_with_faults(long nr, long a, long b, long c, long d, long e, long f) {
    long error = sysfault_due(nr, b);
    if (error < 0 && nr != SYS_close) return error;
    long r = arch_sys6(nr, a, b, c, d, e, f);
    return error < 0 ? error : r;
}

long os_sys(long nr, long a, long b, long c, long d, long e, long f) {
    if (unlikely(sysfault_on)) return sys_with_faults(nr, a, b, c, d, e, f);
    return arch_sys6(nr, a, b, c, d, e, f);
}

static int64_t kernel_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

int64_t os_now(void) { return unlikely(os_clock) ? os_clock->now() : kernel_now(); }

/* The kernel's encoding of "the CPU clock of thread tid": ~tid << 3 | per-thread | sched. */
int os_thread_clock(int tid) { return (int)(~(unsigned)tid << 3 | 6); }

int64_t os_thread_cpu(int clock) {
    struct timespec ts;
    if (sys6(SYS_clock_gettime, clock, &ts, 0, 0, 0, 0) < 0) return -1;
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

/* where a filter refuses futex(2), nobody is woken: the waiter looks this often */
#define REFUSED_NAP (500 * GORT_US)

static bool refused(long r) { return r == -ENOSYS || r == -EPERM; }

int os_futex_wait(uint32_t *word, uint32_t value, int64_t deadline) {
    struct timespec ts, *until = NULL;
    if (deadline != GORT_FOREVER) {
        if (unlikely(os_clock)) deadline = os_clock->to_real(deadline, kernel_now());
        if (deadline < 0) deadline = 0;
        ts.tv_sec = deadline / GORT_SEC;
        ts.tv_nsec = deadline % GORT_SEC;
        until = &ts;
    }
    /* WAIT_BITSET: an absolute monotonic deadline. The caller loops over -EINTR and -EAGAIN. */
    long r = sys6(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until, NULL,
                  FUTEX_BITSET_MATCH_ANY);
    if (unlikely(refused(r))) os_nap(REFUSED_NAP);
    return r == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

void (*os_wake_refused)(void);

void os_futex_wake(uint32_t *word, int count) {
    long r = sys6(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    if (unlikely(refused(r)) && os_wake_refused) os_wake_refused();
}

int os_fd_copy_away(int fd) {
    long high = sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_AWAY, 0, 0, 0);
    if (high < 0) high = sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_AWAY_LOW, 0, 0, 0);
    return (int)high;
}
int os_fd_away(int fd) {
    int high = fd < 0 ? fd : os_fd_copy_away(fd);
    if (high < 0) return fd;
    sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    return high;
}

/* One thread at a time, or the limit would stay raised. Another one that opens a file just then
 * gets a number above the limit instead of an error. */
static int open_above_limit(const char *path, int flags) {
    static uint32_t raised; /* atomic */
    struct rlimit was, more;
    int fd = -EMFILE;
    if (xchg_acq(&raised, 1)) return fd;
    if (sys6(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &was, 0, 0) == 0) {
        more = (struct rlimit){was.rlim_max, was.rlim_max};
        sys6(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, NULL, 0, 0);
        fd = (int)sys6(SYS_openat, AT_FDCWD, path, flags, 0, 0, 0);
        sys6(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, NULL, 0, 0);
    }
    store_rel(&raised, 0); /* pairs with the exchange above */
    return fd;
}

/* O_NONBLOCK: a pipe of that name is no reason to wait. */
int os_open_beyond(const char *path) {
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    int fd = (int)sys6(SYS_openat, AT_FDCWD, path, flags, 0, 0, 0);
    return fd == -EMFILE ? open_above_limit(path, flags) : fd;
}

/* The number may be a timer of the program's by now. So ours has an interval that nobody else's has
 * (three years), and setting a timer tells what it was before. */
static const struct timespec alarm_mark = {100000000, 271828182};

int os_alarm_open(void) {
    int fd = os_fd_away((int)sys6(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC, 0, 0, 0, 0));
    struct itimerspec never = {.it_interval = alarm_mark};
    if (fd >= 0) sys6(SYS_timerfd_settime, fd, 0, &never, NULL, 0, 0);
    return fd;
}
void os_alarm_close(int fd) { sys6(SYS_close, fd, 0, 0, 0, 0, 0); }
int os_alarm_set(int fd, int64_t when) {
    struct itimerspec its = {.it_interval = alarm_mark}, was; /* value zero: never */
    if (when != GORT_FOREVER) its.it_value = (struct timespec){when / GORT_SEC, when % GORT_SEC};
    long r = sys6(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &its, &was, 0, 0);
    if (r < 0 || (was.it_interval.tv_sec == alarm_mark.tv_sec &&
                  was.it_interval.tv_nsec == alarm_mark.tv_nsec))
        return (int)r;
    sys6(SYS_timerfd_settime, fd, 0, &was, NULL, 0, 0); /* a stranger's: put it back */
    return -EBADF;
}
/* Not read(2): the number may have another owner. Setting the alarm again clears its expiry. */
int os_alarm_wait(int fd, int signo, int64_t most) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec ts = {most / GORT_SEC, most % GORT_SEC};
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, signo);
    long r = sys6(SYS_ppoll, &p, 1, &ts, &mask, 8, 0);
    /* -EINVAL: under a limit of no descriptors at all, while that lasts */
    if (r == -EINVAL) os_nap(GORT_MS);
    return r == -EINTR || r == -EINVAL ? 1 : (int)r;
}

/* ASan keeps the red zones of a thread that a child has not got, and in the child libc gives that
 * thread's stack back. */
void *os_map(size_t size, bool stack) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (stack ? MAP_STACK : 0);
    long r = sys6(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (r < 0 && r > -4096) return NULL;
    asan_forget((void *)r, size);
    return (void *)r;
}

static bool limited(int which) {
    struct rlimit lim;
    return sys6(SYS_prlimit64, 0, which, NULL, &lim, 0, 0) == 0 && lim.rlim_cur != RLIM_INFINITY;
}
bool os_space_limited(void) { return limited(RLIMIT_AS) || limited(RLIMIT_DATA); }

/* By libc's function TSan sees it, and forgets what was written there: other memory gets these
 * addresses. (What libc's mmap maps counts as written by its caller.) */
void os_unmap(void *at, size_t size) {
    if (unlikely(tsan_on())) munmap(at, size);
    else sys6(SYS_munmap, at, size, 0, 0, 0, 0);
}
int os_protect_none(void *at, size_t size) {
    return (int)sys6(SYS_mprotect, at, size, PROT_NONE, 0, 0, 0);
}

static int advise(void *at, size_t size, int advice) {
    return (int)sys6(SYS_madvise, at, size, advice, 0, 0, 0);
}

/* qemu takes every advice it does not know for done, which would leave stacks without a guard. So
 * the first guard is tried: a path name that begins there must be unreadable. */
static bool guard_holds(void *at) {
    return sys6(SYS_faccessat, AT_FDCWD, at, F_OK, 0, 0, 0) == -EFAULT;
}
int os_guard_install(void *at, size_t size) {
    static bool tried; /* relaxed: trying twice does no harm */
    /* memcheck does not see them: its search for leaks takes a fault at every word */
    if (valgrind_runs()) return -EINVAL;
    int r = advise(at, size, MADV_GUARD_INSTALL);
    if (r < 0 || __atomic_load_n(&tried, __ATOMIC_RELAXED)) return r;
    if (!guard_holds(at)) return -EINVAL;
    __atomic_store_n(&tried, true, __ATOMIC_RELAXED);
    return 0;
}
int os_discard(void *at, size_t size) { return advise(at, size, MADV_DONTNEED); }
void os_populate(void *at, size_t size) { advise(at, size, MADV_POPULATE_WRITE); }
int os_huge(void *at, size_t size) { return advise(at, size, MADV_HUGEPAGE); }
int os_no_huge(void *at, size_t size) { return advise(at, size, MADV_NOHUGEPAGE); }
int os_dump(void *at, size_t size, bool yes) {
    return advise(at, size, yes ? MADV_DODUMP : MADV_DONTDUMP);
}

int os_gettid(void) { return (int)sys6(SYS_gettid, 0, 0, 0, 0, 0, 0); }
int os_getpid(void) { return (int)sys6(SYS_getpid, 0, 0, 0, 0, 0, 0); }
int os_tgkill(int tid, int signo) {
    return (int)sys6(SYS_tgkill, os_getpid(), tid, signo, 0, 0, 0);
}
void os_yield(void) { sys6(SYS_sched_yield, 0, 0, 0, 0, 0, 0); }

void os_nap(int64_t ns) {
    struct timespec ts = {ns / GORT_SEC, ns % GORT_SEC};
    sys6(SYS_nanosleep, &ts, NULL, 0, 0, 0, 0);
}

int os_membarrier_register(void) {
    return (int)sys6(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
}
int os_membarrier(void) {
    return (int)sys6(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
}

long os_write(int fd, const void *buf, size_t n) { return sys6(SYS_write, fd, buf, n, 0, 0, 0); }

int os_cpu_count(void) {
    unsigned long mask[128] = {0};
    long n = sys6(SYS_sched_getaffinity, 0, sizeof mask, mask, 0, 0, 0);
    int count = 0;
    for (long i = 0; i < n / (long)sizeof mask[0]; i++) count += __builtin_popcountl(mask[i]);
    return count > 0 ? count : 1;
}

/* A whole small file into buf, ended by a zero byte; its length, or -errno. */
static long read_small(const char *path, char *buf, size_t size) {
    long fd = sys6(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0) return fd;
    long n = sys6(SYS_read, fd, buf, size - 1, 0, 0, 0);
    sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    buf[n > 0 ? n : 0] = 0;
    return n;
}

static long parse_long(const char **s) {
    while (**s == ' ') ++*s;
    if (**s < '0' || **s > '9') return -1;
    long v = 0;
    while (**s >= '0' && **s <= '9') v = v * 10 + (*(*s)++ - '0');
    return v;
}

static int quota_cpus(long quota, long period) {
    if (quota <= 0 || period <= 0) return 0;
    long cpus = (quota + period - 1) / period;
    return cpus < 1 ? 1 : cpus > 1 << 20 ? 1 << 20 : (int)cpus;
}

static void lower(int *least, int cpus) {
    if (cpus > 0 && (*least == 0 || cpus < *least)) *least = cpus;
}

/* A file of a group; false: there is none. */
static bool read_group(const char *dir, const char *file, char *text, size_t size) {
    char path[700];
    print_buf(path, sizeof path, "%s%s", dir, file);
    return read_small(path, text, size) > 0;
}

static int quota_v2_at(const char *dir) {
    char text[64];
    if (!read_group(dir, "/cpu.max", text, sizeof text)) return 0;
    const char *s = text;
    long quota = parse_long(&s), period = parse_long(&s);
    return quota_cpus(quota, period);
}

static long group_number(const char *dir, const char *file) {
    char text[64];
    const char *s = text;
    return read_group(dir, file, text, sizeof text) ? parse_long(&s) : -1;
}

static int quota_v1_at(const char *dir) {
    long quota = group_number(dir, "/cpu.cfs_quota_us");
    return quota_cpus(quota, group_number(dir, "/cpu.cfs_period_us"));
}

/* The least quota of the group at root + sub and of every one above it. */
static int quota_walk(const char *root, const char *sub, int (*at)(const char *)) {
    char dir[600];
    int least = 0;
    size_t n = print_buf(dir, sizeof dir, "%s%s", root, sub), floor = strlen(root);
    for (; n >= floor; n--) {
        if (n > floor && dir[n] != 0 && dir[n] != '/') continue;
        dir[n] = 0;
        lower(&least, at(dir));
        if (n == 0) break;
    }
    return least;
}

/* Is name one of those in the list, which commas part? */
static bool among_names(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *s = list; s; s = (s = strchr(s, ',')) ? s + 1 : NULL)
        if (strncmp(s, name, n) == 0 && (s[n] == 0 || s[n] == ',')) return true;
    return false;
}

static char cgroup_root[256];

void os_cgroup_root(const char *root) {
    print_buf(cgroup_root, sizeof cgroup_root, "%s", root ? root : "");
}

int os_groups_quota(char *text) {
    const char *root = cgroup_root[0] ? cgroup_root : "/sys/fs/cgroup";
    int least = 0;
    for (char *line = text; line && *line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *names = strchr(line, ':');
        char *sub = names ? strchr(names + 1, ':') : NULL;
        if (sub) {
            *sub++ = 0;
            names++;
            if (strcmp(sub, "/") == 0) sub = (char *)"";
            if (*names == 0) {
                lower(&least, quota_walk(root, sub, quota_v2_at));
            } else if (among_names(names, "cpu")) {
                char base[256];
                print_buf(base, sizeof base, "%s/cpu", root);
                lower(&least, quota_walk(base, sub, quota_v1_at));
                lower(&least, quota_v1_at(base));
            }
        }
        line = next;
    }
    lower(&least, quota_v2_at(root)); /* a container sees its own group as the root */
    return least;
}

int os_cpu_quota(void) {
    char text[4096];
    long n = read_small("/proc/self/cgroup", text, sizeof text);
    if (n == -EMFILE || n == -ENFILE || n == -ENOMEM) return -1;
    if (n <= 0) text[0] = 0;
    return os_groups_quota(text);
}

/* A file of a thread; false: there is none. */
static bool read_of_thread(int tid, const char *name, char *text, size_t size) {
    char path[64];
    print_buf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    return read_small(path, text, size) > 0;
}
static bool read_stat(int tid, char *text, size_t size) {
    return read_of_thread(tid, "stat", text, size);
}

long os_thread_sleeps_in(int tid) {
    char text[256];
    if (!read_of_thread(tid, "syscall", text, sizeof text)) return -2;
    const char *s = text;
    return *s >= '0' && *s <= '9' ? parse_long(&s) : -1;
}

/* Of a stat file; 0: none. */
static char stat_state(const char *text) {
    const char *paren = strrchr(text, ')'); /* the name may hold anything */
    return paren && paren[1] == ' ' ? paren[2] : 0;
}

char os_thread_state(int tid) {
    char text[256];
    return read_stat(tid, text, sizeof text) ? stat_state(text) : 0;
}

/* Field n of a stat file; -1: none. */
static long stat_field(const char *text, int n) {
    const char *s = strrchr(text, ')'); /* the name, field 2, may hold anything */
    for (int field = 2; field < n && s; field++) s = strchr(s + 1, ' ');
    return s ? parse_long(&s) : -1;
}

bool os_thread_blocks(int tid, int signo) {
    char text[512];
    /* the file has the first 31 only; valgrind's threads block all of them while they run */
    if (signo > 31 || valgrind_runs() || !read_stat(tid, text, sizeof text)) return false;
    return stat_field(text, 32) >> (signo - 1) & 1;
}

/* Where no descriptor is free: each thread's directory is a link to the one above. */
static int count_links(void) {
    struct stat st;
    if (sys6(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0, 0, 0) < 0) return -1;
    return st.st_nlink > 2 ? (int)st.st_nlink - 2 : -1;
}

int os_thread_count(void) {
    char text[2048];
    if (read_small("/proc/self/stat", text, sizeof text) <= 0) return count_links();
    bool first_ended = stat_state(text) == 'Z'; /* counted until the last has ended */
    return (int)stat_field(text, 20) - first_ended;
}

#define PF_IO_WORKER 0x10

/* name: a thread's number, or a dot. */
static bool is_io_worker(const char *name) {
    char text[512];
    long tid = parse_long(&name);
    if (tid < 0 || !read_stat((int)tid, text, sizeof text)) return false;
    long flags = stat_field(text, 9);
    return flags >= 0 && (flags & PF_IO_WORKER);
}

int os_io_workers(void) {
    struct Entry {
        uint64_t ino, off;
        uint16_t length;
        uint8_t type;
        char name[];
    };
    char buf[2048] ALIGNED(8);
    int n = 0;
    long got, fd = sys6(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                        0, 0, 0);
    if (fd < 0) return -1;
    while ((got = sys6(SYS_getdents64, fd, buf, sizeof buf, 0, 0, 0)) > 0)
        for (long at = 0; at < got; at += ((struct Entry *)(void *)(buf + at))->length)
            n += is_io_worker(((struct Entry *)(void *)(buf + at))->name);
    sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    return got < 0 ? -1 : n;
}
