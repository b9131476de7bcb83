/*
 * Every public call in a child, for tests/api/child_calls_test.c (children with a copy of the
 * memory, against the archive) and tests/hook/child_calls_test.c (those too that share it, with the
 * hook). The child comes to its end at once, no goroutine of the parent runs in it, and the
 * parent's objects are as they were. tests/script/child.sh sees that no call is forgotten.
 */
#define _GNU_SOURCE 1
#include "test.h"
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int parent;
static gort_chan *chan, *ints;
static gort_mutex mutex, free_mutex;
static gort_rwmutex rwmutex, read_rwmutex;
static gort_wg wg;
static gort_once once;
static gort_cond cond;
static gort_sem sem;
static gort_pool *pool;
static gort_timer *timer;
static gort_ctx *ctx;
static gort_group *group;
static gort_stats stats;
static gort_reader *reader;
static gort_writer *writer;
static char *line;
static int procs;
static int sockets[2], pipes[2], stop, beats;
static char buf[64];
static struct iovec iov = {buf, 1};
static struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
static struct pollfd pfd;
static struct addrinfo *found;

static void nothing(void *arg) {}
static void *made(void *arg) { return arg; }
static void dropped(void *arg) {}
static long no_call(void *arg) { return 0; }
static int no_member(gort_ctx *c, void *arg) { return 0; }
static int no_main(int argc, char **argv) { return 0; }
static gort_case one_case(void) { return gort_on_recv(ints, buf); }
#define SOON (gort_now() + GORT_MS)
#define CASES &(gort_case[]){one_case()}[0], 1

/* clang-format off */
#define CALLS(X) \
    X(gort_version, gort_version()) X(gort_errno_location, (void)gort_errno_location()) \
    X(gort_main, gort_main(no_main, 0, NULL)) \
    X(gort_go, gort_go(nothing, NULL)) X(gort_go_with, gort_go_with(NULL, nothing, NULL)) \
    X(gort_go_copy, gort_go_copy(nothing, buf, 8)) X(gort_yield, gort_yield()) \
    X(gort_id, gort_id()) X(gort_exit, gort_exit()) X(gort_count, gort_count()) \
    X(gort_maxprocs, gort_maxprocs(3)) X(gort_lock_thread, gort_lock_thread()) \
    X(gort_unlock_thread, gort_unlock_thread()) X(gort_pin, gort_pin()) \
    X(gort_unpin, (gort_pin(), gort_unpin())) X(gort_stop_world, gort_stop_world()) \
    X(gort_start_world, (gort_stop_world(), gort_start_world())) \
    X(gort_enter_syscall, gort_enter_syscall()) \
    X(gort_exit_syscall, (gort_enter_syscall(), gort_exit_syscall())) \
    X(gort_blocking, gort_blocking(no_call, NULL)) X(gort_chan_new, gort_chan_new(1, 1)) \
    X(gort_chan_retain, gort_chan_retain(chan)) \
    X(gort_chan_release, gort_chan_release(gort_chan_retain(chan))) \
    X(gort_chan_send, gort_chan_send(chan, buf)) X(gort_chan_recv, gort_chan_recv(chan, buf)) \
    X(gort_chan_send_until, gort_chan_send_until(chan, buf, SOON)) \
    X(gort_chan_recv_until, gort_chan_recv_until(ints, buf, SOON)) \
    X(gort_chan_try_send, gort_chan_try_send(chan, buf)) \
    X(gort_chan_try_recv, gort_chan_try_recv(chan, buf)) \
    X(gort_chan_close, gort_chan_close(chan)) X(gort_chan_len, gort_chan_len(chan)) \
    X(gort_chan_cap, gort_chan_cap(chan)) X(gort_select, gort_select_of(gort_on_recv(chan, buf))) \
    X(gort_select_until, gort_select_until(CASES, SOON)) \
    X(gort_try_select, gort_try_select(CASES)) X(gort_mutex_lock, (gort_mutex_lock(&mutex))) \
    X(gort_mutex_lock_until, gort_mutex_lock_until(&mutex, SOON)) \
    X(gort_mutex_try_lock, gort_mutex_try_lock(&mutex)) \
    X(gort_mutex_unlock, (gort_mutex_lock(&free_mutex), gort_mutex_unlock(&free_mutex))) \
    X(gort_rwmutex_rlock, gort_rwmutex_rlock(&rwmutex)) \
    X(gort_rwmutex_rlock_until, gort_rwmutex_rlock_until(&rwmutex, SOON)) \
    X(gort_rwmutex_lock, gort_rwmutex_lock(&rwmutex)) \
    X(gort_rwmutex_lock_until, gort_rwmutex_lock_until(&rwmutex, SOON)) \
    X(gort_rwmutex_try_rlock, gort_rwmutex_try_rlock(&rwmutex)) \
    X(gort_rwmutex_try_lock, gort_rwmutex_try_lock(&rwmutex)) \
    X(gort_rwmutex_runlock, (gort_rwmutex_rlock(&read_rwmutex), \
        gort_rwmutex_runlock(&read_rwmutex))) \
    X(gort_rwmutex_unlock, (gort_rwmutex_lock(&read_rwmutex), \
        gort_rwmutex_unlock(&read_rwmutex))) \
    X(gort_wg_add, (gort_wg_add(&wg, 1), gort_wg_add(&wg, -1))) \
    X(gort_wg_done, (gort_wg_add(&wg, 1), gort_wg_done(&wg))) X(gort_wg_wait, gort_wg_wait(&wg)) \
    X(gort_wg_wait_until, gort_wg_wait_until(&wg, SOON)) \
    X(gort_wg_go, gort_wg_go(&wg, nothing, NULL)) \
    X(gort_once_do, gort_once_do(&once, nothing, NULL)) \
    X(gort_cond_wait, gort_cond_wait(&cond, &mutex)) \
    X(gort_cond_wait_until, gort_cond_wait_until(&cond, &mutex, SOON)) \
    X(gort_cond_signal, gort_cond_signal(&cond)) \
    X(gort_cond_broadcast, gort_cond_broadcast(&cond)) \
    X(gort_sem_acquire, gort_sem_acquire(&sem, 1)) \
    X(gort_sem_acquire_until, gort_sem_acquire_until(&sem, 1, SOON)) \
    X(gort_sem_try_acquire, gort_sem_try_acquire(&sem, 1)) \
    X(gort_sem_release, gort_sem_release(&sem, 0)) \
    X(gort_pool_new, gort_pool_new(made, dropped, NULL)) X(gort_pool_get, gort_pool_get(pool)) \
    X(gort_pool_put, gort_pool_put(pool, buf)) \
    X(gort_pool_free, gort_pool_free(gort_pool_new(made, dropped, NULL))) \
    X(gort_alloc, gort_alloc(100)) X(gort_free, gort_free(gort_alloc(100))) \
    X(gort_now, gort_now()) X(gort_sleep, gort_sleep(GORT_MS)) \
    X(gort_sleep_until, gort_sleep_until(SOON)) \
    X(gort_timer_new, gort_timer_new(GORT_MS, nothing, NULL)) \
    X(gort_ticker_new, gort_ticker_new(GORT_MS, nothing, NULL)) \
    X(gort_timer_stop, gort_timer_stop(timer)) \
    X(gort_timer_reset, gort_timer_reset(timer, GORT_MS)) \
    X(gort_timer_free, gort_timer_free(gort_timer_new(GORT_SEC, nothing, NULL))) \
    X(gort_after, gort_after(GORT_MS)) X(gort_tick, gort_tick(GORT_MS, &timer_of_tick)) \
    X(gort_signal_notify, gort_signal_notify(ints, SIGUSR2)) \
    X(gort_signal_stop, gort_signal_stop(ints)) X(gort_ctx_new, gort_ctx_new(ctx)) \
    X(gort_ctx_with_deadline, gort_ctx_with_deadline(ctx, SOON)) \
    X(gort_ctx_with_value, gort_ctx_with_value(ctx, buf, buf)) \
    X(gort_ctx_value, gort_ctx_value(ctx, buf)) X(gort_ctx_cancel, gort_ctx_cancel(ctx)) \
    X(gort_ctx_with_timeout, gort_ctx_with_timeout(ctx, GORT_SEC)) \
    X(gort_ctx_cancel_cause, gort_ctx_cancel_cause(ctx, -EIO)) \
    X(gort_ctx_cause, gort_ctx_cause(ctx)) X(gort_ctx_deadline, gort_ctx_deadline(ctx)) \
    X(gort_ctx_after, gort_ctx_after(ctx, nothing, NULL)) X(gort_ctx_use, gort_ctx_use(ctx)) \
    X(gort_ctx_used, gort_ctx_used()) \
    X(gort_ctx_done, gort_ctx_done(ctx)) X(gort_ctx_err, gort_ctx_err(ctx)) \
    X(gort_ctx_release, gort_ctx_release(gort_ctx_new(NULL))) \
    X(gort_group_new, gort_group_new(NULL, 1)) \
    X(gort_group_go, gort_group_go(group, no_member, NULL)) \
    X(gort_group_try_go, gort_group_try_go(group, no_member, NULL)) \
    X(gort_group_wait, gort_group_wait(group)) X(gort_read, gort_read(pipes[0], buf, 1)) \
    X(gort_read_until, gort_read_until(pipes[0], buf, 1, SOON)) \
    X(gort_write, gort_write(pipes[1], buf, 1)) \
    X(gort_write_until, gort_write_until(pipes[1], buf, 1, SOON)) \
    X(gort_readv, gort_readv(pipes[0], &iov, 1)) \
    X(gort_readv_until, gort_readv_until(pipes[0], &iov, 1, SOON)) \
    X(gort_writev, gort_writev(pipes[1], &iov, 1)) \
    X(gort_writev_until, gort_writev_until(pipes[1], &iov, 1, SOON)) \
    X(gort_recv, gort_recv(sockets[0], buf, 1, 0)) \
    X(gort_recv_until, gort_recv_until(sockets[0], buf, 1, 0, SOON)) \
    X(gort_send, gort_send(sockets[1], buf, 1, 0)) \
    X(gort_send_until, gort_send_until(sockets[1], buf, 1, 0, SOON)) \
    X(gort_recvfrom, gort_recvfrom(sockets[0], buf, 1, 0, NULL, NULL)) \
    X(gort_recvfrom_until, gort_recvfrom_until(sockets[0], buf, 1, 0, NULL, NULL, SOON)) \
    X(gort_sendto, gort_sendto(sockets[1], buf, 1, 0, NULL, 0)) \
    X(gort_sendto_until, gort_sendto_until(sockets[1], buf, 1, 0, NULL, 0, SOON)) \
    X(gort_recvmsg, gort_recvmsg(sockets[0], &msg, 0)) \
    X(gort_recvmsg_until, gort_recvmsg_until(sockets[0], &msg, 0, SOON)) \
    X(gort_sendmsg, gort_sendmsg(sockets[1], &msg, 0)) \
    X(gort_sendmsg_until, gort_sendmsg_until(sockets[1], &msg, 0, SOON)) \
    X(gort_read_full, gort_read_full(pipes[0], buf, 1)) \
    X(gort_read_full_until, gort_read_full_until(pipes[0], buf, 1, SOON)) \
    X(gort_write_full, gort_write_full(pipes[1], buf, 1)) \
    X(gort_write_full_until, gort_write_full_until(pipes[1], buf, 1, SOON)) \
    X(gort_accept, gort_accept(sockets[0], NULL, NULL)) \
    X(gort_accept_until, gort_accept_until(sockets[0], NULL, NULL, SOON)) \
    X(gort_connect, gort_connect(sockets[0], (void *)buf, 2)) \
    X(gort_connect_until, gort_connect_until(sockets[0], (void *)buf, 2, SOON)) \
    X(gort_poll, (pfd = (struct pollfd){pipes[0], POLLIN, 0}, gort_poll(&pfd, 1, 1))) \
    X(gort_poll_until, (pfd = (struct pollfd){pipes[0], POLLIN, 0}, \
        gort_poll_until(&pfd, 1, SOON))) \
    X(gort_close, gort_close(pipes[0])) X(gort_open, gort_open("/dev/null", O_RDONLY, 0)) \
    X(gort_pread, gort_pread(0, buf, 1, 0)) X(gort_pwrite, gort_pwrite(0, buf, 0, 0)) \
    X(gort_fsync, gort_fsync(pipes[0])) \
    X(gort_getaddrinfo, gort_getaddrinfo("127.0.0.1", NULL, NULL, &found)) \
    X(gort_listen, gort_listen("127.0.0.1:0", 1)) X(gort_dial, gort_dial("127.0.0.1:1", SOON)) \
    X(gort_dial_until, gort_dial_until("127.0.0.1:1", SOON)) \
    X(gort_local_addr, gort_local_addr(sockets[0], buf, sizeof buf)) \
    X(gort_peer_addr, gort_peer_addr(sockets[0], buf, sizeof buf)) \
    X(gort_addr_strerror, gort_addr_strerror("localhost:80", -ENOENT)) \
    X(gort_shutdown, gort_shutdown(sockets[0], SHUT_RDWR)) \
    X(gort_listen_udp, gort_listen_udp("127.0.0.1:0")) \
    X(gort_copy, gort_copy(pipes[1], pipes[0])) \
    X(gort_reader_new, gort_reader_new(pipes[0], 0)) \
    X(gort_reader_line, gort_reader_line(reader, &line)) \
    X(gort_reader_until, gort_reader_until(reader, 0, &line)) \
    X(gort_reader_read, gort_reader_read(reader, buf, 1)) \
    X(gort_reader_deadline, gort_reader_deadline(reader, 0)) \
    X(gort_reader_free, gort_reader_free(reader)) \
    X(gort_writer_new, gort_writer_new(pipes[1], 0)) \
    X(gort_writer_deadline, gort_writer_deadline(writer, 0)) \
    X(gort_writer_write, gort_writer_write(writer, buf, 1)) \
    X(gort_writer_printf, gort_writer_printf(writer, "x")) \
    X(gort_writer_flush, gort_writer_flush(writer)) \
    X(gort_writer_free, gort_writer_free(writer)) \
    X(gort_stats_read_sized, gort_stats_read_sized(&stats, sizeof stats)) \
    X(gort_stats_read, gort_stats_read(&stats)) X(gort_dump, gort_dump(null_fd)) \
    X(gort_trace_start, gort_trace_start("/dev/null")) X(gort_trace_stop, gort_trace_stop()) \
    X(gort_region_begin, gort_region_begin("a")) X(gort_region_end, gort_region_end("a")) \
    X(gort_debug_listen, gort_debug_listen("127.0.0.1:0"))
/* clang-format on */

static gort_timer *timer_of_tick;
static int null_fd;
#define FUNCTION(name, call) \
    static void call_##name(void) { call; }
CALLS(FUNCTION)
#define ENTRY(name, call) {#name, call_##name},
static const struct Call {
    const char *name;
    void (*fn)(void);
} calls[] = {CALLS(ENTRY)};

enum { FORK, BARE_FORK, BARE_CLONE, VFORK, CLONE, KINDS, ASKED_CLONE = KINDS, ASKED_VFORK };
static const char *const kinds[] = {
    "fork", "_Fork", "bare clone", "vfork", "clone", "bare clone, asked", "bare vfork, asked"};
enum { RAN = 98 };                       /* the status of a child in which a goroutine ran */
pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

static bool said_so; /* the child is to end with a line, which nobody reads */
static _Noreturn __attribute__((noinline)) void child(void (*fn)(void)) {
    alarm(100); /* a hang becomes a signal */
    if (said_so) syscall(SYS_dup3, null_fd, 2, 0);
    fn();
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}
static int child_of_clone(void *fn) { child((void (*)(void))fn); }
static _Alignas(16) char clone_stack[256 << 10];

/* Of which nobody has told the hook. */
static inline __attribute__((always_inline)) pid_t bare_vfork(void) {
#ifdef __x86_64__
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_vfork) : "rcx", "r11", "memory");
    return (pid_t)r;
#else
    return vfork();
#endif
}

static __attribute__((noinline)) pid_t start(int kind, void (*fn)(void)) {
    pid_t pid;
    switch (kind) {
    case FORK: pid = fork(); break;
    case BARE_FORK: pid = _Fork ? _Fork() : fork(); break;
    case ASKED_CLONE:
    case BARE_CLONE: pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); break;
    case VFORK: pid = vfork(); break;
    case CLONE:
        return clone(child_of_clone, clone_stack + sizeof clone_stack,
                     CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)fn);
    default: pid = bare_vfork();
    }
    if (pid == 0) child(fn);
    return pid;
}

/* Says where it runs: in no child. */
static void beat(void *arg) {
    while (!get(&stop)) {
        if (syscall(SYS_getpid) != parent) syscall(SYS_exit_group, RAN);
        add(&beats, 1);
        gort_yield();
    }
}

typedef struct Case {
    int kind;
    const struct Call *call;
    int status;
} Case;

/* the memory */
static bool is_shared(int kind) { return kind == VFORK || kind == CLONE || kind == ASKED_VFORK; }
static pid_t start_case(const Case *c) {
    said_so = is_shared(c->kind);
    pid_t pid = start(c->kind, c->call->fn);
    CHECK_GT(pid, 0);
    return pid;
}

static void *run_case(void *arg) {
    Case *c = arg;
    pid_t pid = start_case(c);
    while (syscall(SYS_wait4, pid, &c->status, 0, NULL) < 0) {}
    return NULL;
}

static int bad;
static void wrong(const Case *c, bool plain, const char *what) {
    printf("%s in a child (%s) of a %s: %s, status 0x%x\n", c->call->name, kinds[c->kind],
           plain ? "plain thread" : "goroutine", what, c->status);
    bad++;
}

static bool unharmed(void) {
    return gort_chan_len(chan) == 1 && gort_mutex_try_lock(&mutex) == -EBUSY &&
           gort_rwmutex_try_rlock(&rwmutex) == -EBUSY && gort_ctx_err(ctx) == 0 &&
           gort_maxprocs(0) == procs && fcntl(pipes[0], F_GETFD) >= 0;
}

static void judge(Case *c, bool plain) {
    bool exits = c->call->fn == call_gort_exit;
    bool ends = is_shared(c->kind) || exits; /* with a line that says so */
    if (plain && exits) c->status = 0;       /* misuse, in the parent too */
    if (WIFSIGNALED(c->status))
        wrong(c, plain, WTERMSIG(c->status) == SIGALRM ? "it hung" : "it died");
    else if (WEXITSTATUS(c->status) == RAN) wrong(c, plain, "a goroutine ran in it");
    else if (WEXITSTATUS(c->status) != 0 && !(ends && WEXITSTATUS(c->status) == 2))
        wrong(c, plain, "it failed");
    if (!unharmed()) wrong(c, plain, "it has harmed the parent");
    int before = get(&beats);
    wait_until(get(&beats) > before + 1);
}

static void try_one(int kind, const struct Call *call, bool plain) {
    Case c = {.kind = kind, .call = call};
    if (plain) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, run_case, &c), 0);
        while (pthread_tryjoin_np(t, NULL) == EBUSY) gort_yield();
    } else {
        run_case(&c);
    }
    judge(&c, plain);
}

/* ---- children of a goroutine that is asked to give way --------------------------------------- */

/* Computes until the monitor has asked it by a signal, which it does not take yet. The first one
 * may be of a request that was granted before the signal came; the second is not, since this
 * goroutine grants nothing. The signal is a real-time one here: the monitor cannot see that a
 * thread blocks it, and would send no other. */
enum { ASKS = 40 };
static void be_asked(const sigset_t *signal) {
    sigset_t pending;
    for (int i = 0; i < 2; i++) {
        if (i > 0) CHECK_EQ(sigwaitinfo(signal, NULL), ASKS);
        do CHECK_EQ(sigpending(&pending), 0);
        while (!sigismember(&pending, ASKS));
    }
}

/* All of them, while it computes: it is asked for as long as it calls nothing of gort's. */
static void try_asked(int kind, const char *only) {
    static Case cases[sizeof calls / sizeof *calls];
    size_t n = 0;
    sigset_t signal;
    sigemptyset(&signal);
    sigaddset(&signal, ASKS);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (only == NULL || strcmp(only, calls[i].name) == 0)
            cases[n++] = (Case){.kind = kind, .call = &calls[i]};
    pthread_sigmask(SIG_BLOCK, &signal, NULL);
    be_asked(&signal);
    for (size_t i = 0; i < n; i++) {
        pid_t pid = start_case(&cases[i]);
        while (syscall(SYS_wait4, pid, &cases[i].status, WNOHANG, NULL) != pid) {}
    }
    pthread_sigmask(SIG_UNBLOCK, &signal, NULL);
    for (size_t i = 0; i < n; i++) judge(&cases[i], false);
}

static int kinds_tried;
static int body(int argc, char **argv) {
    int value = 7;
    chan = gort_chan_new(sizeof(int), 4);
    ints = gort_chan_new(sizeof(int), 1);
    gort_chan_send(chan, &value);
    gort_mutex_lock(&mutex);
    gort_rwmutex_lock(&rwmutex);
    pool = gort_pool_new(made, dropped, NULL);
    timer = gort_timer_new(3600 * GORT_SEC, nothing, NULL);
    ctx = gort_ctx_new(NULL);
    group = gort_group_new(NULL, 1);
    procs = gort_maxprocs(0);
    CHECK_EQ(pipe(pipes), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    CHECK_GE(null_fd = open("/dev/null", O_RDWR), 0);
    for (int i = 0; i < 3; i++) gort_go(beat, NULL);
    const char *only = getenv("CHILD_CALL");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int kind = 0; kind < kinds_tried && (only == NULL || strcmp(only, calls[i].name) == 0);
             kind++)
            for (int plain = 0; plain < 2; plain++) try_one(kind, &calls[i], plain);
    if (procs <= 2) try_asked(ASKED_CLONE, only); /* with more, nobody waits for its P */
    if (procs <= 2 && kinds_tried > VFORK) try_asked(ASKED_VFORK, only);
    set(&stop, 1);
    wait_until(gort_count() == 1);
    gort_timer_free(timer);
    gort_group_wait(group);
    gort_ctx_release(ctx);
    printf("%d wrong\n", bad);
    return bad != 0;
}

static int walk(int argc, char **argv, int n) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    parent = getpid();
    kinds_tried = n;
    setenv("GORT_DEBUG", "signal=40", 1); /* ASKS */
    return gort_main(body, argc, argv);
}
