/*
 * What a player waits in. `make` and `grant` are its director's, always the same thread, so what
 * has an owner may be the director's. `call` is one try: 0, or what the call has said. What it has
 * taken it gives back, also when it is cancelled.
 */
#include "whole.h"

#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

static int failed(long r) { return r < 0 ? errno : 0; }
static void nothing(Player *p) {}

/* Until the deadline. */
static struct timespec left_of(Player *p) {
    int64_t ns = p->mono.tv_sec * 1000000000 + p->mono.tv_nsec - now_ns(CLOCK_MONOTONIC);
    return from_ns(ns > 0 ? ns : 0);
}
static int ms_of(Player *p) {
    struct timespec t = left_of(p);
    return p->timed ? (int)(t.tv_sec * 1000 + (t.tv_nsec + 999999) / 1000000) : -1;
}

/* ---- semaphores ------------------------------------------------------------------------------ */

static void sem_make(Player *p) {
    HOLDS(p, sem_init(&p->sem, pick(p, 1, 2) ? 1 : 0, 0) == 0);
    p->named = &p->sem;
}
static int sem_call(Player *p) {
    if (!p->timed) return failed(sem_wait(p->named));
    return failed(pick(p, 2, 2) ? sem_timedwait(p->named, &p->real)
                                : sem_clockwait(p->named, CLOCK_MONOTONIC, &p->mono));
}
static void sem_grant(Player *p) { HOLDS(p, sem_post(p->named) == 0); }
static void named_make(Player *p) {
    char name[40];
    snprintf(name, sizeof name, "/whole-%d-%d", (int)getpid(), p->index);
    p->named = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    HOLDS(p, p->named != SEM_FAILED);
    sem_unlink(name);
}
static void named_settle(Player *p) { HOLDS(p, sem_close(p->named) == 0); }

/* ---- mutexes --------------------------------------------------------------------------------- */

static void mutex_of(Player *p, int type, int robust, int protocol, int shared) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    IS(p, pthread_mutexattr_settype(&attr, type), 0);
    if (robust) IS(p, pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
    if (protocol) IS(p, pthread_mutexattr_setprotocol(&attr, protocol), 0);
    if (shared) IS(p, pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    IS(p, pthread_mutex_init(&p->mu, &attr), 0);
    pthread_mutexattr_destroy(&attr);
    IS(p, pthread_mutex_lock(&p->mu), 0);
}
static void normal_make(Player *p) { mutex_of(p, PTHREAD_MUTEX_NORMAL, 0, 0, 0); }
static void recursive_make(Player *p) { mutex_of(p, PTHREAD_MUTEX_RECURSIVE, 0, 0, pick(p, 1, 2)); }
static void check_make(Player *p) { mutex_of(p, PTHREAD_MUTEX_ERRORCHECK, 0, 0, pick(p, 1, 2)); }
static void adaptive_make(Player *p) { mutex_of(p, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0); }
static void shared_make(Player *p) { mutex_of(p, PTHREAD_MUTEX_NORMAL, 0, 0, 1); }
static void pi_make(Player *p) {
    mutex_of(p, (int)pick(p, 1, 3), (int)pick(p, 2, 2), PTHREAD_PRIO_INHERIT, 0);
}
static void robust_make(Player *p) { mutex_of(p, (int)pick(p, 1, 3), 1, 0, (int)pick(p, 2, 2)); }
static int mutex_locks(Player *p) {
    if (!p->timed) return pthread_mutex_lock(&p->mu);
    return pick(p, 2, 2) ? pthread_mutex_timedlock(&p->mu, &p->real)
                         : pthread_mutex_clocklock(&p->mu, CLOCK_MONOTONIC, &p->mono);
}
static int mutex_call(Player *p) {
    int r = mutex_locks(p);
    if (r == 0) IS(p, pthread_mutex_unlock(&p->mu), 0);
    return r;
}
static int pi_call(Player *p) { /* has no other clock */
    int r = p->timed ? pthread_mutex_timedlock(&p->mu, &p->real) : pthread_mutex_lock(&p->mu);
    if (r == 0) IS(p, pthread_mutex_unlock(&p->mu), 0);
    return r;
}
static void mutex_grant(Player *p) { IS(p, pthread_mutex_unlock(&p->mu), 0); }

static void *dies_with(void *arg) {
    Player *p = arg;
    IS(p, pthread_mutex_lock(&p->mu), 0);
    set(&p->made, 1);
    wait_until(get(&p->granting));
    return NULL;
}
static void dead_make(Player *p) {
    robust_make(p);
    IS(p, pthread_mutex_unlock(&p->mu), 0);
    p->helper = helper(dies_with, p);
    wait_until(get(&p->made));
}
static int dead_call(Player *p) {
    int r = mutex_locks(p);
    if (r == ETIMEDOUT) return r;
    IS(p, r, EOWNERDEAD);
    IS(p, pthread_mutex_consistent(&p->mu), 0);
    IS(p, pthread_mutex_unlock(&p->mu), 0);
    IS(p, pthread_mutex_lock(&p->mu), 0);
    IS(p, pthread_mutex_unlock(&p->mu), 0);
    return 0;
}
static void helper_settle(Player *p) { finish(p->helper); }

static void mtx_make(Player *p) {
    IS(p, mtx_init(&p->mtx, mtx_timed | (pick(p, 1, 2) ? mtx_recursive : 0)), thrd_success);
    IS(p, mtx_lock(&p->mtx), thrd_success);
}
static int mtx_call(Player *p) {
    int r = p->timed ? mtx_timedlock(&p->mtx, &p->real) : mtx_lock(&p->mtx);
    if (r == thrd_success) IS(p, mtx_unlock(&p->mtx), thrd_success);
    return r == thrd_success ? 0 : r == thrd_timedout ? ETIMEDOUT : EINVAL;
}
static void mtx_grant(Player *p) { IS(p, mtx_unlock(&p->mtx), thrd_success); }

/* ---- conditions ------------------------------------------------------------------------------ */

static void unlocks(void *mu) {
    if (pthread_mutex_unlock(mu) != 0) abort();
}
static void cond_make(Player *p) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    if (pick(p, 3, 2)) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (pick(p, 4, 4) == 0) pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_cond_init(&p->cond, &attr), 0);
    mutex_of(p, (int)pick(p, 1, 3), pick(p, 5, 4) == 0, 0, 0);
    IS(p, pthread_mutex_unlock(&p->mu), 0);
    p->ready = 0;
}
static int cond_waits(Player *p) {
    bool mono = pick(p, 3, 2);
    if (!p->timed) return pthread_cond_wait(&p->cond, &p->mu);
    if (pick(p, 6, 2)) return pthread_cond_timedwait(&p->cond, &p->mu, mono ? &p->mono : &p->real);
    return pthread_cond_clockwait(&p->cond, &p->mu, CLOCK_MONOTONIC, &p->mono);
}
static int cond_call(Player *p) {
    int r = 0;
    IS(p, pthread_mutex_lock(&p->mu), 0);
    pthread_cleanup_push(unlocks, &p->mu);
    while (!p->ready && r == 0) r = cond_waits(p);
    pthread_cleanup_pop(1);
    return r;
}
static void cond_grant(Player *p) {
    bool after = pick(p, 7, 2);
    IS(p, pthread_mutex_lock(&p->mu), 0);
    p->ready = 1;
    if (after) IS(p, pthread_mutex_unlock(&p->mu), 0);
    IS(p, pick(p, 8, 2) ? pthread_cond_signal(&p->cond) : pthread_cond_broadcast(&p->cond), 0);
    if (!after) IS(p, pthread_mutex_unlock(&p->mu), 0);
}
static void cond_settle(Player *p) {
    IS(p, pthread_cond_destroy(&p->cond), 0);
    IS(p, pthread_mutex_destroy(&p->mu), 0);
}
static void cnd_make(Player *p) {
    IS(p, mtx_init(&p->mtx, mtx_plain), thrd_success);
    IS(p, cnd_init(&p->cnd), thrd_success);
}
static void mtx_unlocks(void *m) { mtx_unlock(m); }
static int cnd_call(Player *p) {
    int r = thrd_success;
    IS(p, mtx_lock(&p->mtx), thrd_success);
    pthread_cleanup_push(mtx_unlocks, &p->mtx);
    while (!p->ready && r == thrd_success)
        r = p->timed ? cnd_timedwait(&p->cnd, &p->mtx, &p->real) : cnd_wait(&p->cnd, &p->mtx);
    pthread_cleanup_pop(1);
    return r == thrd_success ? 0 : r == thrd_timedout ? ETIMEDOUT : EINVAL;
}
static void cnd_grant(Player *p) {
    IS(p, mtx_lock(&p->mtx), thrd_success);
    p->ready = 1;
    IS(p, pick(p, 8, 2) ? cnd_signal(&p->cnd) : cnd_broadcast(&p->cnd), thrd_success);
    IS(p, mtx_unlock(&p->mtx), thrd_success);
}

/* ---- rwlocks, spins, barriers, once, threads ------------------------------------------------- */

static void rw_of(Player *p, bool write) {
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    IS(p, pthread_rwlockattr_setkind_np(&attr, (int)pick(p, 1, 3)), 0);
    if (pick(p, 2, 4) == 0) pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_rwlock_init(&p->rw, &attr), 0);
    IS(p, write ? pthread_rwlock_wrlock(&p->rw) : pthread_rwlock_rdlock(&p->rw), 0);
}
static void rd_make(Player *p) { rw_of(p, true); }
static void wr_make(Player *p) { rw_of(p, pick(p, 3, 2)); }
static int rd_call(Player *p) {
    int r = !p->timed       ? pthread_rwlock_rdlock(&p->rw)
            : pick(p, 4, 2) ? pthread_rwlock_timedrdlock(&p->rw, &p->real)
                            : pthread_rwlock_clockrdlock(&p->rw, CLOCK_MONOTONIC, &p->mono);
    if (r == 0) IS(p, pthread_rwlock_unlock(&p->rw), 0);
    return r;
}
static int wr_call(Player *p) {
    int r = !p->timed       ? pthread_rwlock_wrlock(&p->rw)
            : pick(p, 4, 2) ? pthread_rwlock_timedwrlock(&p->rw, &p->real)
                            : pthread_rwlock_clockwrlock(&p->rw, CLOCK_MONOTONIC, &p->mono);
    if (r == 0) IS(p, pthread_rwlock_unlock(&p->rw), 0);
    return r;
}
static void rw_grant(Player *p) { IS(p, pthread_rwlock_unlock(&p->rw), 0); }

static void spin_make(Player *p) { IS(p, pthread_spin_init(&p->spin, (int)pick(p, 1, 2)), 0); }
static int spin_call(Player *p) {
    for (int i = 0; i < 1000; i++) {
        IS(p, pthread_spin_lock(&p->spin), 0);
        p->ready++;
        IS(p, pthread_spin_unlock(&p->spin), 0);
    }
    return 0;
}
static void spin_grant(Player *p) { spin_call(p); }
static void spin_settle(Player *p) { IS(p, p->ready, 2000); }

static void barrier_make(Player *p) {
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    if (pick(p, 1, 4) == 0) pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_barrier_init(&p->barrier, &attr, 2), 0);
}
static int barrier_call(Player *p) {
    int r = pthread_barrier_wait(&p->barrier);
    if (r == PTHREAD_BARRIER_SERIAL_THREAD) add(&p->made, 1), r = 0;
    return r;
}
static void barrier_grant(Player *p) { IS(p, barrier_call(p), 0); }
static void barrier_settle(Player *p) {
    IS(p, p->made, 1);
    IS(p, pthread_barrier_destroy(&p->barrier), 0);
}

static Player *once_of[PLAYERS];
#define ROUTINE(n)                              \
    static void routine##n(void) {              \
        add(&once_of[n]->made, 1);              \
        wait_until(get(&once_of[n]->granting)); \
    }
ROUTINE(0);
ROUTINE(1);
ROUTINE(2);
ROUTINE(3);
ROUTINE(4);
ROUTINE(5);
ROUTINE(6);
ROUTINE(7);
static void (*const routines[PLAYERS])(void) = {routine0, routine1, routine2, routine3,
                                                routine4, routine5, routine6, routine7};
static void *runs_once(void *arg) {
    Player *p = arg;
    if (pick(p, 1, 2)) pthread_once(&p->once, routines[p->index]);
    else call_once(&p->flag, routines[p->index]);
    return NULL;
}
static void once_make(Player *p) {
    p->once = (pthread_once_t)PTHREAD_ONCE_INIT;
    p->flag = (once_flag)ONCE_FLAG_INIT;
    once_of[p->index] = p;
    p->helper = helper(runs_once, p);
    wait_until(get(&p->made));
}
static int once_call(Player *p) {
    runs_once(p);
    HOLDS(p, get(&p->granting));
    return 0;
}
static void once_settle(Player *p) {
    finish(p->helper);
    IS(p, p->made, 1);
}

static void *until_granted(void *arg) {
    Player *p = arg;
    wait_until(get(&p->granting));
    return &p->helper;
}
static void join_make(Player *p) { p->helper = helper(until_granted, p); }
static int join_call(Player *p) {
    void *value;
    int r = !p->timed       ? pthread_join(p->helper, &value)
            : pick(p, 1, 2) ? pthread_timedjoin_np(p->helper, &value, &p->real)
                            : pthread_clockjoin_np(p->helper, &value, CLOCK_MONOTONIC, &p->mono);
    if (r == 0) HOLDS(p, value == &p->helper);
    if (r == 0) set(&p->made, 1);
    return r;
}
static void join_settle(Player *p) {
    if (!p->made) finish(p->helper);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void pipe_make(Player *p) { HOLDS(p, pipe2(p->fd, O_CLOEXEC) == 0); }
static void pair_make(Player *p) {
    int type = pick(p, 1, 2) ? SOCK_STREAM : SOCK_SEQPACKET;
    HOLDS(p, socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p->fd) == 0);
}
static void byte_grant(Player *p) { IS(p, write(p->fd[1], "x", 1), 1); }
static int moved(Player *p, long r) {
    if (r < 0) return errno;
    IS(p, r, 1);
    return 0;
}
static void fds_settle(Player *p) {
    for (int i = 0; i < 2; i++) {
        if (p->fd[i]) close(p->fd[i]);
        if (p->more[i]) close(p->more[i]);
    }
}
static int read_call(Player *p) {
    char c = 0;
    struct iovec v = {&c, 1};
    int r = moved(p, pick(p, 2, 2) ? read(p->fd[0], &c, 1) : readv(p->fd[0], &v, 1));
    if (r == 0) IS(p, c, 'x');
    return r;
}
static int recv_call(Player *p) {
    char c = 0;
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    switch (pick(p, 2, 3)) {
    case 0: return moved(p, recv(p->fd[0], &c, 1, 0));
    case 1: return moved(p, recvmsg(p->fd[0], &m, 0));
    default: return moved(p, recvfrom(p->fd[0], &c, 1, 0, NULL, NULL));
    }
}
static int rcvtimeo_call(Player *p) {
    struct timespec left = left_of(p);
    struct timeval t = {left.tv_sec, left.tv_nsec / 1000 + 1};
    if (p->timed) setsockopt(p->fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    int r = recv_call(p); /* its clock is coarse: alarms may always come before it */
    bool over = r == EAGAIN || (r == EINTR && left.tv_sec == 0 && left.tv_nsec == 0);
    return over && p->timed ? ETIMEDOUT : r;
}

/* The pipe is full. */
static void full_make(Player *p) {
    static const char page[4096];
    pipe_make(p);
    HOLDS(p, fcntl(p->fd[1], F_SETPIPE_SZ, 4096) >= 4096);
    int flags = fcntl(p->fd[1], F_GETFL);
    fcntl(p->fd[1], F_SETFL, flags | O_NONBLOCK);
    while (write(p->fd[1], page, sizeof page) > 0) {}
    while (write(p->fd[1], page, 1) > 0) {}
    fcntl(p->fd[1], F_SETFL, flags);
}
static int full_call(Player *p) { return moved(p, write(p->fd[1], "x", 1)); }
static void full_grant(Player *p) {
    char all[4096];
    HOLDS(p, read(p->fd[0], all, sizeof all) > 0);
}
static void sends_make(Player *p) {
    static const char page[4096];
    int small = 4096;
    HOLDS(p, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->fd) == 0);
    setsockopt(p->fd[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    while (send(p->fd[1], page, sizeof page, MSG_DONTWAIT) > 0) {}
}
static int sends_call(Player *p) {
    return moved(p, pick(p, 1, 2) ? send(p->fd[1], "x", 1, 0) : write(p->fd[1], "x", 1));
}
static void sends_grant(Player *p) {
    char all[4096];
    while (recv(p->fd[0], all, sizeof all, MSG_DONTWAIT) > 0) {}
}

static int polled(Player *p, long r) {
    if (r < 0) return errno;
    return r == 0 ? ETIMEDOUT : 0;
}
static int poll_call(Player *p) {
    struct pollfd f[2] = {{p->fd[0], POLLIN, 0}, {-1, POLLIN, 0}};
    struct timespec t = left_of(p);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    switch (pick(p, 1, 3)) {
    case 0: return polled(p, ppoll(f, 2, p->timed ? &t : NULL, NULL));
    case 1: return polled(p, ppoll(f, 2, p->timed ? &t : NULL, &mask));
    default: return polled(p, poll(f, 2, ms_of(p)));
    }
}
static int select_call(Player *p) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p->fd[0], &set);
    struct timespec t = left_of(p);
    struct timeval v = {t.tv_sec, (t.tv_nsec + 999) / 1000};
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    int n = p->fd[0] + 1;
    if (pick(p, 1, 2)) return polled(p, select(n, &set, NULL, NULL, p->timed ? &v : NULL));
    return polled(p, pselect(n, &set, NULL, NULL, p->timed ? &t : NULL, &mask));
}
static void epoll_make(Player *p) {
    pipe_make(p);
    p->more[0] = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {EPOLLIN | (pick(p, 2, 2) ? EPOLLET : 0), {0}};
    HOLDS(p, epoll_ctl(p->more[0], EPOLL_CTL_ADD, p->fd[0], &e) == 0);
}
static int epoll_call(Player *p) {
    struct epoll_event e[2];
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return polled(p, pick(p, 1, 2) ? epoll_wait(p->more[0], e, 2, ms_of(p))
                                   : epoll_pwait(p->more[0], e, 2, ms_of(p), &mask));
}
static void event_make(Player *p) {
    p->fd[0] = eventfd(0, EFD_CLOEXEC | (pick(p, 1, 2) ? EFD_SEMAPHORE : 0));
}
static int event_call(Player *p) {
    eventfd_t v;
    long r = pick(p, 2, 2) ? eventfd_read(p->fd[0], &v) : read(p->fd[0], &v, 8);
    return failed(r);
}
static void event_grant(Player *p) { HOLDS(p, eventfd_write(p->fd[0], 1) == 0); }
static void timerfd_make(Player *p) { p->fd[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC); }
static int timerfd_call(Player *p) {
    uint64_t n;
    return failed(read(p->fd[0], &n, sizeof n));
}
static void timerfd_grant(Player *p) {
    struct itimerspec soon = {{0, 0}, {0, 100000}};
    HOLDS(p, timerfd_settime(p->fd[0], 0, &soon, NULL) == 0);
}
static void listen_make(Player *p) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof in;
    p->fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HOLDS(p, bind(p->fd[0], (struct sockaddr *)&in, size) == 0 && listen(p->fd[0], 4) == 0);
    HOLDS(p, getsockname(p->fd[0], (struct sockaddr *)&in, &size) == 0);
    p->id = ntohs(in.sin_port);
}
static int accept_call(Player *p) {
    int fd =
        pick(p, 1, 2) ? accept(p->fd[0], NULL, NULL) : accept4(p->fd[0], NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return errno;
    p->more[1] = fd;
    return 0;
}
static void accept_grant(Player *p) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    in.sin_port = htons((uint16_t)p->id);
    p->more[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HOLDS(p, connect(p->more[0], (struct sockaddr *)&in, sizeof in) == 0);
}
/* A listener whose queue is full. */
static void connect_make(Player *p) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "s%d", p->index);
    p->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HOLDS(p, bind(p->fd[0], (struct sockaddr *)&un, sizeof un) == 0 && listen(p->fd[0], 0) == 0);
    p->more[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HOLDS(p, connect(p->more[0], (struct sockaddr *)&un, sizeof un) == 0);
    p->more[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}
static int connect_call(Player *p) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "s%d", p->index);
    return failed(connect(p->more[1], (struct sockaddr *)&un, sizeof un));
}
static void connect_grant(Player *p) { close(accept(p->fd[0], NULL, NULL)); }

static void fifo_make(Player *p) {
    snprintf(p->path, sizeof p->path, "fifo%d", p->index);
    HOLDS(p, mkfifo(p->path, 0600) == 0);
}
static int fifo_call(Player *p) {
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    close(fd);
    return 0;
}
static void fifo_grant(Player *p) {
    int fd; /* not waiting for one who was cancelled */
    for (;;) {
        fd = open(p->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 || get(&p->ended)) break;
        nap(100);
    }
    if (fd >= 0) close(fd);
}
static void inotify_make(Player *p) {
    p->fd[0] = inotify_init1(IN_CLOEXEC);
    snprintf(p->path, sizeof p->path, "dir%d", p->index);
    HOLDS(p, mkdir(p->path, 0700) == 0 && inotify_add_watch(p->fd[0], p->path, IN_CREATE) > 0);
}
static int inotify_call(Player *p) {
    char all[600];
    return failed(read(p->fd[0], all, sizeof all));
}
static void inotify_grant(Player *p) {
    char path[80];
    snprintf(path, sizeof path, "%s/x", p->path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}
static void signalfd_make(Player *p) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIG_ALONE + p->index);
    p->fd[0] = signalfd(-1, &set, SFD_CLOEXEC);
}
static int signalfd_call(Player *p) {
    struct signalfd_siginfo info;
    long r = read(p->fd[0], &info, sizeof info);
    if (r < 0) return errno;
    IS(p, info.ssi_signo, SIG_ALONE + p->index);
    return 0;
}
static void alone_grant(Player *p) {
    if (pick(p, 1, 2)) IS(p, kill(getpid(), SIG_ALONE + p->index), 0);
    else
        while (sigqueue(getpid(), SIG_ALONE + p->index, (union sigval){7}) != 0) nap(100);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void file_make(Player *p) {
    snprintf(p->path, sizeof p->path, "file%d", p->index);
    for (int i = 0; i < 2; i++) p->fd[i] = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}
static void flock_make(Player *p) {
    file_make(p);
    IS(p, flock(p->fd[0], LOCK_EX), 0);
}
static int flock_call(Player *p) { return failed(flock(p->fd[1], LOCK_EX)); }
static void flock_grant(Player *p) { IS(p, flock(p->fd[0], LOCK_UN), 0); }
static int ofd_lock(int fd, int type) {
    struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLKW, &l);
}
static void ofd_make(Player *p) {
    file_make(p);
    IS(p, ofd_lock(p->fd[0], F_WRLCK), 0);
}
static int ofd_call(Player *p) { return failed(ofd_lock(p->fd[1], F_RDLCK)); }
static void ofd_grant(Player *p) { IS(p, ofd_lock(p->fd[0], F_UNLCK), 0); }

static void stream_make(Player *p) {
    pipe_make(p);
    p->file = fdopen(p->fd[0], "r");
}
static int stream_call(Player *p) {
    char line[10];
    clearerr(p->file);
    errno = 0;
    if (fgets(line, sizeof line, p->file)) return 0;
    return errno;
}
static void line_grant(Player *p) { IS(p, write(p->fd[1], "x\n", 2), 2); }
static void stream_settle(Player *p) { close(p->fd[1]), fclose(p->file); }
static void locked_make(Player *p) {
    p->file = fopen("/dev/null", "r");
    flockfile(p->file);
}
static int locked_call(Player *p) {
    flockfile(p->file);
    HOLDS(p, get(&p->granting));
    funlockfile(p->file);
    return 0;
}
static void locked_grant(Player *p) { funlockfile(p->file); }
static void locked_settle(Player *p) { fclose(p->file); }

static void aio_make(Player *p) {
    pipe_make(p);
    struct aiocb *a = p->p = calloc(1, sizeof *a + 10);
    a->aio_fildes = p->fd[0];
    a->aio_buf = a + 1;
    a->aio_nbytes = 1;
    a->aio_sigevent.sigev_notify = SIGEV_NONE;
    HOLDS(p, aio_read(a) == 0);
}
static int aio_call(Player *p) {
    const struct aiocb *list[1] = {p->p};
    struct timespec t = left_of(p);
    if (aio_suspend(list, 1, p->timed ? &t : NULL) == 0) return 0;
    return errno == EAGAIN && p->timed ? ETIMEDOUT : errno;
}
static void aio_settle(Player *p) {
    wait_until(aio_error(p->p) != EINPROGRESS);
    IS(p, aio_error(p->p), 0);
    IS(p, aio_return(p->p), 1);
    fds_settle(p);
    free(p->p);
}

/* ---- signals, and none ----------------------------------------------------------------------- */

static int awaits(Player *p, int signo) {
    siginfo_t info = {0};
    struct timespec t = left_of(p);
    sigset_t one;
    int s = 0, r;
    sigemptyset(&one);
    sigaddset(&one, signo);
    if (p->timed) r = sigtimedwait(&one, &info, &t) < 0 ? errno : 0, s = info.si_signo;
    else if (pick(p, 2, 2) && !p->interrupts) r = sigwait(&one, &s);
    else r = sigwaitinfo(&one, &info) < 0 ? errno : 0, s = info.si_signo;
    if (r == EAGAIN && p->timed) return ETIMEDOUT;
    if (r == 0) IS(p, s, signo);
    return r;
}
static int sigwait_call(Player *p) { return awaits(p, SIG_AWAITED); }
static void sigwait_grant(Player *p) {
    wait_until(get(&p->known));
    if (get(&p->ended)) return; /* its number may be another's */
    IS(p, pthread_kill(p->thread, SIG_AWAITED), 0);
}
static int alone_call(Player *p) { return awaits(p, SIG_ALONE + p->index); }

/* Ended by a handler: the director sends until it has seen the end. */
static int pause_call(Player *p) {
    sigset_t mask;
    if (pick(p, 1, 2)) pause();
    else {
        players_mask(&mask);
        sigsuspend(&mask);
    }
    if (!get(&p->granting)) return EINTR;
    return 0;
}
static void pause_grant(Player *p) {
    wait_until(get(&p->known));
    while (!get(&p->returned) && !get(&p->ended)) {
        pthread_kill(p->thread, pick(p, 3, 2) ? SIG_INTERRUPTS : SIG_RESTARTS);
        nap(100);
    }
}
static int loop_call(Player *p) {
    for (volatile long n = 0; !get(&p->granting);) n = n + 1;
    return 0;
}
static int yield_call(Player *p) {
    while (!get(&p->granting)) pick(p, 1, 2) ? (void)sched_yield() : thrd_yield();
    return 0;
}
static int testcancel_call(Player *p) {
    while (!get(&p->granting)) pthread_testcancel();
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int sleep_call(Player *p) {
    /* what is left: alarms may come more often than it takes */
    int64_t ns = p->begins + 300000 + pick(p, 3, 3000000) - now_ns(CLOCK_MONOTONIC);
    if (p->forever) ns = 3600 * INT64_C(1000000000);
    if (ns <= 0) return 0;
    struct timespec t = from_ns(ns), end;
    struct timeval v = {t.tv_sec, t.tv_nsec / 1000};
    switch (pick(p, 1, 9)) {
    case 0: return failed(nanosleep(&t, NULL));
    case 1: return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    case 2: return clock_nanosleep(CLOCK_REALTIME, 0, &t, NULL);
    case 3:
    case 4:
        end = from_ns(now_ns(pick(p, 1, 9) == 3 ? CLOCK_MONOTONIC : CLOCK_REALTIME) + ns);
        return clock_nanosleep(pick(p, 1, 9) == 3 ? CLOCK_MONOTONIC : CLOCK_REALTIME, TIMER_ABSTIME,
                               &end, NULL);
    case 5: return p->forever ? (sleep(3600) ? EINTR : 0) : failed(usleep((unsigned)(ns / 1000)));
    case 6: return failed(poll(NULL, 0, (int)(ns / 1000000)));
    case 7: return failed(select(0, NULL, NULL, NULL, &v));
    default: return thrd_sleep(&t, NULL) == 0 ? 0 : EINTR;
    }
}

/* ---- futexes, queues, processes -------------------------------------------------------------- */

static int futex_call(Player *p) {
    struct timespec t = left_of(p);
    bool own = pick(p, 1, 2);
    int op = (own ? FUTEX_PRIVATE_FLAG : 0) | (pick(p, 2, 2) ? FUTEX_WAIT : FUTEX_WAIT_BITSET);
    struct timespec *until = (op & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAIT ? &t : &p->mono;
    while (get(&p->word) == 0)
        if (syscall(SYS_futex, &p->word, op, 0, p->timed ? until : NULL, NULL, ~0u) != 0 &&
            errno != EAGAIN)
            return errno;
    return 0;
}
static void futex_grant(Player *p) {
    set(&p->word, 1);
    int op = (pick(p, 1, 2) ? FUTEX_PRIVATE_FLAG : 0) | FUTEX_WAKE;
    HOLDS(p, syscall(SYS_futex, &p->word, op, INT_MAX, NULL, NULL, 0) >= 0);
}

static void mq_make(Player *p) {
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[40];
    snprintf(name, sizeof name, "/whole-%d-%d", (int)getpid(), p->index);
    p->mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    HOLDS(p, p->mq != (mqd_t)-1);
    mq_unlink(name);
}
static void mq_full_make(Player *p) {
    mq_make(p);
    HOLDS(p, mq_send(p->mq, "y", 1, 0) == 0);
}
static int mq_call(Player *p) {
    char m[8];
    return moved(p, p->timed ? mq_timedreceive(p->mq, m, 8, NULL, &p->real)
                             : mq_receive(p->mq, m, 8, NULL));
}
static int mq_full_call(Player *p) {
    return failed(p->timed ? mq_timedsend(p->mq, "x", 1, 0, &p->real) : mq_send(p->mq, "x", 1, 0));
}
static void mq_grant(Player *p) { HOLDS(p, mq_send(p->mq, "x", 1, 0) == 0); }
static void mq_full_grant(Player *p) {
    char m[8];
    IS(p, mq_receive(p->mq, m, 8, NULL), 1);
}
static void mq_settle(Player *p) { mq_close(p->mq); }

static void semop_make(Player *p) { HOLDS(p, (p->id = semget(IPC_PRIVATE, 1, 0600)) >= 0); }
static int semop_call(Player *p) {
    struct sembuf op = {0, -1, 0};
    struct timespec t = left_of(p);
    int r = failed(p->timed ? semtimedop(p->id, &op, 1, &t) : semop(p->id, &op, 1));
    return r == EAGAIN && p->timed ? ETIMEDOUT : r;
}
static void semop_grant(Player *p) {
    struct sembuf op = {0, 1, 0};
    HOLDS(p, semop(p->id, &op, 1) == 0);
}
static void semop_settle(Player *p) { semctl(p->id, 0, IPC_RMID); }
typedef struct Message {
    long type;
    char c;
} Message;
static void msg_make(Player *p) { HOLDS(p, (p->id = msgget(IPC_PRIVATE, 0600)) >= 0); }
static int msg_call(Player *p) {
    Message m;
    return moved(p, msgrcv(p->id, &m, 1, 0, 0));
}
static void msg_grant(Player *p) {
    Message m = {1, 'x'};
    HOLDS(p, msgsnd(p->id, &m, 1, 0) == 0);
}
static void msg_settle(Player *p) { msgctl(p->id, IPC_RMID, NULL); }

static void child_make(Player *p) {
    char c;
    HOLDS(p, pipe2(p->fd, O_CLOEXEC) == 0);
    HOLDS(p, (p->child = fork()) >= 0);
    if (p->child == 0) {
        close(p->fd[1]);
        _exit(read(p->fd[0], &c, 1) == 1 ? 5 : 6);
    }
}
static void spawned_make(Player *p) {
    posix_spawn_file_actions_t acts;
    char *argv[] = {"sh", "-c", "read x; exit 5", NULL}, *env[] = {NULL};
    HOLDS(p, pipe2(p->fd, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&acts);
    posix_spawn_file_actions_adddup2(&acts, p->fd[0], 0);
    IS(p, posix_spawn(&p->child, "/bin/sh", &acts, NULL, argv, env), 0);
    posix_spawn_file_actions_destroy(&acts);
}
static int child_call(Player *p) {
    int status = 0;
    siginfo_t info;
    pid_t r;
    switch (pick(p, 1, 3)) {
    case 0: r = waitpid(p->child, &status, 0); break;
    case 1: r = wait4(p->child, &status, 0, NULL); break;
    default:
        if (waitid(P_PID, (id_t)p->child, &info, WEXITED) != 0) return errno;
        r = info.si_pid;
        status = info.si_status << 8;
    }
    if (r < 0) return errno;
    IS(p, r, p->child);
    IS(p, status, 5 << 8);
    set(&p->made, 1);
    return 0;
}
static void child_settle(Player *p) {
    /* a cancel may come when the call has reaped it already */
    if (p->all & CANCELS) waitpid(p->child, NULL, 0);
    else if (!p->made) IS(p, ends_child(p->child), 5 << 8);
    fds_settle(p);
}

/* The shell reads from a descriptor that others do not close meanwhile. */
static void shell_make(Player *p) { HOLDS(p, pipe(p->fd) == 0); }
static int system_call(Player *p) {
    char command[60];
    snprintf(command, sizeof command, "read x </dev/fd/%d; exit 3", p->fd[0]);
    int r = system(command);
    if (r < 0) return errno;
    IS(p, r, 3 << 8);
    return 0;
}
static int popen_call(Player *p) {
    char command[60], line[10] = "";
    snprintf(command, sizeof command, "read x </dev/fd/%d; echo got; exit 3", p->fd[0]);
    FILE *f = popen(command, "re");
    HOLDS(p, f != NULL);
    while (!fgets(line, sizeof line, f) && ferror(f) && errno == EINTR) clearerr(f);
    IS(p, strcmp(line, "got\n"), 0);
    int r = pclose(f);
    if (r != 3 << 8 && !(r < 0 && errno == EINTR)) IS(p, r, 3 << 8);
    return 0;
}

/* ---- what libc does in many steps ------------------------------------------------------------ */

static int names_call(Player *p) {
    struct addrinfo *found = NULL, hints = {.ai_flags = AI_NUMERICSERV, .ai_family = AF_INET};
    int r = getaddrinfo("localhost", "80", &hints, &found);
    if (r == EAI_SYSTEM && errno == EINTR) return EINTR;
    IS(p, r, 0);
    freeaddrinfo(found);
    return 0;
}
static int names_a_call(Player *p) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_family = AF_INET};
    struct gaicb ask = {.ar_name = "127.0.0.1", .ar_request = &hints}, *list[1] = {&ask};
    IS(p, getaddrinfo_a(GAI_NOWAIT, list, 1, NULL), 0);
    while (gai_error(&ask) == EAI_INPROGRESS) gai_suspend((void *)list, 1, NULL);
    IS(p, gai_error(&ask), 0);
    freeaddrinfo(ask.ar_result);
    return 0;
}
static int malloc_call(Player *p) {
    char *blocks[50] = {NULL};
    for (unsigned i = 0; i < 500; i++) {
        unsigned n = i % 50;
        free(blocks[n]);
        blocks[n] = malloc(10 + pick(p, i, i % 10 ? 1000 : 300000));
        blocks[n][0] = (char)n;
    }
    for (int i = 0; i < 50; i++) {
        IS(p, blocks[i][0], i);
        free(blocks[i]);
    }
    return 0;
}
static int dl_call(Player *p) {
    void *lib = dlopen("libm.so.6", pick(p, 1, 2) ? RTLD_NOW : RTLD_LAZY);
    HOLDS(p, lib != NULL);
    double (*root)(double) = (double (*)(double))dlsym(lib, "sqrt");
    HOLDS(p, root && root(9) == 3);
    IS(p, dlclose(lib), 0);
    return 0;
}
static void timer_fires(union sigval v) {
    Player *p = v.sival_ptr;
    IS(p, sem_post(&p->sem), 0);
}
static void timer_make(Player *p) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = timer_fires};
    e.sigev_value.sival_ptr = p;
    sem_make(p);
    HOLDS(p, timer_create(CLOCK_MONOTONIC, &e, &p->timer) == 0);
}
static void timer_grant(Player *p) {
    struct itimerspec soon = {{0, 0}, {0, 200000}};
    HOLDS(p, timer_settime(p->timer, 0, &soon, NULL) == 0);
}
static void timer_settle(Player *p) { timer_delete(p->timer); }
static void timersig_make(Player *p) {
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIG_ALONE + p->index};
    HOLDS(p, timer_create(CLOCK_MONOTONIC, &e, &p->timer) == 0);
}
/* One for the thread that makes it. */
static int timertid_call(Player *p) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIG_AWAITED};
    struct itimerspec soon = {{0, 0}, {0, 500000}};
    siginfo_t info;
    sigset_t one;
    timer_t timer;
    sigemptyset(&one);
    sigaddset(&one, SIG_AWAITED);
    e._sigev_un._tid = gettid();
    HOLDS(p, timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
    HOLDS(p, timer_settime(timer, 0, &soon, NULL) == 0);
    while (sigwaitinfo(&one, &info) < 0) IS(p, errno, EINTR);
    IS(p, info.si_code, SI_TIMER);
    timer_delete(timer);
    return 0;
}

static void *nests(void *arg) {
    intptr_t depth = (intptr_t)arg;
    pthread_t t[2];
    if (depth == 0) return (void *)1;
    intptr_t sum = 0;
    int r;
    for (int i = 0; i < 2; i++)
        if ((r = pthread_create(&t[i], NULL, nests, (void *)(depth - 1))) != 0) return NULL;
    for (int i = 0; i < 2; i++) {
        void *v;
        if (pthread_join(t[i], &v) != 0) return NULL;
        sum += (intptr_t)v;
    }
    return (void *)sum;
}
static int tree_call(Player *p) {
    IS(p, (intptr_t)nests((void *)3), 8);
    return 0;
}
static int forks_call(Player *p) {
    pid_t pid = fork();
    HOLDS(p, pid >= 0);
    if (pid == 0) _exit((intptr_t)nests((void *)2) == 4 ? 4 : 5);
    int status;
    while (waitpid(pid, &status, 0) < 0) IS(p, errno, EINTR);
    IS(p, status, 4 << 8);
    return 0;
}

#define WAITS GRANTED
#define FD (GRANTED | POINT | INTR | LEAVABLE)
#define ACT(name_, is_, make_, call_, grant_, settle_) \
    { {.name = name_, .is = (is_)}, make_, call_, grant_, settle_ }
const Act acts[] = {
    ACT("sem", FD | TIMED, sem_make, sem_call, sem_grant, nothing),
    ACT("sem_named", FD | TIMED, named_make, sem_call, sem_grant, named_settle),
    ACT("mutex", WAITS | TIMED, normal_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_recursive", WAITS | TIMED, recursive_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_check", WAITS | TIMED, check_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_adaptive", WAITS | TIMED, adaptive_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_shared", WAITS | TIMED, shared_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_pi", WAITS | TIMED, pi_make, pi_call, mutex_grant, nothing),
    ACT("mutex_robust", WAITS | TIMED, robust_make, mutex_call, mutex_grant, nothing),
    ACT("mutex_dead", WAITS | TIMED, dead_make, dead_call, nothing, helper_settle),
    ACT("mtx", WAITS | TIMED, mtx_make, mtx_call, mtx_grant, nothing),
    ACT("cond", WAITS | TIMED | POINT, cond_make, cond_call, cond_grant, cond_settle),
    ACT("cnd", WAITS | TIMED | POINT, cnd_make, cnd_call, cnd_grant, nothing),
    ACT("rdlock", WAITS | TIMED, rd_make, rd_call, rw_grant, nothing),
    ACT("wrlock", WAITS | TIMED, wr_make, wr_call, rw_grant, nothing),
    ACT("spin", QUICK, spin_make, spin_call, spin_grant, spin_settle),
    ACT("barrier", WAITS | MEETS, barrier_make, barrier_call, barrier_grant, barrier_settle),
    ACT("once", WAITS, once_make, once_call, nothing, once_settle),
    ACT("join", WAITS | TIMED | POINT, join_make, join_call, nothing, join_settle),
    ACT("read", FD, pipe_make, read_call, byte_grant, fds_settle),
    ACT("read_pair", FD, pair_make, read_call, byte_grant, fds_settle),
    ACT("recv", FD, pair_make, recv_call, byte_grant, fds_settle),
    ACT("rcvtimeo", FD | TIMED | ALWAYS, pair_make, rcvtimeo_call, byte_grant, fds_settle),
    ACT("write", FD, full_make, full_call, full_grant, fds_settle),
    ACT("send", FD, sends_make, sends_call, sends_grant, fds_settle),
    ACT("poll", FD | TIMED | ALWAYS, pipe_make, poll_call, byte_grant, fds_settle),
    ACT("select", FD | TIMED | ALWAYS, pipe_make, select_call, byte_grant, fds_settle),
    ACT("epoll", FD | TIMED | ALWAYS, epoll_make, epoll_call, byte_grant, fds_settle),
    ACT("eventfd", FD, event_make, event_call, event_grant, fds_settle),
    ACT("timerfd", FD, timerfd_make, timerfd_call, timerfd_grant, fds_settle),
    ACT("accept", FD, listen_make, accept_call, accept_grant, fds_settle),
    ACT("connect", FD, connect_make, connect_call, connect_grant, fds_settle),
    ACT("fifo", FD | MEETS, fifo_make, fifo_call, fifo_grant, nothing),
    ACT("inotify", FD, inotify_make, inotify_call, inotify_grant, fds_settle),
    ACT("signalfd", FD, signalfd_make, signalfd_call, alone_grant, fds_settle),
    ACT("flock", WAITS | INTR, flock_make, flock_call, flock_grant, fds_settle),
    ACT("ofd", WAITS | POINT | INTR, ofd_make, ofd_call, ofd_grant, fds_settle),
    ACT("stream", WAITS | POINT, stream_make, stream_call, line_grant, stream_settle),
    ACT("flockfile", WAITS, locked_make, locked_call, locked_grant, locked_settle),
    ACT("aio", WAITS | TIMED | POINT | INTR | ALWAYS, aio_make, aio_call, byte_grant, aio_settle),
    ACT("sigwait", FD | TIMED | ALWAYS | MEETS, nothing, sigwait_call, sigwait_grant, nothing),
    ACT("sigwait_process", FD | TIMED | ALWAYS, nothing, alone_call, alone_grant, nothing),
    ACT("pause", WAITS | POINT | LEAVABLE | SIGNALS | ALWAYS | MEETS, nothing, pause_call,
        pause_grant, nothing),
    ACT("loop", WAITS | LEAVABLE, nothing, loop_call, nothing, nothing),
    ACT("yield", WAITS, nothing, yield_call, nothing, nothing),
    ACT("testcancel", WAITS | POINT, nothing, testcancel_call, nothing, nothing),
    ACT("sleep", SLEEPS | POINT | INTR | LEAVABLE | ALWAYS, nothing, sleep_call, nothing, nothing),
    ACT("futex", WAITS | TIMED | INTR | LEAVABLE, nothing, futex_call, futex_grant, nothing),
    ACT("mq", FD | TIMED, mq_make, mq_call, mq_grant, mq_settle),
    ACT("mq_full", FD | TIMED, mq_full_make, mq_full_call, mq_full_grant, mq_settle),
    ACT("semop", WAITS | TIMED | INTR | LEAVABLE | ALWAYS, semop_make, semop_call, semop_grant,
        semop_settle),
    ACT("msg", FD | ALWAYS, msg_make, msg_call, msg_grant, msg_settle),
    ACT("waitpid", FD, child_make, child_call, line_grant, child_settle),
    ACT("spawned", FD, spawned_make, child_call, line_grant, child_settle),
    ACT("system", WAITS, shell_make, system_call, line_grant, fds_settle),
    ACT("popen", WAITS, shell_make, popen_call, line_grant, fds_settle),
    ACT("timer", FD | STAYS, timer_make, sem_call, timer_grant, timer_settle),
    ACT("timer_signal", FD | ALWAYS, timersig_make, alone_call, timer_grant, timer_settle),
    ACT("timer_thread", QUICK, nothing, timertid_call, nothing, nothing),
    ACT("getaddrinfo", QUICK, nothing, names_call, nothing, nothing),
    ACT("getaddrinfo_a", QUICK, nothing, names_a_call, nothing, nothing),
    ACT("malloc", QUICK, nothing, malloc_call, nothing, nothing),
    ACT("dlopen", QUICK, nothing, dl_call, nothing, nothing),
    ACT("tree", QUICK, nothing, tree_call, nothing, nothing),
    ACT("fork", QUICK, nothing, forks_call, nothing, nothing),
    {{.name = NULL}, NULL, NULL, NULL, NULL},
};
