/*
 * Running out: the searcher. Each case takes something away, before gort_main (early:) or while a
 * runtime runs (late:), and one program then asks what has to hold on whatever is missing:
 *
 *   beat     a timer goes off                          io       a waiting reader is woken
 *   preempt  endless loops on every P are interrupted  many     what gort_go accepts, runs
 *   retake   an unannounced call that sleeps in the kernel on every P keeps nobody from running,
 *            and gives no EINTR
 *   locked   goroutines that sleep, locked to their threads, wake up: as many as there are threads,
 *            and more
 *   bodies   what gort_go_with accepts as a thread to libc runs and ends; destructors of keys run
 *   calls    every public call returns or fails with an errno (calls.h)
 *   number   a descriptor nobody has used yet is used: what need not wait works, what must wait
 *            says so; it closes
 *   clock    two thousand goroutines that wait with a deadline wait that long
 *   idle     an idle program uses no CPU dead a deadlock is reported, with status 2
 *
 * A case is good if all of it holds; if gort_main refuses with an errno; or if the runtime has said
 * which guarantee is gone ("gort: warning: "; where a system call is refused, "gort: fatal:
 * cannot"). All else is a finding. What a warning does not excuse: an answer that is not true
 * (number, clock), sleepers that stay asleep (locked).
 *
 *   scarce [-v] [-p procs] CASE...       CASE: [early:|late:]WHAT[=N]
 *     nofile=N   at most N descriptors          full       all descriptors are in use
 *     closefrom  all from 3 on are closed closehigh all from 64 on; the program's own are below
 *     reuse      closehigh, and the numbers are files, pipes, timers and epoll sets of the program
 *                then
 *     closefrom+page reuse+page  likewise, while the live page and a trace are on; among the
 *                program's own is a listener then: it is served by the program alone, the trace
 *                says that it is lost, nothing is written to a stranger, and the end closes none
 *     as=N data=N  N MB more than now           stack=N nproc=N sigpending=N memlock=N
 *     noproc     /proc is empty (root)          sys=NR/ERRNO  seccomp refuses this system call
 *   scarce -n    the names of the calls it knows
 */
#include "calls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#undef errno
#define errno (*gort_errno_location())

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define LIMIT_S 15
#define MANY 3000
#define ACCEPT_MORE 12000
#define LOW 64 /* the program's own descriptors are below */

enum {
    BEGIN,
    NUMBER,
    CLOCK,
    BEAT,
    LOCKED,
    PREEMPT,
    RETAKE,
    IO,
    STARTS,
    BODIES,
    CALLS,
    IDLE,
    OWN,
    DEAD,
    STAGES
};
static const char *const stage_name[STAGES] = {"begin",   "number", "clock", "beat", "locked",
                                               "preempt", "retake", "io",    "many", "bodies",
                                               "calls",   "idle",   "own",   "dead"};

static struct Shared {
    int stage, untrue;
    char detail[160];
} * shared;
static const char *limit;
static long refused_with; /* sys=NR/ERRNO: -errno */
static int procs = 1;
static bool verbose;

#define get(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define set(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)

/* The case is lost: says why. By bare system calls, since any may be refused. */
static void wrong(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(shared->detail, sizeof shared->detail, format, ap);
    va_end(ap);
    _exit(20);
}
/* Likewise, and no warning makes it good. */
#define untrue(...) (set(&shared->untrue, 1), wrong(__VA_ARGS__))

/* The program's own calls fail: nothing can be asked. */
static void short_itself(int error) {
    snprintf(shared->detail, sizeof shared->detail, "the program itself cannot begin: %d", error);
    _exit(10);
}

/* ---- taking away ----------------------------------------------------------------------------- */

static long number_of(const char *what) {
    const char *eq = strchr(what, '=');
    return eq ? atol(eq + 1) : 0;
}
static bool is(const char *what, const char *name) {
    size_t n = strcspn(what, "=");
    return strlen(name) == n && memcmp(what, name, n) == 0;
}

static void set_limit(int which, rlim_t n) {
    struct rlimit lim = {n, n};
    if (setrlimit(which, &lim) != 0) wrong("setrlimit: %d", errno);
}

/* bytes of address space, or of private writable memory: an upper bound of both */
static rlim_t mapped(void) {
    char text[256] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fgets(text, sizeof text, f) == NULL) wrong("no statm");
    fclose(f);
    return (rlim_t)atol(text) * 4096;
}

static void refuse(const char *what) {
    long nr = number_of(what), error = atol(strchr(what, '/') + 1);
    refused_with = -error;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
        _exit(77);
}

static void no_proc(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        _exit(77);
}

/* Nobody else's threads count against it. */
static void few_threads(long n) {
    uid_t nobody = 200000 + (uid_t)getpid() % 100000;
    if (geteuid() != 0 || setresgid(nobody, nobody, nobody) != 0 ||
        setresuid(nobody, nobody, nobody) != 0)
        _exit(77);
    set_limit(RLIMIT_NPROC, (rlim_t)n);
}

static void fill_up(void) {
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    lim.rlim_cur = 300;
    if (setrlimit(RLIMIT_NOFILE, &lim) != 0) wrong("setrlimit: %d", errno);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
    if (errno != EMFILE) wrong("open: %d", errno);
}

static bool watched; /* the page and a trace are on */
static void watch_begin(void) {
    char path[sizeof had.path + 8];
    snprintf(path, sizeof path, "%s.trace", had.path);
    int r = gort_debug_listen("127.0.0.1:0"), e = gort_trace_start(path);
    unlink(path);
    if (r < 0 || e < 0) short_itself(r < 0 ? -r : -e);
    gort_sleep(GORT_MS);
}

/* Files, pipes, timers, an epoll set and a listener stand where the runtime's own descriptors
 * stood. */
enum { KINDS = 5 };
static int stranger[2] = {-1, -1}, kinds[KINDS];
static char stranger_addr[64];
static int next_number(int fd) { return fd == 139 ? 1000 : fd + 1; }
#define each_number(fd) (int fd = 100; fd < 1040; fd = next_number(fd))
static int kind_of(int fd) { return (int)((number_of(limit) + fd) % (watched ? KINDS : 4)); }

static void reuse_numbers(void) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), ep = epoll_create1(EPOLL_CLOEXEC);
    int listener = gort_listen("127.0.0.1:0", 8), quiet = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    struct epoll_event always = {.events = EPOLLOUT, .data.u64 = 0x123456789};
    if (pipe2(stranger, O_CLOEXEC | O_NONBLOCK) != 0 || timer < 0 || ep < 0 || listener < 0)
        wrong("pipe2: %d", errno);
    gort_local_addr(listener, stranger_addr, sizeof stranger_addr);
    epoll_ctl(ep, EPOLL_CTL_ADD, stranger[1], &always);
    memcpy(kinds, (int[]){stranger[1], quiet >= 0 ? quiet : had.file, ep, timer, listener},
           sizeof kinds);
    for
        each_number(fd) while (dup3(kinds[kind_of(fd)], fd, O_CLOEXEC) != fd)
            /* EBUSY: the runtime is just being given this number, as dup(2) has it */
            if (errno != EBUSY) wrong("dup3: %d", errno);
}

/* They are as they were. */
static void strangers_stay(void) {
    struct stat is, was;
    char c;
    if (stranger[0] < 0) return;
    if (read(stranger[0], &c, 1) > 0) wrong("bytes of the runtime went to a pipe of the program");
    if (kinds[1] != had.file && (fstat(kinds[1], &was) != 0 || was.st_size != 0))
        wrong("bytes of the runtime went to a file of the program");
    for
        each_number(fd) {
            if (fstat(kinds[kind_of(fd)], &was) != 0 || fstat(fd, &is) != 0)
                wrong("number %d of the program was closed", fd);
            if (is.st_dev != was.st_dev || is.st_ino != was.st_ino)
                wrong("number %d of the program is another file", fd);
        }
}

/* Whoever connects to the program's listener is accepted by it. */
static int served;
static void accepts(void *number) {
    int fd = gort_accept((int)(intptr_t)number, NULL, NULL);
    if (fd < 0) wrong("an accept gave %d", fd);
    gort_close(fd);
    add(&served, 1);
}
static void own(void) {
    int n = 0;
    if (stranger[0] >= 0 && watched) {
        for
            each_number(fd) {
                if (kind_of(fd) != KINDS - 1) continue;
                if (gort_go(accepts, (void *)(intptr_t)fd) != 0) return;
                gort_sleep(GORT_MS);
                int client = gort_dial(stranger_addr, GORT_FOREVER);
                if (client < 0) wrong("a dial gave %d", client);
                for (n++; get(&served) < n;) gort_sleep(GORT_MS);
                gort_close(client);
            }
    }
    strangers_stay();
}

static void take_away(const char *what) {
    char plain[64];
    size_t name = strcspn(what, "+");
    watched = strstr(what, "+page") != NULL;
    if (watched) { /* the rest is as without it */
        snprintf(plain, sizeof plain, "%.*s%s", (int)name, what, what + name + strlen("+page"));
        watch_begin();
        what = plain;
    }
    long n = number_of(what);
    if (is(what, "nofile")) set_limit(RLIMIT_NOFILE, (rlim_t)n);
    else if (is(what, "full")) fill_up();
    else if (is(what, "closefrom")) syscall(SYS_close_range, 3, ~0U, 0);
    else if (is(what, "closehigh")) syscall(SYS_close_range, LOW, ~0U, 0);
    else if (is(what, "reuse")) syscall(SYS_close_range, LOW, ~0U, 0), reuse_numbers();
    else if (is(what, "as")) set_limit(RLIMIT_AS, mapped() + ((rlim_t)n << 20));
    else if (is(what, "data")) set_limit(RLIMIT_DATA, ((rlim_t)n << 20));
    else if (is(what, "stack")) set_limit(RLIMIT_STACK, (rlim_t)n);
    else if (is(what, "sigpending")) set_limit(RLIMIT_SIGPENDING, (rlim_t)n);
    else if (is(what, "memlock")) set_limit(RLIMIT_MEMLOCK, (rlim_t)n);
    else if (is(what, "nproc")) few_threads(n);
    else if (is(what, "noproc")) no_proc();
    else if (is(what, "sys")) refuse(what);
    else if (!is(what, "none")) wrong("unknown case");
}

/* ---- the questions --------------------------------------------------------------------------- */

static void stage(int which) { set(&shared->stage, which); }

/* What the program had before. */
static void prepare(void) {
    strcpy(had.path, "/tmp/gort-scarce-XXXXXX");
    had.file = mkstemp(had.path);
    had.listener = gort_listen("127.0.0.1:0", 8);
    if (had.listener >= 0) gort_local_addr(had.listener, had.addr, sizeof had.addr);
    if (had.file < 0 || had.listener < 0 || pipe2(had.pipe, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, had.sock) != 0)
        short_itself(errno);
}

static int loops, running;
static void endless(void *arg) {
    add(&running, 1);
    while (get(&loops)) {}
    add(&running, -1);
}
static void preempt(void) {
    set(&loops, 1);
    int started = 0;
    for (int i = 0; i < procs; i++) started += gort_go(endless, NULL) == 0;
    for (int i = 0; i < 3; i++) gort_sleep(GORT_MS);
    while (started == procs && get(&running) < procs) gort_sleep(GORT_MS);
    set(&loops, 0);
    while (get(&running)) gort_sleep(GORT_MS);
}

static int asleep, eintrs;
static uint32_t gate;
static void sleeps_in_kernel(void *arg) {
    struct pollfd f = {.fd = had.pipe[0], .events = POLLIN};
    add(&asleep, 1);
    while (!get(&gate)) {
        int r = ppoll(&f, 1, NULL, NULL); /* libc's own: a bare one cannot be made again */
        if (r < 0 && errno == EINTR) add(&eintrs, 1);
        else if (r < 0) syscall(SYS_futex, &gate, 128, 0, NULL, NULL, 0);
    }
    add(&asleep, -1);
}
static void retake(void) {
    int started = 0;
    for (int i = 0; i < procs; i++) started += gort_go(sleeps_in_kernel, NULL) == 0;
    while (get(&asleep) < started) gort_sleep(GORT_MS);
    for (int i = 0; i < 10; i++) gort_sleep(2 * GORT_MS);
    set(&gate, 1);
    if (write(had.pipe[1], "x", 1) != 1) short_itself(errno);
    syscall(SYS_futex, &gate, 129, 1000, NULL, NULL, 0);
    while (get(&asleep)) gort_sleep(GORT_MS);
    if (get(&eintrs)) wrong("%d calls of the program were interrupted", eintrs);
    char c;
    if (read(had.pipe[0], &c, 1) != 1) short_itself(errno);
}

/* Threads that belong to sleepers are free again when these have slept, though no others can be
 * had. */
static int slept;
static void sleeps_locked(void *arg) {
    gort_lock_thread();
    gort_sleep(GORT_MS);
    gort_unlock_thread();
    add(&slept, 1);
}
static void locked(void) {
    int started = 0;
    for (int i = 0; i < 12; i++) started += gort_go(sleeps_locked, NULL) == 0;
    while (get(&slept) < started) gort_sleep(GORT_MS);
}

/* One reader has waited since before the limit (reader_before), one comes after it. */
static int reader[2], got[2];
static void reads(void *arg) {
    int i = (int)(intptr_t)arg;
    char c;
    long r = gort_read(reader[i], &c, 1);
    if (r == refused_with) short_itself((int)-r); /* with its errno */
    if (r != 1) wrong("a read gave %ld", r);
    set(&got[i], 1);
}
static int p_before[2] = {-1, -1}, p_after[2] = {-1, -1};
static void io_begin(int i, int *p) {
    if (p[0] < 0 && pipe2(p, O_CLOEXEC) != 0) short_itself(errno);
    reader[i] = p[0];
    if (gort_go(reads, (void *)(intptr_t)i) != 0) set(&got[i], 2);
    gort_sleep(GORT_MS);
}
static void io_end(int i, int *p) {
    if (get(&got[i]) == 2) return;
    long r = gort_write(p[1], "x", 1);
    if (r == refused_with) short_itself((int)-r);
    if (r != 1) wrong("a write gave %ld", r);
    while (!get(&got[i])) gort_sleep(GORT_MS);
}

/* Numbers that the runtime has not met: its first note of one may need memory. */
#define FAR 5000
static int far_pipe[2] = {-1, -1};
static void far_begin(void) {
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_max < FAR + 10) return;
    if (lim.rlim_cur < FAR + 10) lim.rlim_cur = FAR + 10;
    if (setrlimit(RLIMIT_NOFILE, &lim) != 0) return;
    for (int i = 0; i < 2; i++) far_pipe[i] = fcntl(had.pipe[i], F_DUPFD_CLOEXEC, FAR);
}
static void far_is(const char *what, long r, long right, long or) {
    if (r != right && r != or) untrue("%s of a new number gave %ld", what, r);
}
static void number(void) {
    char c;
    if (far_pipe[1] < 0) return;
    struct pollfd f = {.fd = far_pipe[0], .events = POLLIN};
    far_is("a read that must wait", gort_read_until(far_pipe[0], &c, 1, gort_now() + GORT_MS),
           -ENOMEM, -ETIMEDOUT);
    far_is("a read that may not wait", gort_read_until(far_pipe[0], &c, 1, 0), -ETIMEDOUT,
           -ETIMEDOUT);
    far_is("a poll that must wait", gort_poll(&f, 1, 1), -ENOMEM, 0);
    far_is("a poll that may not wait", gort_poll(&f, 1, 0), 0, 0);
    far_is("a write", gort_write(far_pipe[1], "x", 1), 1, 1);
    far_is("a poll", gort_poll(&f, 1, 1), 1, 1);
    far_is("a read", gort_read(far_pipe[0], &c, 1), 1, 1);
    for (int i = 0; i < 2; i++) {
        far_is("close", gort_close(far_pipe[i]), 0, 0);
        far_is("a second close", gort_close(far_pipe[i]), -EBADF, -EBADF);
        if (fcntl(far_pipe[i], F_GETFD) >= 0) untrue("a closed number is open");
    }
    far_is("a read after the close", gort_read(far_pipe[0], &c, 1), -EBADF, -EBADF);
}

/* They are there before the limit. More than the runtime has room for in advance. */
#define CROWD 2000
#define A_WHILE (30 * GORT_MS)
static gort_sem begin_waiting;
static int waiting, waited;
static void waits_a_while(void *arg) {
    static gort_mutex mu[CROWD];
    static gort_sem none;
    static gort_wg never[CROWD];
    int i = (int)(intptr_t)arg, kind = i % 5;
    long r = -ETIMEDOUT;
    add(&waiting, 1);
    gort_sem_acquire(&begin_waiting, 1);
    int64_t until = gort_now() + A_WHILE + (i * 37 % 100) * 100 * GORT_US;
    if (kind == 0) gort_sleep_until(until);
    if (kind == 1) gort_mutex_lock(&mu[i]), r = gort_mutex_lock_until(&mu[i], until);
    if (kind == 2) r = gort_sem_acquire_until(&none, 1, until);
    if (kind == 3) gort_wg_add(&never[i], 1), r = gort_wg_wait_until(&never[i], until);
    if (kind == 4) gort_sleep(until - gort_now());
    if (r != -ETIMEDOUT || gort_now() < until)
        untrue("a wait of kind %d gave %ld, %ld us early", kind, r,
               (long)(until - gort_now()) / 1000);
    add(&waited, 1);
}
static void crowd_begin(void) {
    int n = 0;
    for (intptr_t i = 0; i < CROWD; i++) n += gort_go(waits_a_while, (void *)i) == 0;
    while (get(&waiting) < n) gort_sleep(GORT_MS);
}
static void clocks(void) {
    gort_sem_release(&begin_waiting, get(&waiting));
    while (get(&waited) < get(&waiting)) gort_sleep(GORT_MS);
}

static gort_chan *go_on;
static int ran;
static void runs(void *arg) {
    add(&ran, 1);
    gort_chan_recv(go_on, NULL);
    add(&ran, -1);
}
/* All of them at once before the first runs, and more while they wait. */
static void starts(void) {
    static const gort_attr large = {.stack_size = 256 << 10};
    int accepted = 0, r = 0, at_once = ACCEPT_MORE;
    if ((go_on = gort_chan_new(0, 0)) == NULL) return;
    for (int i = 0; i < at_once && (r = gort_go(runs, NULL)) == 0; i++) accepted++;
    if (r != 0 && r != -ENOMEM && r != -EAGAIN) wrong("gort_go gave %d", r);
    while (get(&ran) < accepted) gort_sleep(GORT_MS);
    for (int i = 0; i < MANY / 10 && (r = gort_go_with(&large, runs, NULL)) == 0; i++) accepted++;
    for (int i = 0; i < MANY && (r = gort_go(runs, NULL)) == 0; i++) accepted++;
    while (get(&ran) < accepted) gort_sleep(GORT_MS);
    gort_chan_close(go_on);
    while (get(&ran)) gort_sleep(GORT_MS);
    gort_chan_release(go_on);
}

/* Some were there before the limit, and end under it. */
static pthread_key_t body_key;
static int bodies_ran, bodies_destroyed;
static void body_ends(void *arg) { add(&bodies_destroyed, 1); }
static void is_thread(void *arg) {
    int has_room = pthread_setspecific(body_key, &body_key) == 0;
    if (!has_room) add(&bodies_destroyed, 1);
    gort_yield();
    if (has_room && pthread_getspecific(body_key) != &body_key) wrong("a body's value has changed");
    add(&bodies_ran, 1);
}
static gort_sem end_bodies;
static int bodies_before, bodies_gone;
static void ends_later(void *arg) {
    gort_sem_acquire(&end_bodies, 1);
    add(&bodies_gone, 1);
}
static void bodies_begin(void) {
    for (int i = 0; i < 4; i++)
        bodies_before += gort_go_with(&(gort_attr){.thread = 1}, ends_later, NULL) == 0;
}
static void bodies(void) {
    enum { EACH = 10 };
    gort_sem_release(&end_bodies, bodies_before);
    while (get(&bodies_gone) < bodies_before) gort_sleep(GORT_MS);
    int begun = 0, r = 0;
    for (int i = 0; i < 2 * EACH; i++) {
        r = gort_go_with(&(gort_attr){.thread = 1}, is_thread, NULL);
        if (r == -ENOTSUP) return;
        if (r > 0 || r < -4095) wrong("gort_go_with for a thread gave %d", r);
        begun += r == 0;
        if (i % EACH == EACH - 1)
            while (get(&bodies_ran) < begun) gort_sleep(GORT_MS);
    }
    while (get(&bodies_destroyed) < begun) gort_sleep(GORT_MS);
}

static void calls(void) {
    for (size_t i = 0; i < sizeof every_call / sizeof every_call[0]; i++) {
        strcpy(shared->detail, every_call[i].name);
        long r = every_call[i].fn();
        if (r < -4095) wrong("%s gave %ld", every_call[i].name, r);
    }
    shared->detail[0] = 0;
    gort_wg_wait(&c_wg);
    char drain[512];
    while (recv(had.sock[0], drain, sizeof drain, MSG_DONTWAIT) > 0) {}
}

static int64_t cpu_of_process(void) {
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}
static void idle(void) {
    gort_sleep(20 * GORT_MS);
    int64_t before = cpu_of_process(), began = gort_now();
    gort_sleep(250 * GORT_MS);
    /* on a busy machine it is longer */
    int64_t used = cpu_of_process() - before, took = gort_now() - began;
    if (used > took / 10)
        wrong("an idle program used %ld ms of CPU in %ld", (long)(used / GORT_MS),
              (long)(took / GORT_MS));
}

static int app(int argc, char **argv) {
    bool late = strncmp(limit, "late:", 5) == 0;
    const char *what = strchr(limit, ':') ? strchr(limit, ':') + 1 : limit;
    prepare();
    if (pthread_key_create(&body_key, body_ends) != 0) short_itself(errno);
    bodies_begin();
    io_begin(0, p_before);
    if (pipe2(p_after, O_CLOEXEC) != 0) short_itself(errno);
    gort_sleep(2 * GORT_MS);
    bool closes_all = is(what, "closefrom") || is(what, "closefrom+page");
    if (late && closes_all) {
        gort_write(p_before[1], "x", 1); /* it would be closed under its reader: another story */
        while (!get(&got[0])) gort_sleep(GORT_MS);
        got[0] = 2;
    }
    limit = what;
    if (late && (is(what, "as") || is(what, "data"))) far_begin(), crowd_begin();
    if (late) take_away(what);
    if (late && closes_all) p_after[0] = -1, prepare();
    for (int i = 0; watched && i < 10000; i++) gort_yield(); /* more than a buffer of the trace */
    int lost = watched ? gort_trace_stop() : -EBADF;
    if (lost != -EBADF) wrong("a trace without its files gave %d", lost);
    stage(NUMBER), number();
    stage(CLOCK), clocks();
    stage(BEAT);
    for (int i = 0; i < 3; i++) gort_sleep(GORT_MS);
    stage(LOCKED), locked();
    stage(PREEMPT), preempt();
    stage(RETAKE), retake();
    stage(IO), io_begin(1, p_after);
    io_end(1, p_after);
    io_end(0, p_before);
    stage(STARTS), starts();
    stage(BODIES), bodies();
    stage(CALLS), calls();
    stage(IDLE), idle();
    stage(OWN), own();
    stage(DEAD);
    unlink(had.path);
    if (watched) return 0; /* the page waits for somebody to come */
    static gort_wg never;  /* a wait that takes no memory */
    gort_wg_add(&never, 1);
    gort_wg_wait(&never);
    return 0;
}

/* ---- one case -------------------------------------------------------------------------------- */

static int one_case(const char *which, int err) {
    limit = which;
    dup2(err, 2);
    for (int fd = 3; fd < 20; fd++) close(fd);
    if (strncmp(which, "early:", 6) == 0) take_away(which + 6);
    int r = gort_main(app, 0, NULL);
    if (r == 0 && watched) {
        strangers_stay();
        return 11;
    }
    if (r >= 0) wrong("gort_main gave %d", r);
    snprintf(shared->detail, sizeof shared->detail, "gort_main gave %d", r);
    return 10;
}

static void show(FILE *f, const char *only) {
    char line[400];
    rewind(f);
    for (int n = 0; fgets(line, sizeof line, f) && n < 12;)
        if (only == NULL || strstr(line, only)) printf("      | %s", line), n++;
}
static bool has(FILE *f, const char *text) {
    char line[400];
    rewind(f);
    while (fgets(line, sizeof line, f))
        if (strstr(line, text)) return true;
    return false;
}

/* 0: it ended; else it did not in LIMIT_S, or has said that it will not. */
static int wait_for(pid_t pid, int *status, FILE *err) {
    for (int i = 0; i < LIMIT_S * 200; i++) {
        if (waitpid(pid, status, WNOHANG) == pid) return 0;
        if (i % 20 == 19 && get(&shared->stage) == DEAD &&
            has(err, "gort: warning: all goroutines are asleep"))
            break;
        usleep(5000);
    }
    kill(pid, SIGQUIT);
    usleep(300000);
    kill(pid, SIGKILL);
    waitpid(pid, status, 0);
    return 1;
}

static char verdict[300];
static bool judge(const char *which, int hung, int status, FILE *err) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    const char *at = stage_name[shared->stage];
    bool refused = strstr(which, ":sys=") != NULL; /* nothing else may end a program once it runs */
    bool said =
        has(err, "gort: warning: ") || (refused && has(err, "gort: fatal: ") && has(err, "cannot"));
    if (!refused && shared->stage == BEGIN) said = false; /* gort_main returns an errno instead */
    if (!hung && code == 77) return snprintf(verdict, sizeof verdict, "left out here"), true;
    if (!hung && code == 10)
        return snprintf(verdict, sizeof verdict, "refused: %s", shared->detail), true;
    if (!hung && shared->stage == DEAD && (code == 11 || (code == 2 && has(err, "deadlock!"))))
        return snprintf(verdict, sizeof verdict, "holds"), true;
    snprintf(verdict, sizeof verdict, "%s at %s%s%s (status %d)", hung ? "HANGS" : "FAILS", at,
             shared->detail[0] ? ": " : "", shared->detail, code);
    if (shared->untrue || (hung && shared->stage == LOCKED)) return false;
    if (said) memcpy(verdict, "says ", 5);
    return said;
}

static bool try_case(const char *which) {
    FILE *err = tmpfile();
    int status = 0;
    memset(shared, 0, sizeof *shared);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) _exit(one_case(which, fileno(err)));
    int hung = wait_for(pid, &status, err);
    bool good = judge(which, hung, status, err);
    if (!good || verbose)
        printf("%s %s (%d Ps): %s\n", good ? "ok   " : "WRONG", which, procs, verdict);
    if (!good) show(err, NULL);
    else if (verbose) show(err, "gort: ");
    fclose(err);
    return good;
}

int main(int argc, char **argv) {
    int i = 1, bad = 0, n = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (argv[i][1] == 'v') verbose = true;
        if (argv[i][1] == 'p') procs = atoi(argv[++i]);
        if (argv[i][1] == 'n') {
            for (size_t k = 0; k < sizeof every_call / sizeof every_call[0]; k++)
                puts(every_call[k].name);
            return 0;
        }
    }
    char text[16];
    snprintf(text, sizeof text, "%d", procs);
    setenv("GORT_MAXPROCS", text, 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (; i < argc; i++, n++) bad += !try_case(argv[i]);
    printf("%d cases, %d wrong\n", n, bad);
    return bad ? 1 : 0;
}
