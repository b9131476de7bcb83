/*
 * What the hook costs on a call that does not block: each call by libc's own function and by the
 * interposed one, in turns, on a goroutine and on a plain thread. Nanoseconds, of many short runs
 * the one at a tenth of their order: the least disturbed ones, without the luckiest. That is done
 * PASSES times over, with the rows in another order each time, and the medians count: the kernel's
 * branches are predicted by what went before, and by where the program lies in memory, which
 * favours one side by ten nanoseconds and more, for a pass or for a whole process. So what is too
 * much is so only in three processes out of three. The row "getppid" shows what is left of that,
 * and "bad number" shows a call's own cost, since the kernel refuses it at once. A row may hold
 * several calls; the figures are for one.
 *
 *   make bench-hook              fails where a call on a goroutine costs more than MOST
 *   build/bench/hook_cost pipe   the rows with that in their name
 *
 * Linked with libgort-hook; libc's own functions are asked of libc by name. The process has several
 * threads, as every program with goroutines: libc takes longer then (cancellation) for calls
 * that may wait.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <fcntl.h>
#include <gort.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
#define CALLS(X) \
    X(read) X(write) X(readv) X(writev) X(recv) X(send) X(recvfrom) X(sendto) X(recvmsg) \
    X(sendmsg) X(accept) X(connect) X(poll) X(select) X(epoll_wait) X(close) X(dup) X(fcntl) \
    X(socket) X(socketpair) X(eventfd) X(ppoll) X(dup2) X(pipe) X(open) X(flock) X(waitpid) \
    X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_unlock) \
    X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock) X(pthread_rwlock_unlock) X(pthread_once) \
    X(pthread_cond_signal) X(pthread_cond_broadcast) X(sem_wait) X(sem_post)
/* clang-format on */

typedef struct Calls {
#define FIELD(name) __typeof__(&name) name;
    CALLS(FIELD)
} Calls;
static Calls own, hooked;

static int pipes[2], pair[2], event, file, zero, null, epoll, listener[2]; /* unix, TCP */
static struct sockaddr_storage address[2];
static socklen_t address_len[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER,
                       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;
static char buf[64], page[4096], all_of_it[65536];
static uint64_t one = 1;

static void nothing(void) {}
static void close_all(int fd) { own.close(fd); }
static int bare_dup(int fd) { return own.dup(fd); }

/* A whole one: it is accepted, and closed without a trace. */
static void connection(Calls *c, int which) {
    struct linger none_left = {.l_onoff = 1};
    int s = c->socket(address[which].ss_family, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_LINGER, &none_left, sizeof none_left);
    c->connect(s, (void *)&address[which], address_len[which]);
    int conn = c->accept(listener[which], NULL, NULL);
    c->close(s);
    c->close(conn);
}

/* A row is what is done in one round; a second call that makes the first possible is part of it. */
/* clang-format off */
#define ROWS(X) \
    X("pipe: write, read", 2, c->write(pipes[1], buf, 1); c->read(pipes[0], buf, 1)) \
    X("pipe: writev, readv", 2, struct iovec v = {buf, 1}; c->writev(pipes[1], &v, 1); \
        c->readv(pipes[0], &v, 1)) \
    X("socket: write, read", 2, c->write(pair[1], buf, 1); c->read(pair[0], buf, 1)) \
    X("socket: send, recv", 2, c->send(pair[1], buf, 1, 0); c->recv(pair[0], buf, 1, 0)) \
    X("socket: sendto, recvfrom", 2, c->sendto(pair[1], buf, 1, 0, NULL, 0); \
        c->recvfrom(pair[0], buf, 1, 0, NULL, NULL)) \
    X("socket: sendmsg, recvmsg", 2, struct iovec v = {buf, 1}; struct msghdr h = {.msg_iov = \
        &v, .msg_iovlen = 1}; c->sendmsg(pair[1], &h, 0); c->recvmsg(pair[0], &h, 0)) \
    X("eventfd: write, read", 2, c->write(event, &one, 8); c->read(event, buf, 8)) \
    X("file: write", 1, c->write(file, buf, 8); lseek(file, 0, SEEK_SET)) \
    X("file: read", 1, c->read(file, buf, 8); lseek(file, 0, SEEK_SET)) \
    X("/dev/zero: read", 1, c->read(zero, buf, 8)) \
    X("poll, ready", 1, struct pollfd p = {.fd = event, .events = POLLOUT}; c->poll(&p, 1, -1)) \
    X("poll, timeout 0", 1, struct pollfd p = {.fd = event, .events = POLLIN}; c->poll(&p, 1, 0)) \
    X("ppoll, timeout 0", 1, struct timespec none = {0, 0}; struct pollfd p = {.fd = event, \
        .events = POLLIN}; c->ppoll(&p, 1, &none, NULL)) \
    X("select, ready", 1, fd_set w; FD_ZERO(&w); FD_SET(event, &w); c->select(event + 1, NULL, \
        &w, NULL, NULL)) \
    X("epoll_wait, ready", 1, struct epoll_event e; c->epoll_wait(epoll, &e, 1, -1)) \
    X("bad number: connect, accept", 2, c->connect(900, (void *)&address[0], address_len[0]); \
        c->accept(900, NULL, NULL)) X("bad number: close", 1, c->close(900)) \
    X("bad number: dup", 1, c->dup(900)) X("bad path: open", 1, c->open("", O_RDONLY)) \
    X("socket, close", 2, c->close(c->socket(AF_UNIX, SOCK_STREAM, 0))) \
    X("unix: a connection", 5, connection(c, 0)) X("TCP: a connection", 5, connection(c, 1)) \
    X("UDP: socket, connect, close", 3, int s = c->socket(AF_INET, SOCK_DGRAM, 0); c->connect(s, \
        (void *)&address[1], address_len[1]); c->close(s)) \
    X("getppid, no hook", 1, (void)c; getppid()) X("fcntl F_GETFL", 1, c->fcntl(event, F_GETFL)) \
    X("dup", 1, close_all(c->dup(event))) X("close", 1, c->close(bare_dup(event))) \
    X("open, close", 2, c->close(c->open("/dev/null", O_RDONLY))) \
    X("open, read, close", 3, int f = c->open("/proc/self/exe", O_RDONLY); c->read(f, buf, 8); \
        c->close(f)) \
    X("pipe, write, read, close", 5, int p[2]; c->pipe(p); c->write(p[1], buf, 1); c->read(p[0], \
        buf, 1); c->close(p[0]); c->close(p[1])) \
    X("pipe, 10 x (write, read), close", 23, int p[2]; c->pipe(p); for (int n = 0; n < 10; n++) \
        { c->write(p[1], buf, 1); c->read(p[0], buf, 1); } c->close(p[0]); c->close(p[1])) \
    X("pipe: 16 x write, read of a page", 32, for (int n = 0; n < 16; n++) c->write(pipes[1], \
        page, sizeof page); for (int n = 0; n < 16; n++) c->read(pipes[0], page, sizeof page)) \
    X("pipe: write, read of 64 KB", 2, c->write(pipes[1], all_of_it, sizeof all_of_it); \
        c->read(pipes[0], all_of_it, sizeof all_of_it)) \
    X("eventfd, write, read, close", 4, int e = c->eventfd(0, 0); c->write(e, &one, 8); \
        c->read(e, buf, 8); c->close(e)) \
    X("socketpair, send, recv, close", 5, int p[2]; c->socketpair(AF_UNIX, SOCK_STREAM, 0, p); \
        c->send(p[1], buf, 1, 0); c->recv(p[0], buf, 1, 0); c->close(p[0]); c->close(p[1])) \
    X("dup2", 1, c->dup2(event, 200)) \
    X("recv MSG_DONTWAIT, nothing", 1, c->recv(pair[0], buf, 1, MSG_DONTWAIT)) \
    X("/dev/null: write", 1, c->write(null, buf, 8)) \
    X("flock, unlock", 2, c->flock(file, LOCK_EX); c->flock(file, LOCK_UN)) \
    X("waitpid, no child", 1, c->waitpid(-1, NULL, 0)) \
    X("mutex: lock, unlock", 2, c->pthread_mutex_lock(&mutex); c->pthread_mutex_unlock(&mutex)) \
    X("mutex: trylock, unlock", 2, c->pthread_mutex_trylock(&mutex); \
        c->pthread_mutex_unlock(&mutex)) \
    X("recursive: lock, unlock", 2, c->pthread_mutex_lock(&recursive); \
        c->pthread_mutex_unlock(&recursive)) \
    X("rwlock: rdlock, unlock", 2, c->pthread_rwlock_rdlock(&rwlock); \
        c->pthread_rwlock_unlock(&rwlock)) \
    X("rwlock: wrlock, unlock", 2, c->pthread_rwlock_wrlock(&rwlock); \
        c->pthread_rwlock_unlock(&rwlock)) X("cond: signal", 1, c->pthread_cond_signal(&cond)) \
    X("cond: broadcast", 1, c->pthread_cond_broadcast(&cond)) \
    X("once, done", 1, c->pthread_once(&once, nothing)) \
    X("sem: post, wait", 2, c->sem_post(&sem); c->sem_wait(&sem))
/* clang-format on */

enum { BATCH = 20, ROUNDS = 250, PASSES = 15 };
#define MOST 5.0

static int order(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}
static int order_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double tenth(int64_t *times) {
    qsort(times, ROUNDS, sizeof *times, order);
    return (double)times[ROUNDS / 10];
}

#define ROUND(c_, ...)                                   \
    ({                                                   \
        Calls *c = (c_);                                 \
        int64_t from = gort_now();                       \
        for (int i = 0; i < BATCH; i++) { __VA_ARGS__; } \
        gort_now() - from;                               \
    })

static double took[2][64][3][PASSES]; /* where, row, libc or hook or what the hook takes more */
static const char *names[64];

static void note(int where, int row, int pass, const char *name, double libc, double hook) {
    names[row] = name;
    took[where][row][0][pass] = libc;
    took[where][row][1][pass] = hook;
    took[where][row][2][pass] = hook - libc;
}

static void measure_row(int where, int pass, int want) {
    int row = 0;
#define MEASURE(name, calls, ...)                                                          \
    if (row++ == want) {                                                                   \
        static int64_t a[ROUNDS], b[ROUNDS];                                               \
        for (int k = 0; k < ROUNDS; k++) {                                                 \
            for (int turn = k & 1, both = 0; both < 2;                                     \
                 both++, turn ^= 1) /* each is first in turn */                            \
                if (turn) a[k] = ROUND(&own, __VA_ARGS__);                                 \
                else b[k] = ROUND(&hooked, __VA_ARGS__);                                   \
            if (where == 0 && k % 50 == 0) gort_yield();                                   \
        }                                                                                  \
        note(where, want, pass, name, tenth(a) / BATCH / calls, tenth(b) / BATCH / calls); \
    }
    ROWS(MEASURE)
}

#define NAME(name, calls, ...) name,
static const char *const all[] = {ROWS(NAME)};
enum { ALL = sizeof all / sizeof *all };
_Static_assert(ALL <= 64, "");

static bool chosen[ALL];

/* In another order each time: what the processor has learned from the row before is part of a row's
 * figures. */
static void measure(int where) {
    static uint32_t seed = 1;
    for (int pass = 0; pass < PASSES; pass++) {
        int order_of[ALL];
        for (int i = 0; i < ALL; i++) {
            seed = seed * 1664525 + 1013904223;
            int at = (int)((seed >> 8) % (unsigned)(i + 1));
            order_of[i] = order_of[at];
            order_of[at] = i;
        }
        for (int i = 0; i < ALL; i++)
            if (chosen[order_of[i]]) measure_row(where, pass, order_of[i]);
    }
}

static double median(double *v) {
    qsort(v, PASSES, sizeof *v, order_double);
    return v[PASSES / 2];
}

static void judge(int where, int row, double out[3]) {
    for (int i = 0; i < 3; i++) out[i] = median(took[where][row][i]);
}

static void choose(const char *only) {
    for (int i = 0; i < ALL; i++) chosen[i] = only == NULL || strstr(all[i], only);
}

static void *plain(void *arg) {
    measure(1);
    return NULL;
}

static void prepare(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
#define FIND(name)                            \
    *(void **)&own.name = dlsym(libc, #name); \
    *(void **)&hooked.name = dlsym(RTLD_DEFAULT, #name);
    CALLS(FIND)
    *(void **)&own.pthread_cond_signal = dlvsym(libc, "pthread_cond_signal", "GLIBC_2.3.2");
    *(void **)&own.pthread_cond_broadcast = dlvsym(libc, "pthread_cond_broadcast", "GLIBC_2.3.2");
    char path[] = "/tmp/gort-cost.XXXXXX";
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
    event = eventfd(0, 0);
    file = mkstemp(path);
    unlink(path);
    if (write(file, buf, 64) != 64) abort();
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    epoll = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLOUT};
    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[1], &e);
    sem_init(&sem, 0, 0);
    address[0].ss_family = AF_UNIX;
    address[1].ss_family = AF_INET;
    ((struct sockaddr_in *)&address[1])->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 2; i++) {
        listener[i] = socket(address[i].ss_family, SOCK_STREAM, 0);
        address_len[i] = i ? sizeof(struct sockaddr_in) : sizeof(sa_family_t);
        if (bind(listener[i], (void *)&address[i], address_len[i]) || listen(listener[i], 16))
            abort();
        address_len[i] = sizeof address[i];
        getsockname(listener[i], (void *)&address[i], &address_len[i]);
    }
}

static int start(int argc, char **argv) {
    char *only = argc > 1 ? argv[1] : NULL;
    pthread_t t;
    prepare();
    choose(only);
    measure(0);
    pthread_create(&t, NULL, plain, NULL);
    pthread_join(t, NULL);
    int over = 0;
    printf("%-31s %21s    %21s\n%-31s %7s %6s %6s    %7s %6s %6s\n", "", "on a goroutine",
           "on a plain thread", "ns a call", "libc", "hook", "more", "libc", "hook", "more");
    for (int i = 0; i < ALL; i++) {
        if (names[i] == NULL) continue;
        double on[3], off[3];
        judge(0, i, on);
        judge(1, i, off);
        printf("%-31s %7.1f %6.1f %+6.1f    %7.1f %6.1f %+6.1f%s\n", names[i], on[0], on[1], on[2],
               off[0], off[1], off[2], on[2] > MOST ? "  too much" : "");
        over += on[2] > MOST;
    }
    return over ? 1 : 0;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
