/*
 * Every signal that ends a process by default, in every way in which it can come, without a
 * trace, with one, and with the flight recorder: the program has to end in the same way, and with a
 * whole file. See tests/script/trace_ends.sh.
 *
 *   trace_ends GORT-TRACE DIR [WAY]  walks all of them, or one way; a line for each
 *   trace_ends victim WAY SIGNAL     the program that ends; says on descriptor 3 that it is ready
 *
 * A victim that survives what should end it exits with SURVIVED, by exit(3). One that is killed
 * from outside and survives runs on, and so does the test, until its time limit.
 */
#define _GNU_SOURCE 1
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SURVIVED = 9, READY = 3 };
GORT_CHAN_TYPE(ints, int)

/* ---- inside: ways in which the victim ends itself -------------------------------------------- */

static void by_raise(int signo) { raise(signo); }
static void by_abort(int signo) { abort(); }
static void by_timer(int signo) {
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo};
    struct itimerspec often = {.it_value = {.tv_nsec = 1}, .it_interval = {.tv_nsec = GORT_MS}};
    /* debug/faults.c: the second ends it at once */
    bool once = signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL ||
                signo == SIGABRT;
    if (once) often.it_interval = (struct timespec){0};
    timer_t t;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &ev, &t), 0);
    CHECK_EQ(timer_settime(t, 0, &often, NULL), 0);
    for (;;) gort_yield();
}
static void by_itimer(int signo) {
    int which = signo == SIGALRM ? ITIMER_REAL : signo == SIGPROF ? ITIMER_PROF : ITIMER_VIRTUAL;
    struct itimerval often = {.it_value = {.tv_usec = 1}, .it_interval = {.tv_usec = 1000}};
    CHECK_EQ(setitimer(which, &often, NULL), 0);
    for (;;) gort_yield();
}
/* As a descriptor's: its code is above 0 and says which event. */
static void by_descriptor(int signo) {
    int p[2];
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(fcntl(p[0], F_SETOWN, getpid()), 0);
    CHECK_EQ(fcntl(p[0], F_SETSIG, signo), 0);
    CHECK_EQ(fcntl(p[0], F_SETFL, O_ASYNC), 0);
    CHECK_EQ(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
    for (;;) CHECK_EQ(write(p[1], "x", 1) == 1 || errno == EAGAIN, true);
}
/* In the guise of a fault, as a reporter of crashes passes one on. */
static void by_guise(int signo) {
    siginfo_t info = {.si_signo = signo, .si_code = 1};
    gort_lock_thread();
    CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signo, &info), 0);
}
static void by_limit(int signo) {
    if (signo == SIGXCPU) {
        CHECK_EQ(setrlimit(RLIMIT_CPU, &(struct rlimit){1, RLIM_INFINITY}), 0);
        for (;;) gort_yield();
    }
    char name[] = "/tmp/trace_ends.XXXXXX";
    int fd = mkstemp(name);
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 28, RLIM_INFINITY}), 0);
    CHECK_EQ(pwrite(fd, "x", 1, 1 << 28), -1);
}
static void by_filter(int signo) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {4, f};
    gort_lock_thread();
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p), 0);
    syscall(SYS_getppid);
}
static volatile int zero;
static void by_fault(int signo) {
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, memfd_create("empty", 0), 0);
    switch (signo) {
    case SIGBUS: (void)*(volatile char *)page; break;
    case SIGILL: __builtin_trap();
#ifdef __x86_64__
    case SIGFPE: zero = 7 / zero; break;
    case SIGTRAP: __asm__ volatile("int3"); break;
#endif
    default: *(volatile int *)8 = 1;
    }
}
static void by_nothing(int signo) {
    for (;;) gort_yield();
}

/* ---- outside: what the walker does once the victim is ready ---------------------------------- */

static int terminal; /* its master */
static void sends_kill(int pid, int signo) { CHECK_EQ(kill(pid, signo), 0); }
static void sends_queue(int pid, int signo) {
    CHECK_EQ(sigqueue(pid, signo, (union sigval){.sival_int = 7}), 0);
}
static void sends_to_thread(int pid, int signo) {
    CHECK_EQ(syscall(SYS_tgkill, pid, pid, signo), 0);
}
static void types(int pid, int signo) {
    if (signo == SIGHUP) CHECK_EQ(close(terminal), 0);
    else CHECK_EQ(write(terminal, signo == SIGINT ? "\3" : "\34", 1), 1);
}

static const int every[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,    SIGTRAP, SIGABRT,
                            SIGFPE,  SIGBUS,    SIGSEGV, SIGUSR1,   SIGUSR2, SIGALRM,
                            SIGTERM, SIGSTKFLT, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO,
                            SIGPWR,  SIGSYS,    SIGXFSZ, 40,        64,      0};
#define SOME SIGINT, SIGABRT, SIGFPE, SIGSYS, SIGUSR1, SIGTERM, 40
static const struct Way {
    const char *name;
    void (*inside)(int signo);
    void (*outside)(int pid, int signo);
    int signals[8]; /* none: every one */
} ways[] = {
    {"kill", by_nothing, sends_kill, {0}},
    {"sigqueue", by_nothing, sends_queue, {SOME}},
    {"tgkill", by_nothing, sends_to_thread, {SOME}},
    {"raise", by_raise, NULL, {0}},
    {"timer", by_timer, NULL, {0}},
    {"descriptor", by_descriptor, NULL, {SIGIO, SIGUSR1, SIGTERM, 40}},
    {"terminal", by_nothing, types, {SIGINT, SIGQUIT, SIGHUP}},
    {"itimer", by_itimer, NULL, {SIGALRM, SIGVTALRM, SIGPROF}},
    {"limit", by_limit, NULL, {SIGXCPU, SIGXFSZ}},
    {"filter", by_filter, NULL, {SIGSYS}},
    {"abort", by_abort, NULL, {SIGABRT}},
    {"guise", by_guise, NULL, {SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGTERM}},
#ifdef __x86_64__
    {"fault", by_fault, NULL, {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}},
#else
    {"fault", by_fault, NULL, {SIGSEGV, SIGBUS, SIGILL}},
#endif
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- the victim ------------------------------------------------------------------------------ */

static void reader(void *arg) {
    for (int v; ints_recv(arg, &v) == 0;) {}
}
static void writer(void *arg) {
    for (int i = 0; ints_send(arg, i) == 0; i++) {}
}
static int ends(int argc, char **argv) {
    const struct Way *way = &ways[atoi(argv[2])];
    ints *c = ints_new(0);
    gort_go(reader, c);
    for (int i = 0; i < 300; i++) ints_send(c, i);
    gort_go(writer, c); /* busy until the end */
    CHECK_EQ(write(READY, "r", 1), 1);
    way->inside(atoi(argv[3]));
    exit(SURVIVED);
}

/* ---- the walk -------------------------------------------------------------------------------- */

enum { NONE, TRACE, FLIGHT, FORMS };
static const char *const form_names[FORMS] = {"no trace", "a trace", "the flight recorder"};
static char self[4096], file[4096];
static const char *gort_trace;
static bool first_process; /* victims are process 1 of a namespace of their own */

static void becomes_victim(const char *way, const char *signo, int form, int ready, int slave) {
    setsid();
    if (slave >= 0) CHECK_EQ(ioctl(slave, TIOCSCTTY, 0), 0);
    int quiet = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(quiet, fd);
    dup2(ready, READY);
    clearenv();
    setenv("GORT_MAXPROCS", "2", 1);
    if (form != NONE) setenv("GORT_TRACE", file, 1);
    if (form == FLIGHT) setenv("GORT_DEBUG", "flight=10000", 1);
    execl(self, self, "victim", way, signo, NULL);
    _exit(99);
}

/* -1: a namespace of its own is refused here. */
static int fork_victim(void) {
    if (!first_process) return fork();
    return (int)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
}

static int open_terminal(void) {
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return -1;
    return open(ptsname(terminal), O_RDWR | O_NOCTTY);
}

/* Its status without the bit for a core. -1: this cannot be had here. */
static int run_victim(int w, int signo, int form) {
    const struct Way *way = &ways[w];
    char way_number[12], signo_number[12], c;
    int ready[2], status, slave = -1;
    snprintf(way_number, sizeof way_number, "%d", w);
    snprintf(signo_number, sizeof signo_number, "%d", signo);
    unlink(file);
    if (way->outside == types && (slave = open_terminal()) < 0) return -1;
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    int pid = fork_victim();
    if (pid == 0) becomes_victim(way_number, signo_number, form, ready[1], slave);
    if (pid < 0) return -1;
    close(ready[1]);
    if (slave >= 0) close(slave);
    CHECKF(read(ready[0], &c, 1) == 1, "the victim ended before it was ready");
    if (way->outside) way->outside(pid, signo);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    close(ready[0]);
    if (slave >= 0 && signo != SIGHUP) close(terminal);
    return status & ~0x80;
}

/* gort-trace reads the file to its end, and finds the goroutine. */
static bool file_is_whole(void) {
    int status, p[2];
    char out[65536];
    ssize_t n = 0, k;
    CHECK_EQ(pipe(p), 0);
    int pid = fork();
    if (pid == 0) {
        dup2(p[1], 1);
        close(p[0]);
        execl(gort_trace, gort_trace, "summary", file, NULL);
        _exit(99);
    }
    close(p[1]);
    while ((k = read(p[0], out + n, sizeof out - 1 - (size_t)n)) > 0) n += k;
    out[n] = 0;
    close(p[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status == 0 && strstr(out, "reader") != NULL;
}

/* False: it cannot be had here. */
static bool compare(int w, int signo) {
    int want = run_victim(w, signo, NONE);
    printf("%s%s, signal %d: status %#x\n", first_process ? "process 1, " : "", ways[w].name, signo,
           (unsigned)want);
    fflush(stdout);
    if (want == -1) return false;
    for (int form = TRACE; form < FORMS; form++) {
        int got = run_victim(w, signo, form);
        if (got != want)
            FAILF("%s, signal %d: with %s the status is %#x, not %#x", ways[w].name, signo,
                  form_names[form], (unsigned)got, (unsigned)want);
        /* at a normal end the flight recorder writes nothing */
        if (form == FLIGHT && want == SURVIVED << 8) continue;
        if (!file_is_whole())
            FAILF("%s, signal %d: the file of %s is not whole", ways[w].name, signo,
                  form_names[form]);
    }
    return true;
}

static void walk(int w) {
    const int *signo = ways[w].signals[0] ? ways[w].signals : every;
    for (; *signo; signo++)
        if (!compare(w, *signo)) {
            printf("left out: %s\n", ways[w].name);
            return;
        }
}

static int find_way(const char *name) {
    int w = 0;
    while (strcmp(ways[w].name, name) != 0) w++;
    return w;
}

/* What the kernel does not let end it, a trace does not let either. */
static void walk_first_process(void) {
    first_process = true;
    walk(find_way("raise"));
    if (compare(find_way("fault"), SIGILL)) walk(find_way("guise"));
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "victim") == 0) return gort_main(ends, argc, argv);
    if (argc < 3) FAILF("usage: trace_ends GORT-TRACE DIR");
    CHECK_GE(readlink("/proc/self/exe", self, sizeof self - 1), 1);
    gort_trace = argv[1];
    snprintf(file, sizeof file, "%s/trace.json", argv[2]);
    signal(SIGHUP, SIG_DFL);
    for (int w = 0; w < WAYS; w++)
        if (argc == 3 || strcmp(argv[3], ways[w].name) == 0) walk(w);
    if (argc == 3 || strcmp(argv[3], "process-1") == 0) walk_first_process();
    return 0;
}
