/*
 * The limit on descriptors is the program's: a runtime leaves it as it is, and every kind of child
 * has the program's. Only where a call of ours meets it, it is raised as far as it goes.
 */
#include "../lib/test.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOFT 700

static const char command[] = "test $(ulimit -S -n) = 700";
static char *const arguments[] = {"sh", "-c", (char *)command, NULL};
extern char **environ;

static void check_limit(void) {
    struct rlimit lim;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
    CHECK_EQ(lim.rlim_cur, SOFT);
}

static int ended(pid_t pid) {
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static int app(int argc, char **argv) {
    pid_t pid;
    check_limit();
    CHECK_EQ(system(command), 0);
    CHECK_EQ(pclose(popen(command, "r")), 0);
    CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ), 0);
    CHECK_EQ(ended(pid), 0);
    if ((pid = fork()) == 0) {
        execv("/bin/sh", arguments);
        _exit(1);
    }
    CHECK_EQ(ended(pid), 0);
    return 0;
}

static int needs_more(int argc, char **argv) {
    for (int i = 0; i < SOFT + 10; i++) CHECK_GE(gort_open("/dev/null", O_RDONLY, 0), 0);
    int l = gort_listen("127.0.0.1:0", 0);
    CHECK_GE(l, 0);
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit lim;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
    if (lim.rlim_max <= SOFT) SKIP("the hard limit is %lu", (unsigned long)lim.rlim_max);
    lim.rlim_cur = SOFT;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
    CHECK_EQ(gort_main(app, argc, argv), 0);
    check_limit();
    if (lim.rlim_max >= SOFT + 400) CHECK_EQ(gort_main(needs_more, argc, argv), 0);
    return 0;
}
