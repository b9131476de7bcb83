#define _GNU_SOURCE 1
/* What is refused for ever. Descriptors that are ready, as poll(2) has it, and give EAGAIN all the
 * same: by a thing in the error queue, which a kernel really does, or for ever, by injection. A
 * wait with a deadline ends, one that is closed ends, and nobody runs in circles meanwhile: what
 * the waits cost is far below the time they take. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#define WAIT (100 * GORT_MS)

static int64_t cpu(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return t.tv_sec * GORT_SEC + t.tv_nsec;
}

enum { READ, WRITE, ACCEPT };

static long call(int what, int fd, int64_t deadline) {
    char c = 'x';
    if (what == ACCEPT) return gort_accept_until(fd, NULL, NULL, deadline);
    return what == READ ? gort_read_until(fd, &c, 1, deadline)
                        : gort_write_until(fd, &c, 1, deadline);
}

static void waits_quietly(int what, int fd) {
    int64_t began = gort_now(), used = cpu();
    CHECK_EQ(call(what, fd, began + WAIT), -ETIMEDOUT);
    int64_t took = gort_now() - began;
    used = cpu() - used;
    CHECK_GE(took, WAIT);
    CHECKF(used < took / 2, "call %d: %lld us of CPU in %lld us", what, (long long)used / 1000,
           (long long)took / 1000);
}

/* A datagram to a port that nobody has, and IP_RECVERR: after the first error, EPOLLERR and nothing
 * to read. */
static void error_queue(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof to;
    int on = 1, dead = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(dead >= 0 && fd >= 0);
    CHECK_EQ(bind(dead, (void *)&to, sizeof to), 0);
    CHECK_EQ(getsockname(dead, (void *)&to, &len), 0);
    CHECK_EQ(gort_connect(fd, (void *)&to, sizeof to), 0);
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    gort_close(dead);
    CHECK_EQ(gort_write(fd, "x", 1), 1);
    CHECK_EQ(call(READ, fd, gort_now() + 100 * GORT_SEC), -ECONNREFUSED);
    waits_quietly(READ, fd);
    CHECK_EQ(gort_close(fd), 0);
}

static void for_ever(void) {
    int s[2], p[2], listener = gort_listen("127.0.0.1:0", 0), dialled;
    char where[64];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    waits_quietly(WRITE, s[0]);
    waits_quietly(WRITE, p[1]);
    CHECK_EQ(write(s[1], "x", 1), 1);
    CHECK_EQ(write(p[1], "x", 1), 1);
    waits_quietly(READ, s[0]);
    waits_quietly(READ, p[0]);
    close(s[1]); /* hung */
    waits_quietly(READ, s[0]);
    waits_quietly(WRITE, s[0]);
    CHECK_GE(listener, 0);
    CHECK_EQ(gort_local_addr(listener, where, sizeof where), 0);
    CHECK_GE(dialled = gort_dial(where, gort_now() + 100 * GORT_SEC), 0);
    waits_quietly(ACCEPT, listener);
    gort_close(s[0]), gort_close(p[0]), gort_close(p[1]), gort_close(listener), gort_close(dialled);
}

/* Closed by another one while it is told to try again and again. */
static void reader(void *arg) { CHECK_EQ(call(READ, *(int *)arg, GORT_FOREVER), -EBADF); }
static void closed(void) {
    int s[2];
    gort_wg wg = {0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    close(s[1]);
    CHECK_EQ(gort_wg_go(&wg, reader, s), 0);
    wait_parked(1);
    int fd = s[0];
    CHECK_EQ(gort_close(fd), 0);
    gort_wg_wait(&wg);
}

/* A thread sleeps in the poller until a timer that is far away; another one has a timer that is
 * not, and the write that would wake the sleeper is refused. */
static int sooner(int argc, char **argv) {
    gort_timer *far = gort_timer_new(3600 * GORT_SEC, (gort_fn *)abort, NULL);
    for (int i = 0; i < 10; i++) {
        int64_t end = gort_now() + 2 * GORT_MS;
        while (gort_now() < end) continue;
        gort_sleep(GORT_MS);
    }
    gort_timer_free(far);
    return 0;
}

static void *thread(void *scene) {
    ((void (*)(void))scene)();
    return NULL;
}
static long joins(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }
static void on_a_thread(void (*scene)(void)) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, thread, (void *)scene), 0);
    gort_blocking(joins, &t);
}

static int with_errors(int argc, char **argv) {
    error_queue();
    on_a_thread(error_queue);
    return 0;
}
static int with_faults(int argc, char **argv) {
    for_ever();
    closed();
    on_a_thread(for_ever);
    return 0;
}

int main(void) {
    CHECK_EQ(gort_main(with_errors, 0, NULL), 0);
    setenv("GORT_DEBUG",
           "sysfault=sendto:EAGAIN:1+,sysfault=recvfrom:EAGAIN:1+,sysfault=pwritev2:EAGAIN:1+,"
           "sysfault=preadv2:EAGAIN:1+,sysfault=accept4:ECONNABORTED:1+",
           1);
    CHECK_EQ(gort_main(with_faults, 0, NULL), 0);
    setenv("GORT_DEBUG", "sysfault=write:EIO:1+", 1);
    CHECK_EQ(gort_main(sooner, 0, NULL), 0);
    return 0;
}
