/* The names that programs built with _FORTIFY_SOURCE or 64-bit offsets call. */
#include "hook.h"

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
int __open_2(const char *, int);
int __open64_2(const char *, int);

static int pairs[5][2], done;

static void waiter(void *arg) {
    int way = (int)(intptr_t)arg, fd = pairs[way][0];
    char c = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    switch (way) {
    case 0: CHECK_EQ(__read_chk(fd, &c, 1, 1), 1); break;
    case 1: CHECK_EQ(__recv_chk(fd, &c, 1, 1, 0), 1); break;
    case 2: CHECK_EQ(__recvfrom_chk(fd, &c, 1, 1, 0, NULL, NULL), 1); break;
    case 3: CHECK_EQ(__poll_chk(&p, 1, -1, sizeof p), 1); break;
    case 4: CHECK_EQ(__ppoll_chk(&p, 1, NULL, NULL, sizeof p), 1); break;
    }
    add(&done, 1);
}

static int run(int argc, char **argv) {
    for (intptr_t i = 0; i < 5; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        gort_go(waiter, (void *)i);
    }
    wait_for_waiting("IO wait", 5);
    for (int i = 0; i < 5; i++) CHECK_EQ(write(pairs[i][1], "x", 1), 1);
    wait_until(get(&done) == 5);
    int a = __open_2("/dev/null", O_RDONLY), b = __open64_2("/dev/null", O_RDONLY),
        c = open64("/dev/null", O_RDONLY);
    char one;
    CHECK(a >= 0 && b >= 0 && c >= 0);
    CHECK_EQ(read(a, &one, 1), 0);
    CHECK_GE(fcntl64(b, F_GETFL), 0);
    CHECK_EQ(close(a) + close(b) + close(c), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(2);
        __read_chk(0, &one, 2, 1); /* too long: ends the process */
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return 0;
}
HOOK_MAIN(run)
