/*
 * Under a context in use the hook's calls that wait end with its error: one that was done before,
 * one that is cancelled meanwhile, one with a deadline; those too that need their thread for a
 * signal mask, and waits for children. What has come is given all the same, and the end of a call's
 * own timeout is no error.
 */
#include "hook.h"
#include <sys/epoll.h>
#include <sys/select.h>

enum {
    READ,
    RECV,
    ACCEPT,
    POLL,
    PPOLL,
    PPOLL_MASK,
    SELECT,
    PSELECT,
    PSELECT_MASK,
    EPOLL_WAIT,
    EPOLL_PWAIT,
    EPOLL_PWAIT_MASK,
    WAITPID,
    WAITPID_ANY,
    WAITPID_STOP,
    CALLS
};

static int pipe_ends[2], pair[2], listener, epoll_fd, door[2];
static pid_t child;
static sigset_t mask;
static fd_set set;

/* ms: how long it waits by itself; -1: for ever. */
static long waits(int call, int ms) {
    char c;
    struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};
    struct epoll_event ev;
    struct timespec ts = {.tv_nsec = ms * GORT_MS}, *at = ms < 0 ? NULL : &ts;
    struct timeval tv = {.tv_usec = ms * 1000};
    FD_ZERO(&set);
    FD_SET(pipe_ends[0], &set);
    switch (call) {
    case READ: return read(pipe_ends[0], &c, 1);
    case RECV: return recv(pair[0], &c, 1, 0);
    case ACCEPT: return accept(listener, NULL, NULL);
    case POLL: return poll(&p, 1, ms);
    case PPOLL: return ppoll(&p, 1, at, NULL);
    case PPOLL_MASK: return ppoll(&p, 1, at, &mask);
    case SELECT: return select(pipe_ends[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &tv);
    case PSELECT: return pselect(pipe_ends[0] + 1, &set, NULL, NULL, at, NULL);
    case PSELECT_MASK: return pselect(pipe_ends[0] + 1, &set, NULL, NULL, at, &mask);
    case EPOLL_WAIT: return epoll_wait(epoll_fd, &ev, 1, ms);
    case EPOLL_PWAIT: return epoll_pwait(epoll_fd, &ev, 1, ms, NULL);
    case EPOLL_PWAIT_MASK: return epoll_pwait(epoll_fd, &ev, 1, ms, &mask);
    case WAITPID: return waitpid(child, NULL, 0);
    case WAITPID_ANY: return waitpid(-1, NULL, 0);
    default: return waitpid(child, NULL, WUNTRACED);
    }
}

static void cancels(void *ctx) {
    gort_sleep(5 * GORT_MS); /* mostly while the call waits */
    gort_ctx_cancel(ctx);
}

enum { BEFORE, MEANWHILE, IN_TIME, HOWS };
static void ends(int call, int how) {
    gort_wg wg = {0};
    gort_ctx *ctx = how == IN_TIME ? gort_ctx_with_timeout(NULL, 5 * GORT_MS) : gort_ctx_new(NULL);
    int error = how == IN_TIME ? ETIMEDOUT : ECANCELED;
    gort_ctx_use(ctx);
    if (how == BEFORE) gort_ctx_cancel(ctx);
    if (how == MEANWHILE) gort_wg_go(&wg, cancels, ctx);
    for (int again = 0; again < 2; again++) {
        errno = 0;
        long r = waits(call, -1);
        CHECKF(r == -1 && errno == error, "call %d, how %d: %ld, errno %d", call, how, r, errno);
    }
    if (call == SELECT || call == PSELECT || call == PSELECT_MASK)
        CHECK(FD_ISSET(pipe_ends[0], &set));
    gort_ctx_use(NULL);
    gort_wg_wait(&wg);
    gort_ctx_release(ctx);
}

/* A context that is not done changes nothing. */
static void own_timeouts(void) {
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_ctx_use(ctx);
    for (int call = POLL; call <= EPOLL_PWAIT_MASK; call++) {
        int64_t from = gort_now();
        CHECK_EQ(waits(call, 25), 0);
        CHECK_GE(gort_now() - from, 24 * GORT_MS);
        CHECK_EQ(waits(call, 0), 0);
        if (call == SELECT || call == PSELECT || call == PSELECT_MASK)
            CHECK(!FD_ISSET(pipe_ends[0], &set));
    }
    gort_ctx_use(NULL);
    gort_ctx_release(ctx);
}

static void comes_all_the_same(void) {
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_ctx_use(ctx);
    gort_ctx_cancel(ctx);
    CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
    for (int call = POLL; call <= EPOLL_PWAIT_MASK; call++) CHECK_EQ(waits(call, -1), 1);
    CHECK_EQ(waits(READ, 0), 1);
    CHECK_EQ(write(door[1], "x", 1), 1);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(waits(WAITPID, 0), child);
    gort_ctx_use(NULL);
    gort_ctx_release(ctx);
}

static int run(int argc, char **argv) {
    struct epoll_event ev = {.events = EPOLLIN};
    sigemptyset(&mask);
    CHECK(pipe(pipe_ends) == 0 && pipe(door) == 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_GE(listener = socket(AF_INET, SOCK_STREAM, 0), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_GE(epoll_fd = epoll_create1(0), 0);
    CHECK_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_ends[0], &ev), 0);
    child = fork();
    if (child == 0) {
        char c;
        _exit(read(door[0], &c, 1) != 1);
    }
    for (int call = 0; call < CALLS; call++)
        for (int how = 0; how < HOWS; how++) ends(call, how);
    own_timeouts();
    comes_all_the_same();
    return 0;
}
HOOK_MAIN(run)
