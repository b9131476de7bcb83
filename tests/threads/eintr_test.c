/* A handler ends the waits of its thread where POSIX says so, and a call with SA_RESTART goes on.
 * */
#include "threads_test.h"

#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

static int hits; /* atomic */
static pthread_t waiter;
static int pipes[2], sockets[2], epoll;
static int timed[2], listener;                            /* with timeouts of their own */
static struct sockaddr_un full = {.sun_family = AF_UNIX}; /* takes no more connections */
static sem_t sem;

static void on_signal(int signo) { __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST); }

static int ended(long r) { return r == -1 && errno == EINTR; }

static int by_read(void) {
    char c;
    return ended(read(pipes[0], &c, 1));
}
static int by_recv(void) {
    char c;
    return ended(recv(sockets[0], &c, 1, 0));
}
static int by_poll(void) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    return ended(poll(&p, 1, -1));
}
static int by_ppoll(void) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    sigset_t mask, all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* only during the call */
    sigemptyset(&mask);
    return ended(ppoll(&p, 1, NULL, &mask));
}
static int by_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    return ended(select(pipes[0] + 1, &set, NULL, NULL, NULL));
}
static int by_pselect(void) {
    fd_set set;
    sigset_t mask, all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&mask);
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    return ended(pselect(pipes[0] + 1, &set, NULL, NULL, NULL, &mask));
}
static int by_epoll_pwait(void) {
    struct epoll_event event;
    sigset_t mask, all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&mask);
    return ended(epoll_pwait(epoll, &event, 1, -1, &mask));
}
static int by_epoll(void) {
    struct epoll_event event;
    return ended(epoll_wait(epoll, &event, 1, -1));
}
static int by_nanosleep(void) {
    struct timespec ts = {100, 0}, rest = {0, 0};
    return ended(nanosleep(&ts, &rest)) && rest.tv_sec >= 90 && rest.tv_sec < 100;
}
static int by_clock(void) {
    struct timespec ts = {100, 0};
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL) == EINTR;
}
static int by_sleep(void) { return sleep(100) >= 90; }
static int by_usleep(void) { return ended(usleep(100000000)); }
static int by_sem(void) { return ended(sem_wait(&sem)); }
static int by_pause(void) { return ended(pause()); }
static int by_waitpid(void) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    int ok = ended(waitpid(child, NULL, 0));
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0) CHECK(errno == EINTR);
    return ok;
}

/* A socket that has a timeout, and a futex: the kernel does not restart them then. */
static int by_timed_read(void) {
    char c;
    return ended(read(timed[0], &c, 1));
}
static int by_timed_readv(void) {
    char c[2];
    struct iovec iov[2] = {{c, 1}, {c + 1, 1}};
    return ended(readv(timed[0], iov, 2));
}
static int by_timed_recv(void) {
    char c;
    return ended(recv(timed[0], &c, 1, 0));
}
static int by_timed_recvmsg(void) {
    char c;
    struct iovec iov = {&c, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return ended(recvmsg(timed[0], &msg, 0));
}
static void fill(int fd) {
    char some[4096] = {0};
    while (send(fd, some, sizeof some, MSG_DONTWAIT) > 0) {}
    while (send(fd, some, 1, MSG_DONTWAIT) > 0) {}
}
static int by_timed_write(void) {
    fill(timed[0]);
    return ended(write(timed[0], "x", 1));
}
static int by_timed_send(void) {
    fill(timed[0]);
    return ended(send(timed[0], "x", 1, 0));
}
static int by_timed_sendmsg(void) {
    struct iovec iov = {"x", 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    fill(timed[0]);
    return ended(sendmsg(timed[0], &msg, 0));
}
static int by_timed_accept(void) { return ended(accept(listener, NULL, NULL)); }
static void has_timeouts(int fd) {
    struct timeval tv = {.tv_sec = 100};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv) == 0);
}
static int by_timed_connect(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    has_timeouts(fd);
    int ok = ended(connect(fd, (struct sockaddr *)&full, sizeof full));
    close(fd);
    return ok;
}
static int by_timed_futex(void) {
    static int word;
    struct timespec ts = {100, 0};
    return ended(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0));
}
static void make_timed(void) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    int to = socket(AF_UNIX, SOCK_STREAM, 0), one = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, timed) == 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&any, sizeof any) == 0 && listen(listener, 1) == 0);
    has_timeouts(timed[0]);
    has_timeouts(listener);
    sprintf(full.sun_path + 1, "gort-eintr-%d", (int)getpid()); /* of no file */
    CHECK(bind(to, (struct sockaddr *)&full, sizeof full) == 0 && listen(to, 0) == 0);
    CHECK(connect(one, (struct sockaddr *)&full, sizeof full) == 0);
}

/* always: SA_RESTART or not */
static const struct Wait {
    const char *name;
    int (*fn)(void);
    bool always;
} waits[] = {
    {"read", by_read, false},
    {"recv", by_recv, false},
    {"waitpid", by_waitpid, false},
    {"poll", by_poll, true},
    {"ppoll", by_ppoll, true},
    {"select", by_select, true},
    {"epoll", by_epoll, true},
    {"nanosleep", by_nanosleep, true},
    {"clock", by_clock, true},
    {"sleep", by_sleep, true},
    {"usleep", by_usleep, true},
    {"pselect", by_pselect, true},
    {"epoll_pwait", by_epoll_pwait, true},
    {"pause", by_pause, true},
    {"read with a timeout", by_timed_read, true},
    {"readv with a timeout", by_timed_readv, true},
    {"recv with a timeout", by_timed_recv, true},
    {"recvmsg with a timeout", by_timed_recvmsg, true},
    {"write with a timeout", by_timed_write, true},
    {"send with a timeout", by_timed_send, true},
    {"sendmsg with a timeout", by_timed_sendmsg, true},
    {"accept with a timeout", by_timed_accept, true},
    {"connect with a timeout", by_timed_connect, true},
    {"futex with a timeout", by_timed_futex, true},
};
enum { WAITS = sizeof waits / sizeof waits[0] };

static int over; /* atomic */
static void *one(void *arg) {
    const struct Wait *w = arg;
    if (!w->fn()) fprintf(stderr, "%s: not EINTR\n", w->name), abort();
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void handle(int flags) {
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = flags};
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
}

/* It may not wait yet: again until it is over. */
static void interrupt(void) {
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        CHECK(pthread_kill(waiter, SIGUSR1) == 0);
        usleep(2000);
    }
}

static void *restarts(void *arg) {
    char c = 0;
    if ((intptr_t)arg == 2) CHECK(sem_wait(&sem) == 0);
    else CHECK((arg ? recv(sockets[0], &c, 1, 0) : read(pipes[0], &c, 1)) == 1 && c == 'x');
    return NULL;
}

/* Locks and conditions do not show it, but the handler runs meanwhile. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go;
static int computes; /* atomic */
static void *locks(void *arg) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    while (!go) CHECK(pthread_cond_wait(&cond, &mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    __atomic_store_n(&computes, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&computes, __ATOMIC_SEQ_CST)) {}
    return NULL;
}
static void handled_by_waiter(void) {
    int before = __atomic_load_n(&hits, __ATOMIC_SEQ_CST);
    CHECK(pthread_kill(waiter, SIGUSR1) == 0);
    wait_until(__atomic_load_n(&hits, __ATOMIC_SEQ_CST) > before);
}
static void while_locked(void) {
    pthread_mutex_lock(&mutex);
    CHECK(pthread_create(&waiter, NULL, locks, NULL) == 0);
    for (int round = 0; round < 2; round++) { /* in the mutex, then in the condition */
        usleep(10000);
        for (int i = 0; i < 20; i++) handled_by_waiter();
        if (round == 0) pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    go = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    wait_until(__atomic_load_n(&computes, __ATOMIC_SEQ_CST)); /* behind both waits */
    handled_by_waiter();
    __atomic_store_n(&computes, 0, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(waiter, NULL) == 0);
}

int main(void) {
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK((epoll = epoll_create1(0)) >= 0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) == 0);
    sem_init(&sem, 0, 0);
    make_timed();
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < WAITS; i++) {
            handle(waits[i].always && round % 2 ? SA_RESTART : 0);
            over = 0;
            CHECK(pthread_create(&waiter, NULL, one, (void *)&waits[i]) == 0);
            interrupt();
            CHECK(pthread_join(waiter, NULL) == 0);
        }
    static const struct Wait by_a_sem = {"sem_wait", by_sem, false};
    for (int round = 0; round < 6; round++) {
        handle(0);
        over = 0;
        CHECK(pthread_create(&waiter, NULL, one, (void *)&by_a_sem) == 0);
        interrupt();
        CHECK(pthread_join(waiter, NULL) == 0);
    }
    handle(SA_RESTART);
    for (intptr_t kind = 0; kind < 3; kind++) {
        int before = hits;
        CHECK(pthread_create(&waiter, NULL, restarts, (void *)kind) == 0);
        for (int i = 0; i < 20; i++) {
            CHECK(pthread_kill(waiter, SIGUSR1) == 0);
            usleep(1000);
        }
        if (kind == 2) sem_post(&sem);
        else CHECK(write(kind ? sockets[1] : pipes[1], "x", 1) == 1);
        CHECK(pthread_join(waiter, NULL) == 0 && hits > before);
    }
    while_locked();
    return 0;
}
