/*
 * Every hooked function that POSIX lets a signal handler call, called from one that interrupts
 * goroutines and plain threads at any point of the same calls, of the hook's queues and of the
 * runtime; on the alternate stack and on the interrupted one; and the wake-up of a futex. Everybody
 * goes on, and no permit of a semaphore and no wake-up is lost. Nor does a handler come into
 * malloc, whose locks its own thread may hold: not on a thread that gort sees for the first time
 * there, and not in a program with so many keys that libc allocates a thread's values.
 */
#include "hook.h"
#include <dirent.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/select.h>
#include <time.h>

static sem_t ball[2], posts, from_threads;
static int stop, rounds, plain_rounds, fresh_threads, epoll_fd, runs, posted, taken, zero, null,
    pipes[2], pair[2], listener;
static struct sockaddr_in at;
static int word, seen_word;

static struct timespec us50 = {0, 50000};
static char c;
static struct iovec iov = {&c, 1};
static struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
static fd_set *set_of(fd_set *s, int fd) {
    FD_ZERO(s);
    FD_SET(fd, s);
    return s;
}

/* ---- malloc, which tells --------------------------------------------------------------------- */

static __thread int in_handler;
static const char *allocates; /* the call in whose handler it was */
static const char *now_called(void);
static void tell(void) {
    if (in_handler) __atomic_store_n(&allocates, now_called(), __ATOMIC_RELAXED);
}
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t n);
void __libc_free(void *at);
void *malloc(size_t n) { return tell(), __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return tell(), __libc_calloc(n, size); }
void *realloc(void *at, size_t n) { return tell(), __libc_realloc(at, n); }
void free(void *at) { tell(), __libc_free(at); }

/* ---- the calls ------------------------------------------------------------------------------- */

pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */
static void await(pid_t pid) {
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}
static void end_child(pid_t pid) {
    if (pid == 0) _exit(sem_post(&posts)); /* of a copy */
    await(pid);
}

static void shut(int fd) {
    if (fd >= 0) close(fd);
}
static int own_number(void) { return 300 + (int)syscall(SYS_gettid) % 500; }
static bool rarely(void) { return (get(&runs) & 15) == 0; }
static char *no_args[] = {(char *)"true", NULL};
static void two(int r, int fds[2]) {
    if (r == 0) close(fds[0]), close(fds[1]);
}

/* clang-format off */
#define CALLS(X) \
    X(syscall, int s = get(&seen_word); if (__sync_bool_compare_and_swap(&word, s, s + 1)) \
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1)) \
    X(sem_post, add(&posted, 1); sem_post(&posts)) X(read, (void)!read(zero, &c, 1)) \
    X(write, (void)!write(null, &c, 1)) X(close, close(-1)) \
    X(open, shut(open("/dev/null", O_RDONLY))) X(dup, shut(dup(zero))) X(dup2, dup2(zero, zero)) \
    X(fcntl, fcntl(zero, F_GETFL)) X(fsync, fsync(null)) X(fdatasync, fdatasync(null)) \
    X(pipe, int fds[2]; two(pipe(fds), fds)) \
    X(socketpair, int fds[2]; two(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), fds)) \
    X(socket, shut(socket(AF_UNIX, SOCK_STREAM, 0))) X(accept, accept(listener, NULL, NULL)) \
    X(connect, int fd = socket(AF_INET, SOCK_DGRAM, 0); connect(fd, (void *)&at, sizeof at); \
        shut(fd)) X(poll, struct pollfd p = {.fd = pipes[0], .events = POLLIN}; poll(&p, 1, 1)) \
    X(select, fd_set s; struct timeval tv = {0, 50}; select(pipes[0] + 1, set_of(&s, pipes[0]), \
        NULL, NULL, &tv)) \
    X(pselect, fd_set s; pselect(pipes[0] + 1, set_of(&s, pipes[0]), NULL, NULL, &us50, NULL)) \
    X(recv, recv(pair[0], &c, 1, MSG_DONTWAIT)) \
    X(recvfrom, recvfrom(pair[0], &c, 1, MSG_DONTWAIT, NULL, NULL)) \
    X(recvmsg, recvmsg(pair[0], &msg, MSG_DONTWAIT)) X(send, send(pair[1], &c, 1, MSG_DONTWAIT)) \
    X(sendto, sendto(pair[1], &c, 1, MSG_DONTWAIT, NULL, 0)) \
    X(sendmsg, sendmsg(pair[1], &msg, MSG_DONTWAIT)) X(sleep, sleep(0)) \
    X(nanosleep, nanosleep(&us50, NULL)) X(waitpid, waitpid(-1, NULL, WNOHANG)) \
    X(accept4, accept4(listener, NULL, NULL, 0)) X(dup3, shut(dup3(zero, own_number(), 0))) \
    X(pipe2, int fds[2]; two(pipe2(fds, O_NONBLOCK), fds)) X(eventfd, shut(eventfd(0, 0))) \
    X(ppoll, struct pollfd p = {.fd = pipes[0], .events = POLLIN}; ppoll(&p, 1, &us50, NULL)) \
    X(readv, (void)!readv(zero, &iov, 1)) X(writev, (void)!writev(null, &iov, 1)) \
    X(epoll_wait, struct epoll_event e; epoll_wait(epoll_fd, &e, 1, 0)) X(usleep, usleep(20)) \
    X(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &us50, NULL)) \
    X(_Fork, if (_Fork && rarely()) end_child(_Fork())) \
    X(vfork, if (rarely()) { pid_t pid = vfork(); if (pid == 0) _exit(0); await(pid); }) \
    X(posix_spawn, if (rarely()) { pid_t pid; if (posix_spawn(&pid, "/bin/true", NULL, NULL, \
        no_args, NULL) == 0) await(pid); })
/* clang-format on */

#define FUNCTION(name, ...) \
    static void call_##name(void) { __VA_ARGS__; }
CALLS(FUNCTION)
#define ENTRY(name, ...) {#name, call_##name},
static const struct {
    const char *name;
    void (*fn)(void);
} calls[] = {CALLS(ENTRY)};
static int now; /* index */
static const char *now_called(void) { return calls[get(&now)].name; }
static __thread int handled;

static void handler(int signo) {
    int err = errno;
    in_handler++;
    calls[get(&now)].fn();
    in_handler--;
    handled++;
    add(&runs, 1);
    errno = err;
}

/* ---- those who are interrupted -------------------------------------------------------------- */

static void player(void *arg) { /* in the hook's queue, of one bucket with the rest */
    int me = (int)(intptr_t)arg;
    while (!get(&stop)) {
        CHECK_EQ(sem_wait(&ball[me]), 0);
        add(&rounds, 1);
        CHECK_EQ(sem_post(&ball[!me]), 0);
        calls[get(&now)].fn(); /* the same call, outside of a handler */
    }
    sem_post(&ball[!me]);
}
static void taker(void *arg) {
    for (;;) {
        CHECK_EQ(sem_wait(&posts), 0);
        if (get(&stop)) break;
        add(&taken, 1);
    }
}
/* each value has one waker, and nobody looks: a wake-up that is lost is lost */
static void sleeper(void *arg) {
    for (uint32_t seen = 0; !get(&stop); set(&seen_word, (int)seen)) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL);
        seen = (uint32_t)get(&word);
    }
}
static void yielder(void *arg) {
    while (!get(&stop)) gort_yield();
}
static void *plain(void *arg) { /* wakes a goroutine by every post */
    while (!get(&stop)) {
        sem_post(&from_threads);
        calls[get(&now)].fn();
        add(&plain_rounds, 1);
    }
    return NULL;
}
/* Its first call of gort, if any, is in a handler. */
static void *fresh(void *arg) {
    for (int i = 0; handled == 0 && !get(&stop); i++) free(malloc((size_t)(i % 4096)));
    add(&fresh_threads, 1);
    return NULL;
}
static void *fresh_ones(void *arg) {
    while (!get(&stop)) {
        pthread_t t;
        if (pthread_create(&t, NULL, fresh, NULL) == 0) pthread_join(t, NULL);
    }
    return NULL;
}
static void served(void *arg) {
    while (!get(&stop)) CHECK_EQ(sem_wait(&from_threads), 0);
}

/* ---- the one who interrupts ----------------------------------------------------------------- */

/* A thread that finds the next signal due whenever a handler returns never comes to anything else,
 * and some handlers wait for a millisecond. So now and then there is a pause in which the last two
 * of each thread end. */
static void *sender(void *arg) {
    struct timespec pause = {0, 5000000};
    int self = (int)syscall(SYS_gettid);
    for (int turn = 1; !get(&stop); turn++) {
        if (turn % 16 == 0) nanosleep(&pause, NULL);
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
            int tid = atoi(e->d_name);
            if (tid != 0 && tid != self) syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
        }
        if (d) closedir(d);
        sched_yield();
    }
    return NULL;
}

static int run(int argc, char **argv) {
    const char *more = getenv("HANDLER_RUNS");
    int each = more ? atoi(more) : 200;
    pthread_t threads[4];
    sem_init(&ball[0], 0, 1);
    sem_init(&ball[1], 0, 0);
    sem_init(&posts, 0, 0);
    sem_init(&from_threads, 0, 0);
    CHECK_GE(zero = open("/dev/zero", O_RDONLY), 0);
    CHECK_GE(null = open("/dev/null", O_WRONLY), 0);
    CHECK_EQ(pipe(pipes), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_GE(listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), 0);
    at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(listener, (void *)&at, sizeof at), 0);
    CHECK_EQ(listen(listener, 8), 0);
    at.sin_port = htons(9);
    CHECK_GE(epoll_fd = epoll_create1(0), 0);
    for (intptr_t i = 0; i < 2; i++) gort_go(player, (void *)i);
    for (int i = 0; i < 2; i++) gort_go(taker, NULL);
    gort_go(sleeper, NULL);
    gort_go(yielder, NULL);
    gort_go(served, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, plain, NULL), 0);
    CHECK_EQ(pthread_create(&threads[2], NULL, sender, NULL), 0);
    CHECK_EQ(pthread_create(&threads[3], NULL, fresh_ones, NULL), 0);
    for (int stack = 0; stack < 2; stack++) {
        struct sigaction sa = {.sa_handler = handler,
                               .sa_flags = SA_RESTART | (stack ? SA_ONSTACK : 0)};
        CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            int before = get(&runs), round = get(&rounds), others = get(&plain_rounds),
                first = get(&fresh_threads);
            set(&now, (int)i);
            wait_until(get(&runs) - before >= each && get(&rounds) > round &&
                       get(&plain_rounds) > others && get(&fresh_threads) > first + 1);
            if (__atomic_load_n(&allocates, __ATOMIC_RELAXED))
                printf("%s allocates in a handler\n", allocates), exit(1);
        }
    }
    set(&now, 2);
    wait_until(get(&taken) == get(&posted));
    wait_until(get(&seen_word) == get(&word));
    set(&stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) sem_post(&posts), sem_post(&from_threads);
    add(&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    wait_until(gort_count() == 1);
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    pthread_key_t key;
    check_hooked();
    for (int i = 0; i < 40; i++) CHECK_EQ(pthread_key_create(&key, NULL), 0);
    sigaction(SIGUSR1, &ignored, NULL);
    return gort_main(run, argc, argv);
}
