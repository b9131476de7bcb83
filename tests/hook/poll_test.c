/* poll, ppoll, select, pselect, epoll_wait. */
#include "hook.h"
#include <sys/un.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum { POLL, PPOLL, SELECT, PSELECT, EPOLL, WAYS };

/* 1: fd is readable; 0: not within ms. */
static int readable(int way, int fd, int ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    int r = -1;
    switch (way) {
    case POLL: r = poll(&p, 1, ms); break;
    case PPOLL: r = ppoll(&p, 1, ms < 0 ? NULL : &ts, NULL); break;
    case SELECT: r = select(fd + 1, &set, NULL, NULL, ms < 0 ? NULL : &tv); break;
    case PSELECT: r = pselect(fd + 1, &set, NULL, NULL, ms < 0 ? NULL : &ts, NULL); break;
    case EPOLL: {
        int ep = epoll_create1(0);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd}, got;
        CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
        r = epoll_wait(ep, &got, 1, ms);
        if (r == 1) CHECK_EQ(got.data.fd, fd);
        CHECK_EQ(close(ep), 0);
    }
    }
    if (way <= PPOLL) CHECK_EQ(p.revents, r == 1 ? POLLIN : 0);
    if (way == SELECT || way == PSELECT) CHECK_EQ(FD_ISSET(fd, &set) != 0, r == 1);
    return r;
}

static int ends[MANY][2], done;

static void waiter(void *arg) {
    int i = (int)(intptr_t)arg;
    CHECK_EQ(readable(i % WAYS, ends[i][0], i % 2 ? -1 : 1000000), 1);
    add(&done, 1);
}

/* A signal of the program's, every 20 us: a poll that does not wait is EINTR for it, too. */
static void on_tick(int sig) {}
static timer_t ticks(void) {
    struct sigevent to = {.sigev_notify = SIGEV_THREAD_ID,
                          .sigev_signo = SIGUSR2,
                          ._sigev_un._tid = (int)syscall(SYS_gettid)};
    struct itimerspec often = {{0, 20000}, {0, 20000}};
    timer_t t;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &to, &t), 0);
    CHECK_EQ(timer_settime(t, 0, &often, NULL), 0);
    return t;
}
/* Accepts where nobody connects: it has to wait without a thread, and be woken by the close. */
static void accepts(void *listener) {
    for (int i = 0; i < 300; i++) { /* the first look is what counts */
        struct pollfd f = {.fd = (int)(intptr_t)listener, .events = POLLIN};
        CHECK_EQ(poll(&f, 1, 0), 0);
    }
    CHECK_FAILS(accept((int)(intptr_t)listener, NULL, NULL), EBADF);
    add(&done, 1);
}
static void interrupted(void) {
    struct sigaction sa = {.sa_handler = on_tick, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
    timer_t t = ticks();
    for (int i = 0; i < 300; i++) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        int l = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK_EQ(bind(l, (void *)&un, sizeof(sa_family_t)), 0); /* a name that the kernel chooses */
        CHECK_EQ(listen(l, 1), 0);
        CHECK_EQ(gort_go(accepts, (void *)(intptr_t)l), 0);
        wait_for_waiting("IO wait", 1);
        CHECK_EQ(close(l), 0);
        wait_until(get(&done) == i + 1);
    }
    CHECK_EQ(timer_delete(t), 0);
    set(&done, 0);
}

/* Neither an end nor an error is an exceptional condition of select: the wait goes on. */
static void writes(void *fd) {
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1);
}
static void hung(void) {
    int s[2], p[2];
    fd_set read, urgent;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    CHECK(close(s[1]) == 0 && pipe(p) == 0);
    FD_ZERO(&urgent);
    FD_SET(s[0], &urgent);
    int64_t from = gort_now();
    CHECK_EQ(select(s[0] + 1, NULL, NULL, &urgent, &(struct timeval){0, 35000}), 0);
    CHECK_GE(gort_now() - from, 35 * GORT_MS);
    FD_SET(s[0], &urgent);
    FD_ZERO(&read);
    FD_SET(p[0], &read);
    CHECK_EQ(gort_go(writes, (void *)(intptr_t)p[1]), 0);
    CHECK_EQ(select(p[0] + 1, &read, NULL, &urgent, NULL), 1);
    CHECK(FD_ISSET(p[0], &read) && !FD_ISSET(s[0], &urgent));
    CHECK(close(s[0]) == 0 && close(p[0]) == 0 && close(p[1]) == 0);
}

/* Without a descriptor, by whatever arguments, it sleeps: a done context in use does not end it. */
enum { NO_POLL, NEGATIVES, NO_PPOLL, NO_SELECT, EMPTY_SETS, NO_PSELECT, SLEEPS };
static int nothing(int way, int ms) {
    struct pollfd none[2] = {{.fd = -1, .events = POLLIN}, {.fd = -7, .events = POLLOUT}};
    struct timespec ts = {0, ms * GORT_MS};
    struct timeval tv = {0, ms * 1000};
    fd_set set, other;
    FD_ZERO(&set);
    switch (way) {
    case NO_POLL: return poll(NULL, 0, ms);
    case NEGATIVES: return poll(none, 2, ms);
    case NO_PPOLL: return ppoll(none, 1, &ts, NULL);
    case NO_SELECT: return select(0, NULL, NULL, NULL, &tv);
    case EMPTY_SETS: other = set; return select(64, &set, &other, NULL, &tv);
    default: return pselect(0, NULL, NULL, NULL, &ts, NULL);
    }
}
static void sleeps_on(int fd) {
    gort_ctx *c = gort_ctx_new(NULL);
    gort_ctx_use(c);
    gort_ctx_cancel(c);
    for (int way = 0; way < SLEEPS; way++) {
        int64_t from = gort_now();
        CHECK_EQ(nothing(way, 15), 0);
        CHECKF(gort_now() - from >= 15 * GORT_MS, "way %d came back early", way);
    }
    struct pollfd f[2] = {{.fd = -1}, {.fd = fd, .events = POLLIN}};
    CHECK_FAILS(poll(f, 2, -1), ECANCELED);
    gort_ctx_use(NULL);
    gort_ctx_release(c);
}

static int run(int argc, char **argv) {
    int p[2];
    CHECK_EQ(pipe(p), 0);
    interrupted();
    hung();
    for (int way = 0; way < WAYS; way++) {
        int64_t from = gort_now();
        CHECK_EQ(readable(way, p[0], 0), 0);
        CHECK_EQ(readable(way, p[0], 15), 0);
        CHECK_GE(gort_now() - from, 15 * GORT_MS);
    }
    sleeps_on(p[0]);
    CHECK_EQ(write(p[1], "x", 1), 1);
    for (int way = 0; way < WAYS; way++) CHECK_EQ(readable(way, p[0], -1), 1);

    for (intptr_t i = 0; i < MANY; i++) {
        CHECK_EQ(pipe(ends[i]), 0);
        gort_go(waiter, (void *)i);
    }
    wait_for_waiting("IO wait", MANY);
    CHECK_LT(threads(), 40);
    for (int i = 0; i < MANY; i++) CHECK_EQ(write(ends[i][1], "x", 1), 1);
    wait_until(get(&done) == MANY);

    /* A signal mask: libc's own, and it still works. */
    sigset_t none;
    sigemptyset(&none);
    struct pollfd f = {.fd = p[0], .events = POLLIN};
    struct timespec ts = {0, 1000000};
    CHECK_EQ(ppoll(&f, 1, NULL, &none), 1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p[1], &set);
    CHECK_EQ(pselect(p[1] + 1, &set, NULL, NULL, &ts, &none), 0);
    CHECK_EQ(epoll_pwait(epoll_create1(0), &(struct epoll_event){0}, 1, 1, &none), 0);
    /* Odd ones. */
    CHECK_EQ(poll(NULL, 0, 1), 0);
    CHECK_EQ(select(0, NULL, NULL, NULL, &(struct timeval){0, 1000}), 0);
    f.fd = 9999;
    CHECK_EQ(poll(&f, 1, -1), 1);
    CHECK_EQ(f.revents, POLLNVAL);
    FD_ZERO(&set);
    FD_SET(1000, &set);
    /* the kernel's table is that large now: before, it would not have looked there */
    CHECK_EQ(dup2(p[0], 1000), 1000);
    CHECK_EQ(close(1000), 0);
    CHECK_FAILS(select(1001, &set, NULL, NULL, NULL), EBADF);
    CHECK_FAILS(epoll_wait(p[0], &(struct epoll_event){0}, 1, -1), EINVAL);
    ts.tv_nsec = -1;
    CHECK_FAILS(ppoll(&f, 1, &ts, NULL), EINVAL);
    return 0;
}
HOOK_MAIN(run)
