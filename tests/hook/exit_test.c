/* What the runtime keeps under a pthread key stays with its thread when a goroutine waits in a
 * hooked call and takes the program's own keys along: pthread_exit is still found, by the thread on
 * which it waits. */
#include "hook.h"

static int ends[2];
static void waits(void *arg) {
    char c;
    read(ends[0], &c, 1); /* for ever */
}
static int leaves(int argc, char **argv) {
    CHECK_EQ(pipe(ends), 0);
    gort_maxprocs(1);
    CHECK_EQ(gort_go(waits, NULL), 0);
    gort_yield();
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(100); /* or it hangs */
        freopen("/dev/null", "w", stderr);
        _exit(gort_main(leaves, argc, argv));
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    return 0;
}
