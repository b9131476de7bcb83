#define _GNU_SOURCE 1
/* Whatever can be polled: eventfd, timerfd, signalfd, inotify, pidfd, terminals, and what a shell
 * hands over on 0. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>

static int fd, done;
static uint64_t number;

static void read_number(void *arg) {
    uint64_t v = 0;
    CHECK_EQ(gort_read(fd, &v, sizeof v), sizeof v);
    set(&number, v);
    add(&done, 1);
}

static void test_eventfd(void) {
    uint64_t one = 1, most = UINT64_MAX - 1;
    fd = eventfd(0, 0);
    set(&done, 0);
    gort_go(read_number, NULL);
    wait_parked(1);
    CHECK_EQ(gort_write(fd, &one, sizeof one), sizeof one);
    wait_until(get(&done));
    CHECK_EQ(number, 1);
    CHECK_EQ(gort_write(fd, &most, sizeof most), sizeof most);
    CHECK_EQ(gort_write_until(fd, &one, sizeof one, gort_now() + 2 * GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_read(fd, &one, sizeof one), sizeof one);
    CHECK_EQ(gort_close(fd), 0);
}

static void test_timerfd(void) {
    struct itimerspec t = {.it_value = {0, 3000000}};
    fd = timerfd_create(CLOCK_MONOTONIC, 0);
    CHECK_EQ(timerfd_settime(fd, 0, &t, NULL), 0);
    set(&done, 0);
    gort_go(read_number, NULL);
    wait_until(get(&done));
    CHECK_EQ(number, 1);
    CHECK_EQ(gort_close(fd), 0);
}

static void test_signalfd(void) {
    struct signalfd_siginfo info;
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1); /* blocked in main: every thread has that mask */
    int s = signalfd(-1, &usr1, 0);
    CHECK_GE(s, 0);
    CHECK_EQ(gort_read_until(s, &info, sizeof info, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    /* The signal is the process's, but signalfd gives it to any thread that reads. */
    CHECK_EQ(gort_read(s, &info, sizeof info), sizeof info);
    CHECK_EQ(info.ssi_signo, SIGUSR1);
    CHECK_EQ(gort_close(s), 0);
}

static void touch(void *arg) {
    wait_parked(1);
    int f = gort_open(arg, O_CREAT | O_WRONLY, 0600);
    CHECK_GE(f, 0);
    CHECK_EQ(gort_close(f), 0);
}
static void test_inotify(void) {
    char dir[] = "/tmp/gort_inotify_XXXXXX", file[64], b[1024] __attribute__((aligned(8)));
    CHECK(mkdtemp(dir) != NULL);
    snprintf(file, sizeof file, "%s/x", dir);
    int n = inotify_init1(0);
    if (n < 0) return;
    CHECK_GE(inotify_add_watch(n, dir, IN_CREATE), 0);
    gort_go(touch, file);
    ssize_t r = gort_read(n, b, sizeof b);
    CHECK_GT(r, 0);
    CHECK_EQ(((struct inotify_event *)(void *)b)->mask, IN_CREATE);
    CHECK_EQ(gort_close(n), 0);
    wait_until(gort_count() == 1);
    unlink(file), rmdir(dir);
}

static void test_pidfd(void) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    int p = (int)syscall(SYS_pidfd_open, child, 0);
    if (p >= 0) {
        struct pollfd q = {.fd = p, .events = POLLIN};
        CHECK_EQ(gort_poll(&q, 1, 2), 0);
        kill(child, SIGKILL);
        CHECK_EQ(gort_poll(&q, 1, -1), 1);
        CHECK_EQ(gort_close(p), 0);
    } else {
        kill(child, SIGKILL);
    }
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void read_line(void *arg) {
    char b[64];
    ssize_t n = gort_read((int)(intptr_t)arg, b, sizeof b);
    CHECK_EQ(n, 6);
    CHECK(memcmp(b, "hello\n", 6) == 0);
    add(&done, 1);
}

static void test_terminal(void) {
    char b[256], name[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof name))
        return;
    int slave = gort_open(name, O_RDWR | O_NOCTTY, 0);
    CHECK_GE(slave, 0);
    set(&done, 0);
    gort_go(read_line, (void *)(intptr_t)slave);
    wait_parked(1);
    CHECK_EQ(gort_write(master, "hello\n", 6), 6);
    wait_until(get(&done));
    CHECK_EQ(gort_read_full(master, b, 7), 7); /* its echo */
    CHECK_EQ(gort_write(slave, "out", 3), 3);
    CHECK_EQ(gort_read(master, b, sizeof b), 3);
    CHECK_EQ(gort_read_until(master, b, sizeof b, gort_now() + GORT_MS), -ETIMEDOUT);
    /* On 0, as from a shell: the shared flags are left alone. */
    int saved = dup(0);
    CHECK_EQ(dup2(slave, 0), 0);
    CHECK_EQ(gort_close(slave), 0);
    CHECK_EQ(fcntl(0, F_SETFL, fcntl(0, F_GETFL) & ~O_NONBLOCK), 0);
    set(&done, 0);
    gort_go(read_line, (void *)(intptr_t)0);
    wait_parked(1);
    CHECK_EQ(gort_write(master, "hello\n", 6), 6);
    wait_until(get(&done));
    CHECK_EQ(gort_read_until(0, b, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(fcntl(0, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(dup2(saved, 0), 0);
    close(saved);
    CHECK_EQ(gort_close(master), 0);
}

/* A pipe on 0 that another process shares: it must not find O_NONBLOCK on it. */
static void read_zero(void *arg) {
    char b[6];
    CHECK_EQ(gort_read_full(0, b, 6), 6);
    CHECK(memcmp(b, "hello\n", 6) == 0);
    add(&done, 1);
}
static void test_inherited_pipe(void) {
    int p[2], saved = dup(0);
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(dup2(p[0], 0), 0);
    set(&done, 0);
    gort_go(read_zero, NULL);
    wait_parked(1);
    CHECK_EQ(gort_write(p[1], "hel", 3), 3);
    wait_parked(1);
    CHECK_EQ(gort_write(p[1], "lo\n", 3), 3);
    wait_until(get(&done));
    CHECK_EQ(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(dup2(saved, 0), 0);
    close(saved);
    gort_close(p[0]), gort_close(p[1]);
}

static void test_devices(void) {
    char b[16];
    int f = gort_open("/dev/null", O_RDWR, 0);
    CHECK_EQ(gort_read(f, b, sizeof b), 0);
    CHECK_EQ(gort_write(f, b, sizeof b), sizeof b);
    CHECK_EQ(gort_close(f), 0);
    f = gort_open("/dev/urandom", O_RDONLY, 0);
    CHECK_EQ(gort_read_full(f, b, sizeof b), sizeof b);
    CHECK_EQ(gort_close(f), 0);
}

static int run(int argc, char **argv) {
    test_eventfd();
    test_timerfd();
    test_signalfd();
    test_inotify();
    test_pidfd();
    test_terminal();
    test_inherited_pipe();
    test_devices();
    return 0;
}

int main(int argc, char **argv) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    return gort_main(run, argc, argv);
}
