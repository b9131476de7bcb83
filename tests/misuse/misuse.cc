/*
 * A generator of misuse.
 *
 *     misuse                      every state that forbids something × every call, left properly;
 *                                 every state × every way out
 *     misuse outs                 the second half of these
 *     misuse all [SEED [N]]       states × calls × ways out; with a seed: N of them at random
 *     misuse run STATE CALL OUT   one of them, in this process
 *
 * A subject (a goroutine, or a plain thread) gets into a state, makes a call there and goes out in
 * some way. Each combination is a process of its own and has to end in an allowed way: it works,
 * and the runtime is healthy afterwards; or there is one line `gort: fatal: ` that names the
 * subject, and abort. A hang, a crash without that line, and the blame on another goroutine are
 * findings. Bystanders block, compute and yield meanwhile: what a subject leaves behind on a thread
 * meets them. A process hangs when it has used a hundred times the processor time that one needs,
 * or had the machine for long and did not end (tests/lib/stuck.h); SIGQUIT then asks it where.
 *
 * CALLS is a list of the header's functions (tests/script/misuse.sh): one that the table below does
 * not know is a finding.
 */
#include "../lib/stuck.h"
#include <gort.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static const char *const header[] = {
#define CALL(name) #name,
#include CALLS
};

/* ---- what a call may wait for; a helper brings it about -------------------------------------- */

static gort_chan *empty_chan, *full_chan, *spare_chan;
static gort_mutex held, cond_mu, free_mu;
static gort_rwmutex held_rw, read_rw, free_rw;
static gort_wg busy_wg, spare_wg;
static gort_cond cond;
static gort_sem none_sem, some_sem;
static gort_once one_once;
static gort_pool *pool;
static gort_ctx *ctx;
static int in_fd[2], out_fd[2], quiet, crowded, file_fd;

/* One byte and the end. */
static int ended_pipe() {
    int fd[2];
    if (pipe(fd) || write(fd[1], "x", 1) != 1) abort();
    close(fd[1]);
    return fd[0];
}
static struct sockaddr_un crowded_at, quiet_at;
static char much[1 << 16], buf[64];
static int64_t value;
static struct iovec few[1] = {{buf, 1}}, lots[1] = {{much, sizeof much}};
static const int64_t far_away = GORT_FOREVER - 1;

static void nothing(void *) {}
static int member(gort_ctx *, void *) { return 0; }
static long nap_in_kernel(void *) { return usleep(1000); }
static void *make(void *) { return malloc(16); }
static msghdr message(iovec *v) {
    msghdr m = {};
    m.msg_iov = v;
    m.msg_iovlen = 1;
    return m;
}

static int listen_at(sockaddr_un *at, const char *name, int backlog) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    *at = {};
    at->sun_family = AF_UNIX;
    snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "gort-misuse-%s-%d", name, getpid());
    if (bind(fd, (sockaddr *)at, sizeof *at) != 0 || listen(fd, backlog) != 0) abort();
    return fd;
}

static void prepare() {
    empty_chan = gort_chan_new(8, 0);
    full_chan = gort_chan_new(8, 0);
    spare_chan = gort_chan_new(4, 4);
    gort_mutex_lock(&held);
    gort_rwmutex_lock(&held_rw);
    gort_rwmutex_lock(&read_rw);
    gort_wg_add(&busy_wg, 1);
    gort_sem_release(&some_sem, 100);
    pool = gort_pool_new(make, free, nullptr);
    ctx = gort_ctx_new(nullptr);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, in_fd) || socketpair(AF_UNIX, SOCK_STREAM, 0, out_fd))
        abort();
    fcntl(out_fd[0], F_SETFL, O_NONBLOCK);
    while (write(out_fd[0], much, sizeof much) > 0) {}
    quiet = listen_at(&quiet_at, "q", 5);
    crowded = listen_at(&crowded_at, "c", 0);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fd, (sockaddr *)&crowded_at, sizeof crowded_at) != 0) break;
    }
    fcntl(crowded, F_SETFL, O_NONBLOCK);
    char name[] = "/tmp/gort-misuse-XXXXXX";
    file_fd = mkstemp(name);
    unlink(name);
}

static int stop_helping;
static bool over(int *flag) { return __atomic_load_n(flag, __ATOMIC_SEQ_CST) != 0; }
static void tell(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST); }

static bool never_helped(); /* the state forbids to wait: nothing may come in time */
static void help(void *) {
    gort_sleep(3 * GORT_MS);
    if (write(in_fd[1], "abcdefgh", 8) != 8) abort();
    gort_mutex_unlock(&held);
    gort_rwmutex_unlock(&held_rw);
    gort_rwmutex_unlock(&read_rw);
    gort_wg_done(&busy_wg);
    gort_sem_release(&none_sem, 5);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (sockaddr *)&quiet_at, sizeof quiet_at);
    while (!over(&stop_helping)) {
        static char sink[1 << 16];
        int64_t v = 0;
        gort_chan_try_send(empty_chan, &v);
        gort_chan_try_recv(full_chan, &v);
        gort_mutex_lock(&cond_mu);
        gort_cond_broadcast(&cond);
        gort_mutex_unlock(&cond_mu);
        while (recv(out_fd[1], sink, sizeof sink, MSG_DONTWAIT) > 0) {}
        int a = accept(crowded, nullptr, nullptr);
        if (a >= 0) close(a);
        gort_sleep(GORT_MS);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { LEFT_OUT = 77 }; /* exit status: this machine has no such state */
enum State {
    PLAIN,
    PINNED,
    WORLD,
    LOCKED,
    SYSCALL,
    BLOCKING,
    ONCE,
    MEMBER,
    TIMER,
    HANDLER,
    HOLDING,
    BODY,
    BODY_BLOCKING,
    BODY_ONCE,
    THREAD,
    THREAD_BLOCKING,
    THREAD_ONCE,
    ALONE,
    STATES
};
static const char *const state_names[] = {
    "plain",         "pinned",    "world",  "locked",          "syscall",     "blocking",
    "once",          "member",    "timer",  "handler",         "holding",     "body",
    "body-blocking", "body-once", "thread", "thread-blocking", "thread-once", "alone"};
enum Out { CLEAN, RETURN, EXIT, THROW, CAUGHT, PTHREAD_EXIT, LONGJMP, OUTS };
static const char *const out_names[] = {"clean",  "return",       "exit",   "throw",
                                        "caught", "pthread_exit", "longjmp"};

static bool is_thread(State s) { return s >= THREAD; }
/* A goroutine that is a thread to libc (gort_attr.thread). */
static bool is_body(State s) { return s == BODY || s == BODY_BLOCKING || s == BODY_ONCE; }
static bool in_blocking(State s) { return s == BLOCKING || s == BODY_BLOCKING; }
static bool forbids(State s) { return s == PINNED || s == WORLD || s == SYSCALL || in_blocking(s); }

/* What a call may do: come back; wait, which some states forbid; either. The rest is said by name
 * in allowed(). */
enum Kind { QUICK, WAITS, EITHER, OTHER };
struct Call {
    const char *name;
    Kind kind;
    void (*fn)(State s);
};

#define C(kind, name, ...)                         \
    {                                              \
#name, kind, [](State s) { (void)s; __VA_ARGS__; } \
    }
static const Call calls[] = {
    {"none", QUICK, [](State) {}},
    C(QUICK, gort_errno_location, *gort_errno_location() = 0),
#ifndef OLD
    C(QUICK, gort_nopreempt_range, gort_nopreempt_range(buf, buf + 1, 1);
      gort_nopreempt_range(buf, buf + 1, 0)),
#endif
    C(QUICK, gort_main, if (s != ALONE) gort_main([](int, char **) { return 0; }, 0, nullptr)),
    C(QUICK, gort_go, gort_go(nothing, nullptr)),
    C(QUICK, gort_go_with, gort_attr a = {}; a.name = "x"; gort_go_with(&a, nothing, nullptr)),
    C(QUICK, gort_go_copy, gort_go_copy(nothing, buf, 8)),
    C(OTHER, gort_yield, gort_yield()),
    C(OTHER, gort_exit, gort_exit()),
    C(QUICK, gort_id, gort_id()),
    C(QUICK, gort_count, gort_count()),
    C(OTHER, gort_maxprocs, gort_maxprocs(3)),
    C(QUICK, gort_lock_thread, gort_lock_thread()),
    C(QUICK, gort_unlock_thread, gort_unlock_thread()),
    C(OTHER, gort_pin, if (gort_pin() >= 0) gort_unpin()),
    C(OTHER, gort_unpin, gort_unpin(); if (s == PINNED) gort_pin()),
    C(OTHER, gort_stop_world, gort_stop_world(); gort_start_world()),
    C(OTHER, gort_start_world, gort_start_world(); if (s == WORLD) gort_stop_world()),
    C(OTHER, gort_enter_syscall, gort_enter_syscall(); gort_exit_syscall()),
    C(OTHER, gort_exit_syscall, gort_exit_syscall(); if (s == SYSCALL) gort_enter_syscall()),
    C(WAITS, gort_blocking, gort_blocking(nap_in_kernel, nullptr)),
    C(QUICK, gort_chan_new, gort_chan_release(gort_chan_new(8, 8))),
    C(QUICK, gort_chan_retain, gort_chan_release(gort_chan_retain(spare_chan))),
    C(QUICK, gort_chan_release, gort_chan_release(gort_chan_new(8, 8))),
    C(WAITS, gort_chan_send, gort_chan_send(full_chan, &value)),
    C(WAITS, gort_chan_recv, gort_chan_recv(empty_chan, &value)),
    C(WAITS, gort_chan_send_until, gort_chan_send_until(full_chan, &value, far_away)),
    C(WAITS, gort_chan_recv_until, gort_chan_recv_until(empty_chan, &value, far_away)),
    C(QUICK, gort_chan_try_send, gort_chan_try_send(full_chan, &value)),
    C(QUICK, gort_chan_try_recv, gort_chan_try_recv(empty_chan, &value)),
    C(QUICK, gort_chan_close, gort_chan_close(spare_chan)),
    C(QUICK, gort_chan_len, gort_chan_len(spare_chan)),
    C(QUICK, gort_chan_cap, gort_chan_cap(spare_chan)),
    C(WAITS, gort_select, gort_case k = {GORT_RECV, empty_chan, &value, 0}; gort_select(&k, 1)),
    C(WAITS, gort_select_until, gort_case k = {GORT_RECV, empty_chan, &value, 0};
      gort_select_until(&k, 1, far_away)),
    C(QUICK, gort_try_select, gort_case k = {GORT_RECV, empty_chan, &value, 0};
      gort_try_select(&k, 1)),
    C(WAITS, gort_mutex_lock, gort_mutex_lock(&held)),
    C(WAITS, gort_mutex_lock_until, gort_mutex_lock_until(&held, far_away)),
    C(QUICK, gort_mutex_try_lock, gort_mutex_try_lock(&held)),
    C(QUICK, gort_mutex_unlock, gort_mutex_lock(&free_mu); gort_mutex_unlock(&free_mu)),
    C(WAITS, gort_rwmutex_rlock, gort_rwmutex_rlock(&read_rw)),
    C(WAITS, gort_rwmutex_rlock_until, gort_rwmutex_rlock_until(&read_rw, far_away)),
    C(WAITS, gort_rwmutex_lock, gort_rwmutex_lock(&held_rw)),
    C(WAITS, gort_rwmutex_lock_until, gort_rwmutex_lock_until(&held_rw, far_away)),
    C(QUICK, gort_rwmutex_try_rlock, gort_rwmutex_try_rlock(&read_rw)),
    C(QUICK, gort_rwmutex_try_lock, gort_rwmutex_try_lock(&held_rw)),
    C(QUICK, gort_rwmutex_runlock, gort_rwmutex_rlock(&free_rw); gort_rwmutex_runlock(&free_rw)),
    C(QUICK, gort_rwmutex_unlock, gort_rwmutex_lock(&free_rw); gort_rwmutex_unlock(&free_rw)),
    C(QUICK, gort_wg_add, gort_wg_add(&spare_wg, 1)),
    C(QUICK, gort_wg_done, gort_wg_add(&spare_wg, 1); gort_wg_done(&spare_wg)),
    C(WAITS, gort_wg_wait, gort_wg_wait(&busy_wg)),
    C(WAITS, gort_wg_wait_until, gort_wg_wait_until(&busy_wg, far_away)),
    C(QUICK, gort_wg_go, gort_wg_go(&spare_wg, nothing, nullptr)),
    C(QUICK, gort_once_do, gort_once o = {}; gort_once_do(&o, nothing, nullptr)),
    C(WAITS, gort_cond_wait, gort_mutex_lock(&cond_mu); gort_cond_wait(&cond, &cond_mu);
      gort_mutex_unlock(&cond_mu)),
    C(WAITS, gort_cond_wait_until, gort_mutex_lock(&cond_mu);
      gort_cond_wait_until(&cond, &cond_mu, far_away); gort_mutex_unlock(&cond_mu)),
    C(QUICK, gort_cond_signal, gort_cond_signal(&cond)),
    C(QUICK, gort_cond_broadcast, gort_cond_broadcast(&cond)),
    C(WAITS, gort_sem_acquire, gort_sem_acquire(&none_sem, 1)),
    C(WAITS, gort_sem_acquire_until, gort_sem_acquire_until(&none_sem, 1, far_away)),
    C(QUICK, gort_sem_try_acquire, gort_sem_try_acquire(&none_sem, 1)),
    C(QUICK, gort_sem_release, gort_sem_release(&some_sem, 1)),
    C(QUICK, gort_pool_new, gort_pool_free(gort_pool_new(make, free, nullptr))),
    C(QUICK, gort_pool_get, free(gort_pool_get(pool))),
    C(QUICK, gort_pool_put, gort_pool_put(pool, malloc(16))),
    C(QUICK, gort_pool_free, gort_pool_free(gort_pool_new(make, free, nullptr))),
    C(QUICK, gort_alloc, gort_free(gort_alloc(100))),
    C(QUICK, gort_free, gort_free(gort_alloc(1000))),
    C(QUICK, gort_now, gort_now()),
    C(WAITS, gort_sleep, gort_sleep(GORT_MS)),
    C(WAITS, gort_sleep_until, gort_sleep_until(gort_now() + GORT_MS)),
    C(QUICK, gort_timer_new, gort_timer_new(GORT_MS, nothing, nullptr)),
    C(QUICK, gort_ticker_new, gort_timer_free(gort_ticker_new(GORT_MS, nothing, nullptr))),
    C(QUICK, gort_timer_stop, gort_timer *t = gort_timer_new(GORT_SEC, nothing, nullptr);
      if (t) gort_timer_stop(t)),
    C(QUICK, gort_timer_reset, gort_timer *t = gort_timer_new(GORT_SEC, nothing, nullptr);
      if (t) gort_timer_reset(t, 1)),
    C(QUICK, gort_timer_free, gort_timer_free(gort_timer_new(GORT_SEC, nothing, nullptr))),
    C(QUICK, gort_after, gort_chan_release(gort_after(GORT_MS))),
    C(QUICK, gort_tick, gort_timer *t = nullptr; gort_chan_release(gort_tick(GORT_SEC, &t));
      gort_timer_free(t)),
    C(EITHER, gort_signal_notify, gort_signal_notify(spare_chan, SIGUSR2)),
    C(EITHER, gort_signal_stop, gort_signal_notify(spare_chan, SIGUSR2);
      gort_signal_stop(spare_chan)),
    C(QUICK, gort_ctx_new, gort_ctx_release(gort_ctx_new(ctx))),
    C(QUICK, gort_ctx_with_deadline,
      gort_ctx_release(gort_ctx_with_deadline(ctx, gort_now() + GORT_SEC))),
    C(QUICK, gort_ctx_with_value, gort_ctx_release(gort_ctx_with_value(ctx, buf, buf))),
    C(QUICK, gort_ctx_value, gort_ctx_value(ctx, buf)),
    C(QUICK, gort_ctx_cancel, gort_ctx_cancel(ctx)),
    C(QUICK, gort_ctx_done, gort_ctx_done(ctx)),
    C(QUICK, gort_ctx_err, gort_ctx_err(ctx)),
    C(QUICK, gort_ctx_release, gort_ctx_release(gort_ctx_new(ctx))),
    C(QUICK, gort_group_new, gort_group_wait(gort_group_new(ctx, 2))),
    C(QUICK, gort_group_go, gort_group_go(gort_group_new(ctx, 2), member, nullptr)),
#ifndef OLD
    C(QUICK, gort_group_try_go, gort_group_try_go(gort_group_new(ctx, 2), member, nullptr)),
    C(QUICK, gort_ctx_with_timeout, gort_ctx_release(gort_ctx_with_timeout(ctx, GORT_SEC))),
    C(QUICK, gort_ctx_cancel_cause, gort_ctx_cancel_cause(ctx, -EIO)),
    C(QUICK, gort_ctx_cause, gort_ctx_cause(ctx)),
    C(QUICK, gort_ctx_deadline, gort_ctx_deadline(ctx)),
    C(QUICK, gort_ctx_after, gort_ctx_after(ctx, nothing, nullptr)),
    C(QUICK, gort_ctx_use, gort_ctx_use(ctx); gort_ctx_use(nullptr)),
    C(QUICK, gort_ctx_used, gort_ctx_used()),
    C(QUICK, gort_version, gort_version()),
    C(WAITS, gort_poll_until, pollfd p = {}; p.fd = in_fd[0]; p.events = POLLIN;
      gort_poll_until(&p, 1, far_away)),
    C(EITHER, gort_dial_until, gort_close(gort_dial_until("unix:@gort-misuse-nobody", far_away))),
    C(QUICK, gort_stats_read_sized, gort_stats st; gort_stats_read_sized(&st, sizeof st)),
#endif
    C(EITHER, gort_group_wait, gort_group *g = gort_group_new(ctx, 2);
      gort_group_go(g, member, nullptr); gort_group_wait(g)),
    C(WAITS, gort_read, gort_read(in_fd[0], buf, 1)),
    C(WAITS, gort_read_until, gort_read_until(in_fd[0], buf, 1, far_away)),
    C(WAITS, gort_write, gort_write(out_fd[0], much, 10)),
    C(WAITS, gort_write_until, gort_write_until(out_fd[0], much, 10, far_away)),
    C(WAITS, gort_readv, gort_readv(in_fd[0], few, 1)),
    C(WAITS, gort_readv_until, gort_readv_until(in_fd[0], few, 1, far_away)),
    C(WAITS, gort_writev, gort_writev(out_fd[0], lots, 1)),
    C(WAITS, gort_writev_until, gort_writev_until(out_fd[0], lots, 1, far_away)),
    C(WAITS, gort_recv, gort_recv(in_fd[0], buf, 1, 0)),
    C(WAITS, gort_recv_until, gort_recv_until(in_fd[0], buf, 1, 0, far_away)),
    C(WAITS, gort_send, gort_send(out_fd[0], much, 10, 0)),
    C(WAITS, gort_send_until, gort_send_until(out_fd[0], much, 10, 0, far_away)),
    C(WAITS, gort_recvfrom, gort_recvfrom(in_fd[0], buf, 1, 0, nullptr, nullptr)),
    C(WAITS, gort_recvfrom_until,
      gort_recvfrom_until(in_fd[0], buf, 1, 0, nullptr, nullptr, far_away)),
    C(WAITS, gort_sendto, gort_sendto(out_fd[0], much, 10, 0, nullptr, 0)),
    C(WAITS, gort_sendto_until, gort_sendto_until(out_fd[0], much, 10, 0, nullptr, 0, far_away)),
    C(WAITS, gort_recvmsg, msghdr m = message(few); gort_recvmsg(in_fd[0], &m, 0)),
    C(WAITS, gort_recvmsg_until, msghdr m = message(few);
      gort_recvmsg_until(in_fd[0], &m, 0, far_away)),
    C(WAITS, gort_sendmsg, msghdr m = message(lots); gort_sendmsg(out_fd[0], &m, 0)),
    C(WAITS, gort_sendmsg_until, msghdr m = message(lots);
      gort_sendmsg_until(out_fd[0], &m, 0, far_away)),
    C(WAITS, gort_read_full, gort_read_full(in_fd[0], buf, 8)),
    C(WAITS, gort_read_full_until, gort_read_full_until(in_fd[0], buf, 8, far_away)),
    C(WAITS, gort_write_full, gort_write_full(out_fd[0], much, 100)),
    C(WAITS, gort_write_full_until, gort_write_full_until(out_fd[0], much, 100, far_away)),
    C(WAITS, gort_accept, gort_accept(quiet, nullptr, nullptr)),
    C(WAITS, gort_accept_until, gort_accept_until(quiet, nullptr, nullptr, far_away)),
    C(WAITS, gort_connect,
      gort_connect(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr *)&crowded_at, sizeof crowded_at)),
    C(WAITS, gort_connect_until,
      gort_connect_until(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr *)&crowded_at,
                         sizeof crowded_at, far_away)),
    C(WAITS, gort_poll, pollfd p = {}; p.fd = in_fd[0]; p.events = POLLIN; gort_poll(&p, 1, -1)),
    C(QUICK, gort_close, gort_close(dup(in_fd[0]))),
    C(EITHER, gort_open, gort_close(gort_open("/dev/null", O_RDONLY, 0))),
    C(EITHER, gort_pread, gort_pread(file_fd, buf, 8, 0)),
    C(EITHER, gort_pwrite, gort_pwrite(file_fd, buf, 8, 0)),
    C(EITHER, gort_fsync, gort_fsync(file_fd)),
    C(EITHER, gort_getaddrinfo, addrinfo *r = nullptr;
      if (gort_getaddrinfo("127.0.0.1", "80", nullptr, &r) == 0) freeaddrinfo(r)),
    C(EITHER, gort_listen, gort_close(gort_listen("127.0.0.1:0", 5))),
    C(EITHER, gort_dial, gort_close(gort_dial("unix:@gort-misuse-nobody", far_away))),
    C(QUICK, gort_local_addr, gort_local_addr(in_fd[0], buf, sizeof buf)),
    C(QUICK, gort_peer_addr, gort_peer_addr(in_fd[0], buf, sizeof buf)),
    C(QUICK, gort_addr_strerror, gort_addr_strerror("localhost:80", -ENOENT)),
    C(QUICK, gort_shutdown, gort_shutdown(-1, SHUT_RD)),
    C(EITHER, gort_listen_udp, gort_close(gort_listen_udp("127.0.0.1:0"))),
    C(WAITS, gort_copy, gort_copy(out_fd[0], ended_pipe())),
    C(QUICK, gort_reader_new, gort_reader_free(gort_reader_new(in_fd[0], 0))),
    C(WAITS, gort_reader_line, char *t; gort_reader_line(gort_reader_new(in_fd[0], 2), &t)),
    C(WAITS, gort_reader_until, char *t; gort_reader_until(gort_reader_new(in_fd[0], 0), 'c', &t)),
    C(WAITS, gort_reader_read, gort_reader_read(gort_reader_new(in_fd[0], 0), buf, 1)),
    C(QUICK, gort_reader_deadline, gort_reader *r = gort_reader_new(in_fd[0], 0);
      gort_reader_deadline(r, 0); gort_reader_free(r)),
    C(QUICK, gort_reader_free, gort_reader_free(nullptr)),
    C(QUICK, gort_writer_new, gort_writer_free(gort_writer_new(out_fd[0], 0))),
    C(WAITS, gort_writer_write, gort_writer_write(gort_writer_new(out_fd[0], 1), much, 10)),
    C(WAITS, gort_writer_printf, gort_writer *w = gort_writer_new(out_fd[0], 4);
      gort_writer_printf(w, "abc"); gort_writer_printf(w, "%s", "text")),
    C(WAITS, gort_writer_flush, gort_writer *w = gort_writer_new(out_fd[0], 0);
      gort_writer_write(w, much, 10); gort_writer_flush(w)),
    C(QUICK, gort_writer_deadline, gort_writer *w = gort_writer_new(out_fd[0], 0);
      gort_writer_deadline(w, 0); gort_writer_free(w)),
    C(QUICK, gort_writer_free, gort_writer_free(nullptr)),
    C(QUICK, gort_stats_read, gort_stats st; gort_stats_read(&st)),
    C(EITHER, gort_dump, gort_dump(open("/dev/null", O_WRONLY))),
    C(EITHER, gort_trace_start, if (gort_trace_start("/dev/null") == 0) gort_trace_stop()),
    C(EITHER, gort_trace_stop, gort_trace_stop()),
    C(QUICK, gort_region_begin, gort_region_begin("x"); gort_region_end("x")),
    C(QUICK, gort_region_end, gort_region_end("x")),
    C(EITHER, gort_debug_listen, gort_debug_listen("127.0.0.1:0")),
};
static const Call *call_named(const char *name) {
    for (const Call &c : calls)
        if (strcmp(c.name, name) == 0) return &c;
    return nullptr;
}

/* ---- one combination, in this process -------------------------------------------------------- */

static State state;
static const Call *call;
static Out out;
static int subject_began; /* atomic */
static int subject_ended; /* atomic: it went on behind the state */
static int caught;
static jmp_buf back; /* of the subject, in the state */

static bool never_helped() { return forbids(state); }

/* In the state. True: leave it properly. */
static bool act() {
    call->fn(state);
    switch (out) {
    case EXIT: gort_exit();
    case THROW: throw 1;
    case CAUGHT: throw 2;
    case PTHREAD_EXIT: pthread_exit(nullptr);
    case LONGJMP: longjmp(back, 1);
    default: return out != RETURN;
    }
}

static void on_usr1(int) { act(); }

static void go_out() {
    switch (state) {
    case PINNED: gort_unpin(); break;
    case WORLD: gort_start_world(); break;
    case LOCKED: gort_unlock_thread(); break;
    case SYSCALL: gort_exit_syscall(); break;
    case HOLDING: gort_mutex_unlock(&free_mu); break;
    default: break;
    }
}

static void go_in() {
    struct sigaction sa = {};
    switch (state) {
    case PINNED: gort_pin(); break;
    case WORLD: gort_stop_world(); break;
    case LOCKED: gort_lock_thread(); break;
    case SYSCALL: gort_enter_syscall(); break;
    case HOLDING:
        if (strcmp(call->name, "gort_mutex_unlock") != 0) gort_mutex_lock(&free_mu);
        break;
    case HANDLER:
        sa.sa_handler = on_usr1;
        sigaction(SIGUSR1, &sa, nullptr);
        break;
    default: break;
    }
}

static bool inside() {
    switch (state) {
    case BLOCKING:
    case BODY_BLOCKING:
    case THREAD_BLOCKING: gort_blocking([](void *) { return (long)act(); }, nullptr); return true;
    case ONCE:
    case BODY_ONCE:
    case THREAD_ONCE:
        gort_once_do(
            &one_once, [](void *) { act(); }, nullptr);
        return true;
    case HANDLER: raise(SIGUSR1); return true;
    default: return act();
    }
}

static void through() {
    volatile bool properly = true;
    go_in();
    try {
        if (setjmp(back) == 0) properly = inside();
    } catch (int n) {
        if (n == 1) throw;
        caught = 1;
    }
    if (state == HOLDING && strcmp(call->name, "gort_mutex_unlock") == 0) return;
    if (properly) go_out();
}

static void subject(void *) {
    char line[64];
    tell(&subject_began);
    int n = snprintf(line, sizeof line, "subject %lu\n", (unsigned long)gort_id());
    if (write(1, line, (size_t)n) != n) abort();
    through();
    tell(&subject_ended);
}

static int subject_member(gort_ctx *, void *) {
    subject(nullptr);
    return 0;
}
static void *subject_thread(void *) {
    subject(nullptr);
    return nullptr;
}

static int beats[3], stop_bystanders;
static void beat(void *arg) { /* one sleeps, one yields, one computes */
    long i = (long)arg;
    while (!over(&stop_bystanders)) {
        __atomic_add_fetch(&beats[i], 1, __ATOMIC_SEQ_CST);
        if (i == 0) gort_sleep(200 * GORT_US);
        else if (i == 1) gort_yield(), gort_sleep(50 * GORT_US);
        else
            for (volatile int k = 0; k < 2000000 && !over(&stop_bystanders); k++) {}
        if (i == 2) gort_sleep(GORT_MS);
    }
}

static void set_flag(void *arg) { tell((int *)arg); }

/* The runtime does all it can: nobody pays for what the subject has left behind. */
static void healthy() {
    int ran = 0;
    int before[3];
    for (int i = 0; i < 3; i++) before[i] = __atomic_load_n(&beats[i], __ATOMIC_SEQ_CST);
    for (int i = 0; i < 3; i++)
        while (__atomic_load_n(&beats[i], __ATOMIC_SEQ_CST) < before[i] + 2)
            gort_sleep(100 * GORT_US);
    gort_go(set_flag, &ran);
    while (!over(&ran)) gort_yield();
    for (int i = 0; i < 2; i++) {
        gort_stop_world();
        gort_start_world();
        gort_blocking(nap_in_kernel, nullptr);
        gort_pin();
        gort_unpin();
    }
    /* it is done: at once */
    if (state == ONCE || state == BODY_ONCE || state == THREAD_ONCE)
        gort_once_do(&one_once, nothing, nullptr);
}

static void go_body() {
    gort_attr attr = {};
    attr.thread = 1;
    if (gort_go_with(&attr, subject, nullptr) == -ENOTSUP) _exit(LEFT_OUT);
}
/* A goroutine that the call has started goes on for good. */
static bool leaves_one() {
    return !strcmp(call->name, "gort_ctx_after") || !strcmp(call->name, "gort_debug_listen");
}
/* The subject goes away without a word. */
static bool is_left() {
    return out == EXIT || (out == PTHREAD_EXIT && is_body(state)) ||
           !strcmp(call->name, "gort_exit");
}

static int scene(int, char **) {
    pthread_t thread;
    prepare();
    if (!never_helped()) gort_go(help, nullptr); /* if it ended, so would the subject seem to */
    for (long i = 0; i < 3; i++) gort_go(beat, (void *)i);
    int others = gort_count() + leaves_one();
    gort_group *group = state == MEMBER ? gort_group_new(nullptr, 2) : nullptr;
    if (state == TIMER) gort_timer_new(1, subject, nullptr);
    else if (state == MEMBER) gort_group_go(group, subject_member, nullptr);
    else if (is_thread(state)) pthread_create(&thread, nullptr, subject_thread, nullptr);
    else if (is_body(state)) go_body();
    else gort_go(subject, nullptr);
    if (is_thread(state)) { /* joined by somebody who may block the thread */
        gort_blocking([](void *t) { return (long)pthread_join(*(pthread_t *)t, nullptr); },
                      &thread);
    } else if (state == MEMBER) {
        gort_group_wait(group);
    } else {
        gort_sleep(GORT_MS);
        while (!over(&subject_ended) &&
               !(is_left() && over(&subject_began) && gort_count() <= others))
            gort_sleep(GORT_MS);
    }
    gort_sleep(2 * GORT_MS);
    healthy();
    tell(&stop_bystanders);
    tell(&stop_helping);
    return 0;
}

static int run_one(const char *s, const char *c, const char *o) {
    for (int i = 0; i < STATES; i++)
        if (strcmp(s, state_names[i]) == 0) state = (State)i;
    for (int i = 0; i < OUTS; i++)
        if (strcmp(o, out_names[i]) == 0) out = (Out)i;
    call = call_named(c);
    if (state == ALONE) {
        prepare();
        pthread_t thread, helper;
        pthread_create(
            &helper, nullptr,
            [](void *) -> void * {
                if (!never_helped()) help(nullptr);
                return nullptr;
            },
            nullptr);
        pthread_create(&thread, nullptr, subject_thread, nullptr);
        pthread_join(thread, nullptr);
        tell(&stop_helping);
        pthread_join(helper, nullptr);
    } else if (gort_main(scene, 0, nullptr) != 0) {
        return 3;
    }
    if (write(1, "came back\n", 10) != 10) return 4;
    return 0;
}

/* ---- what is allowed ------------------------------------------------------------------------- */

enum { WORKS = 1, FATAL = 2, TERMINATES = 4 };

/* A handler may interrupt anything, and a goroutine that waits or gives way in one returns from the
 * signal on another thread, whose mask and alternate stack the kernel then overwrites: gort(7)
 * allows these alone, and nothing can be said of the others. */
static bool undefined(State s, const Call *c, Out o) {
    std::string n = c->name;
    if (s != HANDLER) return false;
    return (o != CLEAN && o != RETURN) ||
           (n != "none" && n != "gort_now" && n != "gort_id" && n != "gort_errno_location");
}

static int allowed_call(State s, const Call *c) {
    std::string n = c->name;
    if (c->kind == QUICK) return WORKS;
    if (c->kind == WAITS) return forbids(s) ? FATAL : WORKS;
    if (c->kind == EITHER) return forbids(s) ? WORKS | FATAL : WORKS;
    if (n == "gort_yield") return s == SYSCALL ? WORKS | FATAL : forbids(s) ? FATAL : WORKS;
    if (n == "gort_maxprocs") return forbids(s) ? FATAL : WORKS;
    if (n == "gort_exit") return is_thread(s) || forbids(s) ? FATAL : WORKS;
    if (n == "gort_pin") return s == SYSCALL || in_blocking(s) ? FATAL : WORKS;
    if (n == "gort_unpin") return s == PINNED ? WORKS : FATAL;
    if (n == "gort_stop_world") return is_thread(s) || forbids(s) ? FATAL : WORKS;
    if (n == "gort_start_world") return s == WORLD ? WORKS : FATAL;
    if (n == "gort_enter_syscall") return forbids(s) ? FATAL : WORKS;
    if (n == "gort_exit_syscall") return is_thread(s) || s == SYSCALL ? WORKS : FATAL;
    return 0;
}

static int allowed_out(State s, Out o) {
    switch (o) {
    case CLEAN: return WORKS;
    case RETURN: return s == PINNED || s == WORLD || s == SYSCALL ? FATAL : WORKS;
    case EXIT: return is_thread(s) || forbids(s) ? FATAL : WORKS;
    case THROW: return TERMINATES;
    case CAUGHT: return WORKS;
    case PTHREAD_EXIT: return is_thread(s) || is_body(s) ? WORKS : FATAL;
    case LONGJMP: /* over a call of ours; else within the program's own functions */
        return in_blocking(s) || s == ONCE || s == BODY_ONCE || s == THREAD_BLOCKING ||
                       s == THREAD_ONCE
                   ? FATAL
                   : WORKS;
    default: return 0;
    }
}

static int allowed(State s, const Call *c, Out o) {
    int by_call = allowed_call(s, c);
    if (!(by_call & WORKS) || strcmp(c->name, "gort_exit") == 0) return by_call;
    int by_out = allowed_out(s, o);
    /* What a call has undone, the way out need not answer for; a lock that it added ends with the
     * goroutine. */
    return by_call == WORKS ? by_out : by_out | FATAL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct Job {
    State s;
    const Call *c;
    Out o;
    pid_t pid;
    int stdout_fd, stderr_fd;
    Stuck watch;
    int asked; /* by SIGQUIT, this many looks ago; 0: not */
};
static const char *self;
static int findings, done_jobs;

static void launch(Job *j) {
    char name1[] = "/tmp/gort-misuse-o-XXXXXX", name2[] = "/tmp/gort-misuse-e-XXXXXX";
    j->stdout_fd = mkstemp(name1);
    j->stderr_fd = mkstemp(name2);
    unlink(name1);
    unlink(name2);
    j->pid = fork();
    j->watch = {j->pid, 20, STUCK_LOOKS, 0, 0, 0, 0};
    if (j->pid != 0) return;
    dup2(j->stdout_fd, 1);
    dup2(j->stderr_fd, 2);
    execl(self, self, "run", state_names[j->s], j->c->name, out_names[j->o], (char *)nullptr);
    _exit(98);
}

static std::string text_of(int fd) {
    std::string t(1 << 16, 0);
    ssize_t n = pread(fd, &t[0], t.size(), 0);
    t.resize(n > 0 ? (size_t)n : 0);
    close(fd);
    return t;
}

static std::string first_line(const std::string &text, const char *with) {
    size_t at = text.find(with);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/* Whom the fatal line blames, or the first block of the dump that runs; 0: nobody. */
static unsigned long blamed(const std::string &err, const std::string &line) {
    size_t at = line.find("(goroutine ");
    if (at != std::string::npos) return strtoul(line.c_str() + at + 11, nullptr, 10);
    at = err.find("\ngoroutine ");
    return at == std::string::npos ? 0 : strtoul(err.c_str() + at + 11, nullptr, 10);
}

static void judge(Job *j, int status) {
    std::string o = text_of(j->stdout_fd), e = text_of(j->stderr_fd), what,
                fatal = first_line(e, "gort: fatal: ");
    unsigned long id = o.compare(0, 8, "subject ") == 0 ? strtoul(o.c_str() + 8, nullptr, 10) : 0;
    int may = allowed(j->s, j->c, j->o), did = 0;
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && o.find("came back\n") != std::string::npos)
        did = WORKS;
    else if (aborted && e.find("terminate called") != std::string::npos) did = TERMINATES;
    else if (aborted && fatal != "") did = FATAL;
    if (j->asked) did = 0, what = "HANGS\n" + e;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == LEFT_OUT) did = may, what = "left out";
    else if (did == WORKS) what = "works";
    else if (did == FATAL) what = fatal;
    else if (did == TERMINATES) what = "terminate";
    else if (WIFEXITED(status)) what = "exit status " + std::to_string(WEXITSTATUS(status));
    else what = "signal " + std::to_string(WTERMSIG(status)) + " without a word; " + fatal;
    bool wrong = (did & may) == 0;
    if (did == FATAL && !is_thread(j->s) && blamed(e, fatal) != id) {
        wrong = true;
        what += " [the subject is goroutine " + std::to_string(id) + ", blamed is " +
                std::to_string(blamed(e, fatal)) + "]";
    }
    /* abort is told (debug/crash.c) */
    std::string subject = "SIGABRT in goroutine " + std::to_string(id);
    if (did == TERMINATES && !is_thread(j->s) && fatal.find(subject) == std::string::npos) {
        wrong = true;
        what += " without a word of goroutine " + std::to_string(id) + "; " + fatal;
    }
    if (wrong) {
        findings++;
        printf("FOUND  %s %s %s: %s\n", state_names[j->s], j->c->name, out_names[j->o],
               what.c_str());
    } else if (getenv("VERBOSE")) {
        printf("ok     %s %s %s: %s\n", state_names[j->s], j->c->name, out_names[j->o],
               what.c_str());
    }
    done_jobs++;
}

/* One that is stuck says where it is, if it still can, before it is ended. */
static void look_after(Job *j) {
    if (j->asked == 0 && stuck_look(&j->watch)) kill(j->pid, SIGQUIT), j->asked = 1;
    else if (j->asked > 0 && j->asked++ == STUCK_LOOKS) kill(j->pid, SIGKILL);
}

static void run_all(std::vector<Job> &jobs) {
    const char *n = getenv("JOBS");
    size_t most = n && atoi(n) > 0 ? (size_t)atoi(n) : 2, next = 0;
    std::vector<Job *> running;
    for (int naps = 0; next < jobs.size() || !running.empty(); naps++) {
        while (next < jobs.size() && running.size() < most)
            launch(&jobs[next]), running.push_back(&jobs[next++]);
        for (size_t i = running.size(); i-- > 0;) {
            int status;
            if (waitpid(running[i]->pid, &status, WNOHANG) == running[i]->pid) {
                judge(running[i], status);
                running.erase(running.begin() + (long)i);
            } else if (naps % STUCK_PAUSE_MS == 0) {
                look_after(running[i]);
            }
        }
        usleep(1000);
    }
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "run") == 0) return run_one(argv[2], argv[3], argv[4]);
    bool outs = argc > 1 && strcmp(argv[1], "outs") == 0;
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    self = realpath("/proc/self/exe", nullptr);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    setenv("GORT_MAXPROCS", "2", 0);
    for (const char *name : header)
        if (call_named(name) == nullptr)
            printf("FOUND  the table does not know %s\n", name), findings++;
    std::vector<Job> jobs;
    for (int s = 0; s < STATES; s++)
        for (const Call &c : calls)
            for (int o = 0; o < OUTS; o++) {
                if ((s == ALONE && strcmp(c.name, "gort_main") == 0) ||
                    undefined((State)s, &c, (Out)o))
                    continue;
                if (!all && (o != CLEAN || outs || !forbids((State)s)) &&
                    strcmp(c.name, "none") != 0)
                    continue;
                jobs.push_back({(State)s, &c, (Out)o, 0, -1, -1, {}, 0});
            }
    if (all && argc > 2) { /* some, by a seed */
        unsigned seed = (unsigned)atoi(argv[2]);
        size_t n = argc > 3 ? (size_t)atoi(argv[3]) : 500;
        printf("seed %u\n", seed);
        for (size_t i = jobs.size(); i > 1; i--)
            std::swap(jobs[i - 1], jobs[(size_t)rand_r(&seed) % i]);
        if (jobs.size() > n) jobs.resize(n);
    }
    run_all(jobs);
    printf("%d combinations, %d findings\n", done_jobs, findings);
    return findings != 0;
}
