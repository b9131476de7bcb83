/*
 * Every public call, once, with arguments that are right: for scarce.c, which takes away what they
 * need. `make test` compares the names with include/gort.h: a new call that is not here fails it
 * (tests/script/scarce.sh).
 *
 * V is for calls without a result. A result is judged: not below -4095, which no errno is.
 */
#ifndef SCARCE_CALLS_H
#define SCARCE_CALLS_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <gort.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Made before anything is taken away. */
static struct {
    int sock[2], pipe[2], file, listener;
    char path[64], addr[64];
} had = {.file = -1, .listener = -1};

static gort_mutex c_mu;
static gort_rwmutex c_rw;
static gort_wg c_wg;
static gort_once c_once;
static gort_cond c_cond;
static gort_sem c_sem;
static char c_buf[64];
static struct iovec c_iov = {c_buf, 1};

static int64_t soon(void) { return gort_now() + GORT_MS; }
static void nothing(void *arg) {}
static int member(gort_ctx *ctx, void *arg) { return 0; }
static long nap(void *arg) { return usleep(300); }
static void exits(void *arg) { gort_exit(); }
static int never_main(int argc, char **argv) { return 0; }
static void *makes(void *arg) { return c_buf; }
static void waits_cond(void *arg) {
    gort_mutex_lock(&c_mu);
    gort_cond_wait_until(&c_cond, &c_mu, soon());
    gort_mutex_unlock(&c_mu);
}
static void signals_cond(void *arg) {
    gort_mutex_lock(&c_mu);
    gort_cond_broadcast(&c_cond);
    gort_mutex_unlock(&c_mu);
}
static gort_chan *chan1(void) { return gort_chan_new(sizeof(int64_t), 1); }
static long over(gort_chan *c, long r) {
    gort_chan_release(c);
    return r;
}
static struct msghdr *msg1(void) {
    static struct msghdr m;
    m = (struct msghdr){.msg_iov = &c_iov, .msg_iovlen = 1};
    return &m;
}
static int fresh_socket(void) { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static const struct sockaddr *nobody(void) { /* port 1 of the loopback: refused */
    static const unsigned char sa[16] = {AF_INET, 0, 0, 1, 127, 0, 0, 1};
    return (const struct sockaddr *)(const void *)sa;
}
static long with_chan(long (*fn)(gort_chan *c)) {
    gort_chan *c = chan1();
    return c ? over(c, fn(c)) : -ENOMEM;
}
static int64_t c_v;
static long d_send(gort_chan *c) { return gort_chan_send(c, &c_v); }
static long d_recv(gort_chan *c) { return gort_chan_close(c) < 0 ? -1 : gort_chan_recv(c, &c_v); }
static long d_send_until(gort_chan *c) { return gort_chan_send_until(c, &c_v, soon()); }
static long d_recv_until(gort_chan *c) { return gort_chan_recv_until(c, &c_v, soon()); }
static long d_try_send(gort_chan *c) { return gort_chan_try_send(c, &c_v); }
static long d_try_recv(gort_chan *c) { return gort_chan_try_recv(c, &c_v); }
static long d_close(gort_chan *c) { return gort_chan_close(c); }
static long d_len(gort_chan *c) { return (long)gort_chan_len(c); }
static long d_cap(gort_chan *c) { return (long)gort_chan_cap(c); }
static long d_retain(gort_chan *c) { return over(gort_chan_retain(c), 0); }
static long d_select(gort_chan *c) {
    gort_case k[20];
    for (int i = 0; i < 20; i++) k[i] = gort_on_send(c, &c_v);
    return gort_select(k, 20);
}
static long d_select_until(gort_chan *c) {
    gort_case k[20];
    for (int i = 0; i < 20; i++) k[i] = gort_on_recv(c, &c_v);
    return gort_select_until(k, 20, soon());
}
static long d_try_select(gort_chan *c) {
    gort_case k = gort_on_recv(c, &c_v);
    return gort_try_select(&k, 1);
}
static long d_signal(gort_chan *c) {
    gort_chan *ints = gort_chan_new(sizeof(int), 1);
    int r = ints ? gort_signal_notify(ints, SIGUSR2) : -ENOMEM;
    if (r == 0) r = gort_signal_stop(ints);
    return over(ints, r);
}
static long ctx_of(gort_ctx *ctx) {
    if (ctx == NULL) return -ENOMEM;
    gort_ctx_use(ctx);
    if (gort_ctx_used() != ctx) return -EINVAL;
    gort_ctx_use(NULL);
    gort_ctx_deadline(ctx);
    gort_ctx_cause(ctx);
    gort_ctx_value(ctx, &c_v);
    gort_ctx_cancel(ctx);
    gort_chan_recv(gort_ctx_done(ctx), NULL);
    long r = gort_ctx_err(ctx);
    gort_ctx_release(ctx);
    return r;
}
static long ctx_after_of(gort_ctx *ctx) {
    if (ctx == NULL) return -ENOMEM;
    int r = gort_ctx_after(ctx, nothing, NULL);
    gort_ctx_cancel_cause(ctx, -EIO);
    gort_ctx_release(ctx);
    return r;
}
static long timer_of(gort_timer *t) {
    if (t == NULL) return -ENOMEM;
    gort_timer_stop(t);
    gort_timer_reset(t, 3600 * GORT_SEC);
    gort_timer_free(t);
    return 0;
}
static long group_of(void) {
    gort_group *g = gort_group_new(NULL, 2);
    if (g == NULL) return -ENOMEM;
    gort_group_go(g, member, NULL);
    gort_group_try_go(g, member, NULL);
    return gort_group_wait(g);
}
static long pool_of(void) {
    gort_pool *p = gort_pool_new(makes, NULL, NULL);
    if (p == NULL) return -ENOMEM;
    gort_pool_put(p, gort_pool_get(p));
    gort_pool_free(p);
    return 0;
}
static long tick_of(void) {
    gort_timer *owner = NULL;
    gort_chan *c = gort_tick(GORT_MS, &owner);
    if (c == NULL) return -ENOMEM;
    long r = gort_chan_recv(c, NULL);
    gort_timer_free(owner);
    return over(c, r);
}
static long after_of(void) {
    gort_chan *c = gort_after(GORT_MS);
    return c ? over(c, gort_chan_recv(c, NULL)) : -ENOMEM;
}
static long closed(long fd) {
    if (fd >= 0) gort_close((int)fd);
    return fd;
}
static long accept_of(void) { return closed(gort_accept_until(had.listener, NULL, NULL, soon())); }
static long accepted(void) {
    int to = gort_dial(had.addr, gort_now() + GORT_SEC);
    if (to < 0) return to;
    closed(gort_accept_until(had.listener, NULL, NULL, gort_now() + GORT_SEC));
    return closed(to);
}
static long connect_of(int64_t until) {
    int fd = fresh_socket();
    if (fd < 0) return -errno;
    long r = until ? gort_connect_until(fd, nobody(), 16, until) : gort_connect(fd, nobody(), 16);
    gort_close(fd);
    return r;
}
static long lookup(void) {
    struct addrinfo *ai = NULL, hints = {.ai_flags = AI_NUMERICHOST};
    int r = gort_getaddrinfo("127.0.0.1", NULL, &hints, &ai);
    if (r == 0) freeaddrinfo(ai);
    return r;
}
static long polls(void) {
    struct pollfd f = {.fd = had.pipe[0], .events = POLLIN};
    return gort_poll(&f, 1, 1);
}
static long polls_until(void) {
    struct pollfd f = {.fd = had.pipe[0], .events = POLLIN};
    return gort_poll_until(&f, 1, soon());
}
static long both_ways(long (*rest)(void)) { /* a byte there, for the one that reads it */
    long r = gort_write(had.sock[1], c_buf, 1);
    return r < 0 ? r : rest();
}
static long r_read(void) { return gort_read(had.sock[0], c_buf, 1); }
static long r_readv(void) { return gort_readv(had.sock[0], &c_iov, 1); }
static long r_recv(void) { return gort_recv(had.sock[0], c_buf, 1, 0); }
static long r_recvfrom(void) { return gort_recvfrom(had.sock[0], c_buf, 1, 0, NULL, NULL); }
static long r_recvmsg(void) { return gort_recvmsg(had.sock[0], msg1(), 0); }
static long r_full(void) { return gort_read_full(had.sock[0], c_buf, 1); }
static long shuts(void) { /* a socket that nobody uses: ENOTCONN */
    int fd = fresh_socket();
    if (fd < 0) return -errno;
    long r = gort_shutdown(fd, SHUT_RDWR);
    gort_close(fd);
    return r;
}
static long copies(void) {
    int from = gort_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (from < 0) return from;
    long r = gort_copy(had.sock[0], from);
    gort_close(from);
    return r;
}
static long r_lines(void) {
    gort_reader *r = gort_reader_new(had.sock[0], 8);
    char *text;
    if (r) gort_reader_deadline(r, GORT_FOREVER);
    if (r == NULL) return gort_read(had.sock[0], c_buf, 1);
    long n = gort_reader_until(r, c_buf[0], &text);
    if (n == 0) n = gort_write(had.sock[1], c_buf, 1);
    if (n == 1) n = gort_reader_read(r, c_buf, 1);
    gort_reader_free(r);
    return n;
}
static long reads_lines(void) { return both_ways(r_lines); }
static long writes_lines(void) {
    gort_writer *w = gort_writer_new(had.sock[0], 8);
    if (w == NULL) return -ENOMEM;
    gort_writer_deadline(w, GORT_FOREVER);
    gort_writer_write(w, c_buf, 1);
    gort_writer_printf(w, "%d", 1);
    long r = gort_writer_flush(w);
    gort_writer_free(w);
    return r;
}
static long traces(void) {
    int r = gort_trace_start("/dev/null");
    return r < 0 ? r : gort_trace_stop();
}

#define EVERY_CALL(X, V)                                                                           \
    X(gort_go, gort_go(nothing, NULL))                                                             \
    X(gort_go_with, gort_go_with(&(gort_attr){.name = "n", .stack_size = 1 << 20}, nothing, NULL)) \
    X(gort_go_copy, gort_go_copy(nothing, c_buf, sizeof c_buf))                                    \
    X(gort_exit, gort_go(exits, NULL))                                                             \
    V(gort_yield, gort_yield())                                                                    \
    V(gort_id, gort_id())                                                                          \
    X(gort_count, gort_count())                                                                    \
    X(gort_maxprocs, gort_maxprocs(gort_maxprocs(0)))                                              \
    X(gort_main, gort_main(never_main, 0, NULL))                                                   \
    V(gort_lock_thread, (gort_lock_thread(), gort_yield()))                                        \
    V(gort_unlock_thread, gort_unlock_thread())                                                    \
    V(gort_pin, gort_pin())                                                                        \
    V(gort_unpin, gort_unpin())                                                                    \
    V(gort_stop_world, gort_stop_world())                                                          \
    V(gort_start_world, gort_start_world())                                                        \
    V(gort_enter_syscall, (gort_enter_syscall(), usleep(300)))                                     \
    V(gort_exit_syscall, gort_exit_syscall())                                                      \
    X(gort_blocking, gort_blocking(nap, NULL))                                                     \
    V(gort_errno_location, gort_errno_location())                                                  \
    X(gort_version, gort_version())                                                                \
    X(gort_chan_new, with_chan(d_len))                                                             \
    X(gort_chan_retain, with_chan(d_retain))                                                       \
    X(gort_chan_release, with_chan(d_len))                                                         \
    X(gort_chan_send, with_chan(d_send))                                                           \
    X(gort_chan_recv, with_chan(d_recv))                                                           \
    X(gort_chan_send_until, with_chan(d_send_until))                                               \
    X(gort_chan_recv_until, with_chan(d_recv_until))                                               \
    X(gort_chan_try_send, with_chan(d_try_send))                                                   \
    X(gort_chan_try_recv, with_chan(d_try_recv))                                                   \
    X(gort_chan_close, with_chan(d_close))                                                         \
    X(gort_chan_len, with_chan(d_len))                                                             \
    X(gort_chan_cap, with_chan(d_cap))                                                             \
    X(gort_select, with_chan(d_select))                                                            \
    X(gort_select_until, with_chan(d_select_until))                                                \
    X(gort_try_select, with_chan(d_try_select))                                                    \
    V(gort_mutex_lock, gort_mutex_lock(&c_mu))                                                     \
    X(gort_mutex_lock_until, gort_mutex_lock_until(&c_mu, soon()))                                 \
    X(gort_mutex_try_lock, gort_mutex_try_lock(&c_mu))                                             \
    V(gort_mutex_unlock, gort_mutex_unlock(&c_mu))                                                 \
    V(gort_rwmutex_rlock, gort_rwmutex_rlock(&c_rw))                                               \
    X(gort_rwmutex_lock_until, gort_rwmutex_lock_until(&c_rw, soon()))                             \
    X(gort_rwmutex_try_lock, gort_rwmutex_try_lock(&c_rw))                                         \
    V(gort_rwmutex_runlock, gort_rwmutex_runlock(&c_rw))                                           \
    V(gort_rwmutex_lock, gort_rwmutex_lock(&c_rw))                                                 \
    X(gort_rwmutex_rlock_until, gort_rwmutex_rlock_until(&c_rw, soon()))                           \
    X(gort_rwmutex_try_rlock, gort_rwmutex_try_rlock(&c_rw))                                       \
    V(gort_rwmutex_unlock, gort_rwmutex_unlock(&c_rw))                                             \
    V(gort_wg_add, gort_wg_add(&c_wg, 1))                                                          \
    X(gort_wg_wait_until, gort_wg_wait_until(&c_wg, soon()))                                       \
    V(gort_wg_done, gort_wg_done(&c_wg))                                                           \
    X(gort_wg_go, gort_wg_go(&c_wg, nothing, NULL))                                                \
    V(gort_wg_wait, gort_wg_wait(&c_wg))                                                           \
    V(gort_once_do, gort_once_do(&c_once, nothing, NULL))                                          \
    V(gort_cond_wait_until, waits_cond(NULL))                                                      \
    V(gort_cond_wait, (gort_go(signals_cond, NULL), waits_cond(NULL)))                             \
    V(gort_cond_signal, gort_cond_signal(&c_cond))                                                 \
    V(gort_cond_broadcast, signals_cond(NULL))                                                     \
    V(gort_sem_release, gort_sem_release(&c_sem, 2))                                               \
    V(gort_sem_acquire, gort_sem_acquire(&c_sem, 1))                                               \
    X(gort_sem_acquire_until, gort_sem_acquire_until(&c_sem, 2, soon()))                           \
    X(gort_sem_try_acquire, gort_sem_try_acquire(&c_sem, 1))                                       \
    X(gort_pool_new, pool_of())                                                                    \
    X(gort_pool_get, pool_of())                                                                    \
    X(gort_pool_put, pool_of())                                                                    \
    X(gort_pool_free, pool_of())                                                                   \
    V(gort_alloc, gort_free(gort_alloc(100)))                                                      \
    V(gort_free, gort_free(gort_alloc(100000)))                                                    \
    V(gort_now, gort_now())                                                                        \
    V(gort_sleep, gort_sleep(GORT_MS))                                                             \
    V(gort_sleep_until, gort_sleep_until(soon()))                                                  \
    X(gort_timer_new, timer_of(gort_timer_new(GORT_MS, nothing, NULL)))                            \
    X(gort_ticker_new, timer_of(gort_ticker_new(GORT_MS, nothing, NULL)))                          \
    X(gort_timer_stop, timer_of(gort_timer_new(GORT_MS, nothing, NULL)))                           \
    X(gort_timer_reset, timer_of(gort_timer_new(GORT_MS, nothing, NULL)))                          \
    X(gort_timer_free, timer_of(gort_timer_new(GORT_MS, nothing, NULL)))                           \
    X(gort_after, after_of())                                                                      \
    X(gort_tick, tick_of())                                                                        \
    X(gort_signal_notify, with_chan(d_signal))                                                     \
    X(gort_signal_stop, with_chan(d_signal))                                                       \
    X(gort_ctx_new, ctx_of(gort_ctx_new(NULL)))                                                    \
    X(gort_ctx_with_deadline, ctx_of(gort_ctx_with_deadline(NULL, soon())))                        \
    X(gort_ctx_with_value, ctx_of(gort_ctx_with_value(NULL, &c_v, &c_v)))                          \
    X(gort_ctx_value, ctx_of(gort_ctx_new(NULL)))                                                  \
    X(gort_ctx_cancel, ctx_of(gort_ctx_new(NULL)))                                                 \
    X(gort_ctx_with_timeout, ctx_of(gort_ctx_with_timeout(NULL, GORT_MS)))                         \
    X(gort_ctx_cancel_cause, ctx_of(gort_ctx_new(NULL)))                                           \
    X(gort_ctx_cause, ctx_of(gort_ctx_new(NULL)))                                                  \
    X(gort_ctx_deadline, ctx_of(gort_ctx_new(NULL)))                                               \
    X(gort_ctx_use, ctx_of(gort_ctx_new(NULL)))                                                    \
    X(gort_ctx_used, ctx_of(gort_ctx_new(NULL)))                                                   \
    X(gort_ctx_after, ctx_after_of(gort_ctx_new(NULL)))                                            \
    X(gort_ctx_done, ctx_of(gort_ctx_new(NULL)))                                                   \
    X(gort_ctx_err, ctx_of(gort_ctx_new(NULL)))                                                    \
    X(gort_ctx_release, ctx_of(gort_ctx_new(NULL)))                                                \
    X(gort_group_new, group_of())                                                                  \
    X(gort_group_go, group_of())                                                                   \
    X(gort_group_try_go, group_of())                                                               \
    X(gort_group_wait, group_of())                                                                 \
    X(gort_read, both_ways(r_read))                                                                \
    X(gort_read_until, gort_read_until(had.sock[0], c_buf, 1, soon()))                             \
    X(gort_write, gort_write(had.sock[0], c_buf, 1))                                               \
    X(gort_write_until, gort_write_until(had.sock[0], c_buf, 1, soon()))                           \
    X(gort_readv, both_ways(r_readv))                                                              \
    X(gort_readv_until, gort_readv_until(had.sock[0], &c_iov, 1, soon()))                          \
    X(gort_writev, gort_writev(had.sock[0], &c_iov, 1))                                            \
    X(gort_writev_until, gort_writev_until(had.sock[0], &c_iov, 1, soon()))                        \
    X(gort_recv, both_ways(r_recv))                                                                \
    X(gort_recv_until, gort_recv_until(had.sock[0], c_buf, 1, 0, soon()))                          \
    X(gort_send, gort_send(had.sock[0], c_buf, 1, 0))                                              \
    X(gort_send_until, gort_send_until(had.sock[0], c_buf, 1, 0, soon()))                          \
    X(gort_recvfrom, both_ways(r_recvfrom))                                                        \
    X(gort_recvfrom_until, gort_recvfrom_until(had.sock[0], c_buf, 1, 0, NULL, NULL, soon()))      \
    X(gort_sendto, gort_sendto(had.sock[0], c_buf, 1, 0, NULL, 0))                                 \
    X(gort_sendto_until, gort_sendto_until(had.sock[0], c_buf, 1, 0, NULL, 0, soon()))             \
    X(gort_recvmsg, both_ways(r_recvmsg))                                                          \
    X(gort_recvmsg_until, gort_recvmsg_until(had.sock[0], msg1(), 0, soon()))                      \
    X(gort_sendmsg, gort_sendmsg(had.sock[0], msg1(), 0))                                          \
    X(gort_sendmsg_until, gort_sendmsg_until(had.sock[0], msg1(), 0, soon()))                      \
    X(gort_read_full, both_ways(r_full))                                                           \
    X(gort_read_full_until, gort_read_full_until(had.sock[0], c_buf, 1, soon()))                   \
    X(gort_write_full, gort_write_full(had.sock[0], c_buf, 1))                                     \
    X(gort_write_full_until, gort_write_full_until(had.sock[0], c_buf, 1, soon()))                 \
    X(gort_accept, accepted())                                                                     \
    X(gort_accept_until, accept_of())                                                              \
    X(gort_connect, connect_of(0))                                                                 \
    X(gort_connect_until, connect_of(soon()))                                                      \
    X(gort_poll, polls())                                                                          \
    X(gort_poll_until, polls_until())                                                              \
    X(gort_close, closed(dup(had.pipe[0])))                                                        \
    X(gort_open, closed(gort_open(had.path, O_RDWR | O_CLOEXEC, 0)))                               \
    X(gort_pread, gort_pread(had.file, c_buf, 1, 0))                                               \
    X(gort_pwrite, gort_pwrite(had.file, c_buf, 1, 0))                                             \
    X(gort_fsync, gort_fsync(had.file))                                                            \
    X(gort_getaddrinfo, lookup())                                                                  \
    X(gort_listen, closed(gort_listen("127.0.0.1:0", 1)))                                          \
    X(gort_dial, closed(gort_dial(had.addr, gort_now() + GORT_SEC)))                               \
    X(gort_dial_until, closed(gort_dial_until(had.addr, gort_now() + GORT_SEC)))                   \
    X(gort_local_addr, gort_local_addr(had.listener, c_buf, sizeof c_buf))                         \
    X(gort_peer_addr, gort_peer_addr(had.sock[0], c_buf, sizeof c_buf))                            \
    X(gort_addr_strerror, gort_addr_strerror("localhost:80", -ENOENT)[0])                          \
    X(gort_shutdown, shuts())                                                                      \
    X(gort_listen_udp, closed(gort_listen_udp("127.0.0.1:0")))                                     \
    X(gort_copy, copies())                                                                         \
    X(gort_reader_new, reads_lines())                                                              \
    X(gort_reader_line, reads_lines())                                                             \
    X(gort_reader_until, reads_lines())                                                            \
    X(gort_reader_read, reads_lines())                                                             \
    X(gort_reader_deadline, reads_lines())                                                         \
    V(gort_reader_free, gort_reader_free(NULL))                                                    \
    X(gort_writer_new, writes_lines())                                                             \
    X(gort_writer_write, writes_lines())                                                           \
    X(gort_writer_printf, writes_lines())                                                          \
    X(gort_writer_flush, writes_lines())                                                           \
    X(gort_writer_deadline, writes_lines())                                                        \
    V(gort_writer_free, gort_writer_free(NULL))                                                    \
    V(gort_stats_read, gort_stats_read(&(gort_stats){0}))                                          \
    V(gort_stats_read_sized, gort_stats_read_sized(&(gort_stats){0}, 8))                           \
    V(gort_dump, gort_dump(had.file))                                                              \
    X(gort_trace_start, traces())                                                                  \
    X(gort_trace_stop, traces())                                                                   \
    V(gort_region_begin, gort_region_begin("r"))                                                   \
    V(gort_region_end, gort_region_end("r"))                                                       \
    X(gort_debug_listen, gort_debug_listen(had.addr)) /* taken: a page would wait for ever */

#define X_FN(name, expr) \
    static long call_##name(void) { return (long)(expr); }
#define V_FN(name, expr)            \
    static long call_##name(void) { \
        (void)(expr);               \
        return 0;                   \
    }
EVERY_CALL(X_FN, V_FN)

static const struct {
    const char *name;
    long (*fn)(void);
} every_call[] = {
#define ENTRY(name, expr) {#name, call_##name},
    EVERY_CALL(ENTRY, ENTRY)};

#endif
