/*
 * A call of a pinned goroutine that was expected not to wait, and waits: the monitor ends it, and
 * its thread goes on by a number of its own for the file. That number may be closed by a program
 * that closes numbers which are not its own, and then it is not to be closed once more. And where
 * there is none left, the call waits all the same.
 */
#include "hook.h"
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>

static int raw(long r) { return (int)r; }
#define RAW(name, ...) raw(syscall(SYS_##name, __VA_ARGS__))

/* What is called as it is, since the hook believes that it need not wait. */
typedef struct Scene {
    const char *name;
    long nr;      /* how the thread goes on */
    int fd, peer; /* called on; what ends it */
    long (*call)(int fd);
    void (*end)(struct Scene *s);
} Scene;

static long call_read(int fd) {
    char c;
    return read(fd, &c, 1);
}
static void end_read(Scene *s) { CHECK_EQ(RAW(write, s->peer, "x", 1), 1); }
static void make_pipe(Scene *s) {
    int p[2];
    char c;
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(RAW(read, p[0], &c, 1), 1); /* another process has taken it */
    *s = (Scene){"read", SYS_readv, p[0], p[1], call_read, end_read};
}

static long call_write(int fd) { return write(fd, &(uint64_t){1}, 8); }
static void end_write(Scene *s) {
    uint64_t n;
    CHECK_EQ(RAW(read, s->peer, &n, 8), 8);
}
static void make_full(Scene *s) {
    int fd = eventfd(0, 0);
    CHECK_EQ(write(fd, &(uint64_t){UINT64_MAX - 1}, 8), 8);
    *s = (Scene){"write", SYS_writev, fd, RAW(dup, fd), call_write, end_write};
}

static struct sockaddr_un un = {.sun_family = AF_UNIX};
static socklen_t len;
static long call_accept(int fd) {
    int conn = accept(fd, NULL, NULL);
    return conn < 0 ? -1 : close(conn) + 1;
}
static void end_accept(Scene *s) { CHECK_EQ(RAW(connect, s->peer, &un, len), 0); }
static void make_listener(Scene *s) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    static int serial;
    len = (socklen_t)(sizeof(sa_family_t) + 1 +
                      (size_t)snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "gort-own-%d-%d",
                                       getpid(), serial++));
    CHECK_EQ(bind(fd, (void *)&un, len), 0);
    CHECK_EQ(listen(fd, 1), 0);
    RAW(fcntl, fd, F_SETFL, 0); /* another process waits there */
    int client = RAW(socket, AF_UNIX, SOCK_STREAM, 0);
    *s = (Scene){"accept", SYS_accept4, fd, client, call_accept, end_accept};
}

/* ---- from another thread --------------------------------------------------------------------- */

static int watch, over, null, replaced;
static int used_up[256], n_used; /* where no number is left, but for what accept needs */

/* The system call that the caller's thread sleeps in, and its first argument. */
static long sleeps_in(long *first) {
    char text[64] = "";
    long nr = -1;
    if (RAW(pread64, watch, text, sizeof text - 1, 0) <= 0) return -1;
    return sscanf(text, "%ld 0x%lx", &nr, (unsigned long *)first) == 2 ? nr : -1;
}

static void *helper(void *arg) {
    Scene *s = arg;
    long own = -1, nr = -1;
    while (!get(&over) && (nr = sleeps_in(&own)) != s->nr) usleep(1000);
    if (nr == s->nr && own != s->fd) {
        CHECK_EQ(dup2(null, (int)own), own);
        set(&replaced, (int)own);
    }
    s->end(s);
    return NULL;
}

static void use_up(bool leaves_one) {
    struct rlimit few = {256, 256};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd; (fd = RAW(dup, null)) >= 0;) used_up[n_used++] = fd;
    if (leaves_one) RAW(close, used_up[--n_used]);
}

static void play(void (*make)(Scene *s), bool scarce) {
    Scene s;
    pthread_t t;
    char path[64];
    make(&s);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)syscall(SYS_gettid));
    watch = open(path, O_RDONLY);
    if (watch < 0 || RAW(pread64, watch, path, sizeof path, 0) <= 0) SKIP("no %s", path);
    set(&over, 0), set(&replaced, -1);
    if (scarce) use_up(s.call == call_accept);
    gort_pin();
    CHECK_EQ(pthread_create(&t, NULL, helper, &s), 0);
    long r = s.call(s.fd);
    int err = errno;
    set(&over, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
    gort_unpin();
    CHECKF(r > 0, "%s: %ld, %s", s.name, r, strerror(err));
    if (replaced >= 0) CHECKF(RAW(fcntl, replaced, F_GETFD) >= 0, "%s closed a stranger's", s.name);
    if (replaced >= 0) RAW(close, replaced);
    close(s.fd), RAW(close, s.peer), close(watch);
    while (n_used > 0) RAW(close, used_up[--n_used]);
}

static int run(int argc, char **argv) {
    CHECK_GE(null = open("/dev/null", O_RDONLY), 0);
    for (int scarce = 0; scarce < 2; scarce++) {
        play(make_pipe, scarce);
        play(make_full, scarce);
        play(make_listener, scarce);
    }
    return 0;
}
HOOK_MAIN(run)
