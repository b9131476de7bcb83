#define _GNU_SOURCE 1
/* A write to a broken pipe or connection is -EPIPE and never a signal. A program that is started
 * has the signal as it was before. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static int caught;
static void on_pipe(int signo) { caught++; }

/* What the parent only ignores is ignored by every program it starts: a filter in a pipeline would
 * never end. */
static void started_takes_it(bool as_it_was) {
    char *args[] = {(char *)"sh", (char *)"-c", (char *)"kill -PIPE $$; exit 7", NULL};
    pid_t pid;
    int status;
    CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, args, NULL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, as_it_was ? SIGPIPE : 7 << 8);
}

static bool ignored;
static int run(int argc, char **argv) {
    started_takes_it(!ignored);
    int p[2];
    char b[4] = "abc";
    struct iovec v = {b, 3};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_writev(p[1], &v, 1), -EPIPE);
    CHECK_EQ(gort_write_full(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_close(p[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
    CHECK_EQ(gort_close(p[0]), 0);
    int before = caught;
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_writev(p[1], &v, 1), -EPIPE);
    CHECK_EQ(gort_send(p[1], b, 3, 0), -EPIPE);
    CHECK_EQ(gort_sendmsg(p[1], &m, 0), -EPIPE);
    CHECK_EQ(caught, before);
    CHECK_EQ(gort_close(p[1]), 0);
    tcp_pair(p);
    reset_peer(p[0]);
    ssize_t r;
    while ((r = gort_write(p[1], b, 3)) >= 0) {}
    CHECK(r == -ECONNRESET || r == -EPIPE);
    CHECK_EQ(gort_write(p[1], b, 3), -EPIPE);
    CHECK_EQ(gort_close(p[1]), 0);
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = SIG_DFL}, now;
    CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    sa.sa_handler = on_pipe; /* the program's handler stays */
    CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    CHECK_EQ(sigaction(SIGPIPE, NULL, &now), 0);
    CHECK(now.sa_handler == on_pipe);
    sa.sa_handler = SIG_IGN;
    ignored = true;
    CHECK_EQ(sigaction(SIGPIPE, &sa, NULL), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    CHECK_EQ(sigaction(SIGPIPE, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_IGN);
    return 0;
}
