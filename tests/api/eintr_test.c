/*
 * The preemption signal that lands in a sleeping system call: the program never sees EINTR, and the
 * call is made again with all its arguments (on some processors the kernel has overwritten the
 * first). A plain thread sends the runtime's own signal to the goroutine's thread each time it is
 * asleep, then lets the call end by giving it what it waits for.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 30

static int pipes[2];
static int sleeper; /* atomic: the thread in the call, 0: none */
static int sent;
static int queue;
static int timed[2]; /* sockets; the first has a timeout, with which SA_RESTART does nothing */
static struct {
    long type;
    char text[1];
} letter = {1, {'x'}};

static char state_of(int tid) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (f == NULL) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    char *paren = strrchr(text, ')');
    return paren && paren[1] ? paren[2] : 0;
}

static void *pesters(void *unused) {
    (void)unused;
    for (sent = 0; sent < SIGNALS; sent++) {
        wait_until(get(&sleeper) == 0 || state_of(get(&sleeper)) == 'S');
        if (get(&sleeper) == 0) break; /* a call with a timeout of its own */
        syscall(SYS_tgkill, getpid(), get(&sleeper), SIGURG);
    }
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    if (queue > 0) CHECK_EQ(msgsnd(queue, &letter, 1, 0), 0);
    if (timed[1] > 0) CHECK_EQ(write(timed[1], "x", 1), 1);
    return NULL;
}

static void polls(void) {
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(p.revents, POLLIN);
}

static void ppolls(void) {
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    struct timespec long_time = {1000, 0};
    CHECK_EQ(ppoll(&p, 1, &long_time, NULL), 1);
    CHECK_EQ(p.revents, POLLIN);
}

static void selects(void) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(pipes[0], &in);
    CHECK_EQ(select(pipes[0] + 1, &in, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(pipes[0], &in));
}

static void epolls(void) {
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = pipes[0]};
    CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e), 0);
    CHECK_EQ(epoll_wait(ep, &e, 1, -1), 1);
    CHECK_EQ(e.data.fd, pipes[0]);
    close(ep);
}

/* With a mask: other code in libc. */
static void pselects(void) {
    struct timespec long_time = {1000, 0};
    sigset_t none;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(pipes[0], &in);
    sigemptyset(&none);
    CHECK_EQ(pselect(pipes[0] + 1, &in, NULL, NULL, &long_time, &none), 1);
    CHECK(FD_ISSET(pipes[0], &in));
}

static void epolls_masked(void) {
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = pipes[0]};
    sigset_t none;
    sigemptyset(&none);
    CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e), 0);
    CHECK_EQ(epoll_pwait(ep, &e, 1, -1, &none), 1);
    CHECK_EQ(e.data.fd, pipes[0]);
    close(ep);
}

static void reads_timed(void) {
    char c = 0;
    CHECK_EQ(read(timed[0], &c, 1), 1);
    CHECK_EQ(c, 'x');
}

static void reads_timed_stream(void) {
    FILE *f = fdopen(dup(timed[0]), "r");
    CHECK_EQ(fgetc(f), 'x');
    fclose(f);
}

static void receives_timed(void) {
    char c = 0;
    CHECK_EQ(recv(timed[0], &c, 1, 0), 1);
    CHECK_EQ(c, 'x');
}

static void receives(void) { CHECK_EQ(msgrcv(queue, &letter, 1, 0, 0), 1); }

static void sleeps(void) {
    struct timespec ts = {0, 30000000};
    CHECK_EQ(nanosleep(&ts, NULL), 0);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), 0);
    CHECK_EQ(usleep(30000), 0);
}

static void pestered(void (*call)(void)) {
    pthread_t t;
    char c;
    set(&sleeper, (int)syscall(SYS_gettid));
    CHECK_EQ(pthread_create(&t, NULL, pesters, NULL), 0);
    call();
    set(&sleeper, 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(read(pipes[0], &c, 1), 1);
}

static int body(int argc, char **argv) {
    (void)argc, (void)argv;
#ifdef __SANITIZE_THREAD__
    SKIP("TSan holds signals back until the next call");
#endif
    CHECK_EQ(pipe(pipes), 0);
    pestered(polls);
    CHECK_EQ(sent, SIGNALS);
    pestered(ppolls);
    CHECK_EQ(sent, SIGNALS);
    pestered(selects);
    CHECK_EQ(sent, SIGNALS);
    pestered(epolls);
    CHECK_EQ(sent, SIGNALS);
    pestered(pselects);
    CHECK_EQ(sent, SIGNALS);
    pestered(epolls_masked);
    CHECK_EQ(sent, SIGNALS);
    pestered(sleeps);
    struct timeval long_time = {.tv_sec = 1000};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, timed), 0);
    CHECK_EQ(setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time), 0);
    pestered(reads_timed);
    CHECK_EQ(sent, SIGNALS);
    pestered(reads_timed_stream);
    CHECK_EQ(sent, SIGNALS);
    pestered(receives_timed);
    CHECK_EQ(sent, SIGNALS);
    timed[1] = 0;
    queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0) return 0; /* a kernel without them */
    if (queue == 0) queue = msgget(IPC_PRIVATE, 0600);
    pestered(receives);
    msgctl(queue, IPC_RMID, NULL);
    CHECK_EQ(sent, SIGNALS);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
