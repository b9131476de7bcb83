/*
 * Injected faults: GORT_DEBUG=sysfault=NAME:ERROR:WHEN (gort_debug(3)). Every system call of the
 * library goes through os_sys() or, where libc makes it, stands beside a question to this room. So
 * each can be made to fail, in the library as it is installed, for a load and a branch beside the
 * call. A test walks all of them with sysfault=count (tests/long/sysfault.sh).
 *
 * The table says which errors a call can give: those that can come from outside (no memory, no
 * descriptors, a signal, an older kernel, a filter), not those that only a wrong argument would
 * cause. Rules may name others. A call that is not in the table cannot fail with right arguments
 * (getpid, sched_yield, rt_sigprocmask) and is never refused; nor is a futex's wake. A close is
 * made and then reports: on Linux the descriptor is gone, whatever close(2) says.
 *
 * Rules are written in env_read(), when no thread of a runtime exists, and read by all; the
 * counters are relaxed atomics. Bare system calls only: handlers and holders of locks call this.
 */
#include "base/sysfault.h"
#include "arch.h"
#include "base/atomic.h"
#include "base/print.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum { CLONE = -1, ALLOC = -2, ANY = -3 }; /* numbers for what is no single system call */

typedef struct Sys {
    const char *name;
    long nr;
    int errors[9]; /* ended by 0 */
} Sys;

static const Sys table[] = {
    {"alloc", ALLOC, {ENOMEM}},
    {"clone", CLONE, {EAGAIN}},
    /* memory */
    {"mmap", SYS_mmap, {ENOMEM, EAGAIN}},
    {"munmap", SYS_munmap, {ENOMEM}},
    {"mprotect", SYS_mprotect, {ENOMEM}},
    {"madvise", SYS_madvise, {EINVAL, ENOMEM, EAGAIN, EINTR}},
    {"process_madvise", SYS_process_madvise, {ENOSYS, EPERM, EINVAL, EINTR, EBADF}},
    {"sigaltstack", SYS_sigaltstack, {ENOMEM, EPERM}},
    {"process_vm_readv", SYS_process_vm_readv, {EFAULT, EPERM, ENOSYS, ENOMEM}},
    {"memfd_create", SYS_memfd_create, {EMFILE, ENFILE, ENOMEM, ENOSYS}},
    /* threads and time */
    {"futex", SYS_futex, {EINTR, EAGAIN}},
    {"tgkill", SYS_tgkill, {EAGAIN, ESRCH}},
    {"membarrier", SYS_membarrier, {ENOSYS, EPERM}},
    {"sched_getaffinity", SYS_sched_getaffinity, {EINVAL, EPERM, ENOSYS}},
    {"clock_gettime", SYS_clock_gettime, {EINVAL}},
    {"nanosleep", SYS_nanosleep, {EINTR}},
    {"timer_create", SYS_timer_create, {EAGAIN, ENOMEM}},
    {"timer_settime", SYS_timer_settime, {EINVAL}},
    {"timerfd_create", SYS_timerfd_create, {EMFILE, ENFILE, ENOMEM, ENOSYS}},
    {"prlimit64", SYS_prlimit64, {EPERM, ENOSYS}},
    {"getrandom", SYS_getrandom, {EINTR, ENOSYS}},
    /* the poller */
    {"epoll_create1", SYS_epoll_create1, {EMFILE, ENFILE, ENOMEM}},
    {"epoll_ctl", SYS_epoll_ctl, {ENOMEM, ENOSPC}},
    {"epoll_pwait", SYS_epoll_pwait, {EINTR}},
    {"epoll_pwait2", SYS_epoll_pwait2, {EINTR, ENOSYS, EPERM}},
    {"eventfd2", SYS_eventfd2, {EMFILE, ENFILE, ENOMEM}},
    {"ppoll", SYS_ppoll, {EINTR, ENOMEM}},
    {"io_uring_setup", SYS_io_uring_setup, {ENOSYS, EPERM, ENOMEM, EMFILE}},
    {"io_uring_register", SYS_io_uring_register, {ENOMEM, EPERM, EINVAL}},
    {"io_uring_enter", SYS_io_uring_enter, {EINTR, EAGAIN, EBUSY, ENOMEM, EPERM}},
    /* descriptors */
    {"openat", SYS_openat, {EMFILE, ENFILE, ENOENT, EACCES, EINTR, ENOMEM}},
    {"close", SYS_close, {EINTR, EIO}},
    {"read", SYS_read, {EINTR, EIO, EAGAIN}},
    {"write", SYS_write, {EINTR, EIO, EAGAIN, ENOSPC, EPIPE}},
    {"readv", SYS_readv, {EINTR, EIO}},
    {"writev", SYS_writev, {EINTR, EIO, ENOSPC}},
    {"pread64", SYS_pread64, {EINTR, EIO}},
    {"pwrite64", SYS_pwrite64, {EINTR, EIO, ENOSPC}},
    {"preadv2", SYS_preadv2, {EAGAIN, EOPNOTSUPP, ENOSYS, EINTR, EIO}},
    {"pwritev2", SYS_pwritev2, {EAGAIN, EOPNOTSUPP, ENOSYS, EINTR, EPIPE}},
    {"fsync", SYS_fsync, {EIO, EINTR, ENOSPC}},
    {"fstat", SYS_fstat, {ENOMEM, EOVERFLOW}},
    {"newfstatat", SYS_newfstatat, {ENOENT, EACCES, ENOMEM}},
    {"ftruncate", SYS_ftruncate, {EIO, EINTR}},
    {"readlinkat", SYS_readlinkat, {EACCES, ENOENT}},
    {"unlinkat", SYS_unlinkat, {EACCES, EBUSY}},
    {"fcntl", SYS_fcntl, {EMFILE, EINVAL}},
    {"kcmp", SYS_kcmp, {EPERM, ENOSYS}},
    /* sockets */
    {"socket", SYS_socket, {EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT}},
    {"bind", SYS_bind, {EADDRINUSE, EACCES, ENOMEM}},
    {"listen", SYS_listen, {EADDRINUSE}},
    {"accept4", SYS_accept4, {EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM}},
    {"connect", SYS_connect, {EINTR, ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EADDRNOTAVAIL, EAGAIN}},
    {"recvfrom", SYS_recvfrom, {EINTR, ECONNRESET, ETIMEDOUT, ENOMEM}},
    {"sendto", SYS_sendto, {EINTR, ECONNRESET, EPIPE, ENOBUFS, ENOMEM}},
    {"recvmsg", SYS_recvmsg, {EINTR, ECONNRESET, ENOMEM}},
    {"sendmsg", SYS_sendmsg, {EINTR, ECONNRESET, EPIPE, ENOBUFS, ENOMEM}},
    {"getsockopt", SYS_getsockopt, {ENOMEM}},
    {"setsockopt", SYS_setsockopt, {ENOMEM}},
    {"getsockname", SYS_getsockname, {ENOBUFS}},
    {"getpeername", SYS_getpeername, {ENOTCONN, ENOBUFS}},
    {"shutdown", SYS_shutdown, {ENOTCONN}},
    {"pipe2", SYS_pipe2, {EMFILE, ENFILE}},
    {"splice", SYS_splice, {EINVAL, ENOSYS, EINTR, ENOMEM}},
};

typedef struct Rule {
    long nr;
    int error;    /* 0: one of the table's */
    bool from;    /* nth and all after it */
    uint64_t nth; /* 0: drawn */
    uint64_t odds, seed;
} Rule;

bool sysfault_on;
static Rule rules[8];
static int nrules;
static bool counting, logging;
static uint64_t counts[count_of(table)], total; /* atomic */

/* ---- reading -------------------------------------------------------------------------------- */

/* Digits at *s, up to end; false: none, or far too many. */
static bool number(const char **s, const char *end, uint64_t *v) {
    const char *begin = *s;
    for (*v = 0; *s < end && **s >= '0' && **s <= '9'; ++*s) *v = *v * 10 + (uint64_t)(**s - '0');
    return *s > begin && *s - begin < 19;
}

static bool read_call(const char *s, size_t n, long *nr) {
    *nr = ANY;
    if (word_is(s, n, "any")) return true;
    for (size_t i = 0; i < count_of(table); i++) {
        if (!word_is(s, n, table[i].name)) continue;
        *nr = table[i].nr;
        return true;
    }
    return false;
}

static bool read_error(const char *s, size_t n, int *error) {
    uint64_t v;
    *error = 0;
    if (word_is(s, n, "any")) return true;
    for (const ErrnoName *e = errno_names; e->name; e++)
        if (word_is(s, n, e->name)) *error = e->error;
    if (*error != 0) return true;
    if (!parse_u64(s, n, &v) || v == 0 || v > 4095) return false;
    *error = (int)v;
    return true;
}

static bool read_when(const char *s, const char *end, Rule *r) {
    if (end - s > 2 && s[0] == '1' && s[1] == '/') {
        s += 2;
        r->seed = 1;
        if (!number(&s, end, &r->odds) || r->odds == 0) return false;
        if (s < end && *s == ':') {
            s++;
            if (!number(&s, end, &r->seed)) return false;
        }
        return s == end;
    }
    if (!number(&s, end, &r->nth) || r->nth == 0) return false;
    r->from = s < end && *s == '+';
    return s + r->from == end;
}

bool sysfault_rule(const char *s, size_t n) {
    const char *end = s + n, *a = memchr(s, ':', n);
    bool known = true;
    Rule r = {0};
    if (word_is(s, n, "count")) {
        counting = true;
    } else if (word_is(s, n, "log")) {
        logging = true;
    } else {
        const char *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;
        known = b && nrules < (int)count_of(rules) && read_call(s, (size_t)(a - s), &r.nr) &&
                read_error(a + 1, (size_t)(b - a - 1), &r.error) && read_when(b + 1, end, &r);
        if (known) rules[nrules++] = r;
    }
    sysfault_on |= known;
    return known;
}

void sysfault_clear(void) {
    sysfault_on = counting = logging = false;
    nrules = 0;
}

/* ---- deciding ------------------------------------------------------------------------------- */

static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static bool due(const Rule *r, uint64_t count) {
    if (r->nth == 0) return scramble(r->seed * 0x9E3779B97F4A7C15u + count) % r->odds == 0;
    return r->from ? count >= r->nth : count == r->nth;
}

static int one_of(const Sys *s, uint64_t count) {
    int n = 0;
    while (s->errors[n] != 0) n++;
    return s->errors[scramble(count) % (uint64_t)n];
}

/* This write is never refused. */
static void fault_say(const Out *o) { arch_sys6(SYS_write, 2, (long)o->buf, o->used, 0, 0, 0); }

static void log_fault(const Sys *s, uint64_t count, int error) {
    char line[128];
    Out o = OUT(-1, line);
    const char *name = errno_name(error);
    out_fmt(&o, "gort: sysfault: %s #%lu: %s\n", s->name, count, name ? name : "?");
    fault_say(&o);
}

static long decide(const Sys *s) {
    uint64_t own = add_rlx(&counts[s - table], 1), all = add_rlx(&total, 1);
    for (int i = 0; i < nrules; i++) {
        const Rule *r = &rules[i];
        uint64_t count = r->nr == ANY ? all : own;
        if ((r->nr != ANY && r->nr != s->nr) || !due(r, count)) continue;
        int error = r->error ? r->error : one_of(s, count);
        if (logging) log_fault(s, own, error);
        return -error;
    }
    return 0;
}

static const Sys *find(long nr) {
    for (size_t i = 0; i < count_of(table); i++)
        if (table[i].nr == nr) return &table[i];
    return NULL;
}

long sysfault_due(long nr, long second) {
    if (nr == SYS_futex && (second & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET) return 0;
    const Sys *s = find(nr);
    return s ? decide(s) : 0;
}

bool sysfault_alloc_due(void) { return decide(find(ALLOC)) < 0; }

int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (unlikely(sysfault_on) && decide(find(CLONE)) < 0) return EAGAIN;
    return pthread_create(thread, attr, fn, arg);
}

void sysfault_report(void) {
    if (!counting) return;
    for (size_t i = 0; i < count_of(table); i++) {
        char line[256];
        Out o = OUT(-1, line);
        uint64_t count = load_rlx(&counts[i]);
        if (count == 0) continue;
        out_fmt(&o, "gort: sysfault: %s %lu", table[i].name, count);
        for (const int *e = table[i].errors; *e != 0; e++) out_fmt(&o, " %s", errno_name(*e));
        out_str(&o, "\n");
        fault_say(&o);
    }
}
