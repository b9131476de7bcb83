/*
 * The edges of the hook: descriptors that change while somebody waits on them, children of fork and
 * vfork, places where a goroutine cannot park, errno over calls that wait and succeed, threads that
 * are cancelled or gone.
 */
#include "hook.h"
#include <semaphore.h>

static int p[2], q[2], got, failed_with;

static void reader(void *arg) {
    char c;
    ssize_t r = read(p[0], &c, 1);
    set(&failed_with, r < 0 ? errno : 0);
    add(&got, 1);
}

static void start_reader(void) {
    set(&got, 0);
    set(&failed_with, -1);
    CHECK_EQ(gort_go(reader, NULL), 0);
    wait_for_waiting("IO wait", 1);
}

/* A child of vfork has descriptors of its own, and our memory: what it closes is not closed
 * here. */
static void vfork_closes(void) {
    int status;
    CHECK_EQ(pipe(p), 0);
    start_reader();
    pid_t child = vfork();
    if (child == 0) {
        close(p[0]);
        dup2(p[1], p[0]);
        _exit(close(p[0]) == 0 ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    for (int i = 0; i < 100; i++) gort_yield();
    CHECK_EQ(get(&got), 0);
    CHECK_EQ(write(p[1], "x", 1), 1);
    wait_until(get(&got) == 1);
    CHECK_EQ(get(&failed_with), 0);
    CHECK_EQ(close(p[0]) | close(p[1]), 0);
}

/* The number becomes another file under who waits: as if it were closed. The next one waits on the
 * new file. */
static void replaced(void) {
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(pipe(q), 0);
    start_reader();
    CHECK_EQ(dup2(q[0], p[0]), p[0]);
    wait_until(get(&got) == 1);
    CHECK_EQ(get(&failed_with), EBADF);
    start_reader();
    CHECK_EQ(write(q[1], "x", 1), 1);
    wait_until(get(&got) == 1);
    CHECK_EQ(get(&failed_with), 0);
    CHECK_EQ(close(p[0]) | close(p[1]) | close(q[0]) | close(q[1]), 0);
}

static void writer(void *arg) { CHECK_EQ(write(p[1], "x", 1), 1); }

/* One number twice, none at all, and one that is negative. */
static void poll_odd(void) {
    CHECK_EQ(pipe(p), 0);
    struct pollfd f[4] = {{.fd = p[0], .events = POLLIN},
                          {.fd = -1, .events = POLLIN, .revents = 7},
                          {.fd = p[0], .events = POLLIN},
                          {.fd = -p[0], .events = POLLOUT, .revents = 7}};
    CHECK_EQ(gort_go(writer, NULL), 0);
    CHECK_EQ(poll(f, 4, -1), 2);
    CHECK_EQ(f[0].revents, POLLIN);
    CHECK_EQ(f[1].revents, 0);
    CHECK_EQ(f[2].revents, POLLIN);
    CHECK_EQ(f[3].revents, 0);
    CHECK_EQ(poll(NULL, 0, 1), 0);
    CHECK_EQ(poll(f + 1, 1, 1), 0);
    CHECK_EQ(ppoll(f, 1, &(struct timespec){0, 0}, NULL), 1);
    CHECK_FAILS(ppoll(f, 1, &(struct timespec){0, -1}, NULL), EINVAL);
    CHECK_EQ(close(p[0]) | close(p[1]), 0);
}

/* ---- where a goroutine cannot park ---------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;
static int pair[2];

static void later(void *arg) {
    usleep(2000);
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(send(pair[1], "x", 1, 0), 1);
    CHECK_EQ(sem_post(&sem), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static long waits_here(void *arg) {
    char c;
    struct pollfd f = {.fd = pair[0], .events = POLLIN};
    CHECK_EQ(read(p[0], &c, 1), 1);
    CHECK_EQ(poll(&f, 1, -1), 1);
    CHECK_EQ(recv(pair[0], &c, 1, 0), 1);
    CHECK_EQ(sem_wait(&sem), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    add(&got, 1);
    return 0;
}

static void locked_later(void *arg) {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    add(&got, 1);
    later(NULL);
}

static void blocking(void) {
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    set(&got, 0);
    CHECK_EQ(gort_go(locked_later, NULL), 0);
    wait_until(get(&got) == 1);
    CHECK_EQ(gort_blocking(waits_here, NULL), 0);
    CHECK_EQ(get(&got), 2);
    CHECK_EQ(close(p[0]) | close(p[1]) | close(pair[0]) | close(pair[1]), 0);
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* The child has no runtime: every call is libc's, on the same objects. */
static int child_main(void) {
    char c;
    int e[2], fd;
    if (pipe(e) != 0 || write(e[1], "y", 1) != 1 || read(e[0], &c, 1) != 1 || c != 'y') return 1;
    if (write(p[1], "x", 1) != 1 || read(p[0], &c, 1) != 1) return 2;
    if (pthread_mutex_lock(&mutex) != 0 || pthread_mutex_unlock(&mutex) != 0) return 3;
    if ((fd = dup(e[0])) < 0 || close(fd) != 0 || close(e[0]) != 0 || usleep(10) != 0) return 4;
    if (close(p[0]) != 0 || read(p[0], &c, 1) != -1 || errno != EBADF) return 5;
    return 0;
}

static void forked(void) {
    int status;
    CHECK_EQ(pipe(p), 0);
    pid_t child = fork();
    if (child == 0) _exit(child_main());
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    start_reader();
    CHECK_EQ(write(p[1], "x", 1), 1);
    wait_until(get(&got) == 1);
    CHECK_EQ(get(&failed_with), 0);
    CHECK_EQ(close(p[0]) | close(p[1]), 0);
}

/* ---- errno ---------------------------------------------------------------------------------- */

#define KEEPS(call)            \
    do {                       \
        errno = 4711;          \
        CHECK((call) >= 0);    \
        CHECK_EQ(errno, 4711); \
    } while (0)

static void poster(void *arg) { CHECK_EQ(sem_post(&sem), 0); }

static void errno_stays(void) {
    char c;
    struct pollfd f;
    CHECK_EQ(pipe(p), 0);
    f = (struct pollfd){.fd = p[0], .events = POLLIN};
    KEEPS(usleep(50));
    CHECK_EQ(gort_go(writer, NULL), 0);
    KEEPS(poll(&f, 1, -1));
    KEEPS(read(p[0], &c, 1));
    CHECK_EQ(gort_go(writer, NULL), 0);
    KEEPS(read(p[0], &c, 1));
    KEEPS(write(p[1], &c, 1));
    CHECK_EQ(gort_go(poster, NULL), 0);
    KEEPS(sem_wait(&sem));
    KEEPS(pthread_mutex_lock(&mutex));
    KEEPS(pthread_mutex_unlock(&mutex));
    KEEPS(close(p[0]));
    KEEPS(close(p[1]));
}

/* ---- plain threads -------------------------------------------------------------------------- */

static void *sleeps(void *arg) {
    char c;
    add(&got, 1);
    CHECK_EQ(read(p[0], &c, 1), 0); /* never comes back */
    return NULL;
}

static void *ends(void *arg) { return arg; }

/* On a plain thread read is libc's, a cancellation point. */
static void cancelled(void) {
    pthread_t t;
    void *value = NULL;
    CHECK_EQ(pipe(p), 0);
    set(&got, 0);
    CHECK_EQ(pthread_create(&t, NULL, sleeps, NULL), 0);
    wait_until(get(&got) == 1);
    CHECK_EQ(pthread_cancel(t), 0);
    CHECK_EQ(pthread_join(t, &value), 0);
    CHECK(value == PTHREAD_CANCELED);
    CHECK_EQ(pthread_create(&t, NULL, ends, &got), 0);
    usleep(1000); /* most often it is gone by now */
    CHECK_EQ(pthread_join(t, &value), 0);
    CHECK(value == &got);
    CHECK_EQ(close(p[0]) | close(p[1]), 0);
}

static int run(int argc, char **argv) {
    CHECK_EQ(sem_init(&sem, 0, 0), 0);
    for (int i = 0; i < 3; i++) {
        vfork_closes();
        replaced();
        poll_odd();
        blocking();
        forked();
        errno_stays();
        cancelled();
    }
    return 0;
}

HOOK_MAIN(run)
