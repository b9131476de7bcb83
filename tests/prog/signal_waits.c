// status: 0
// not-with: emulation thread valgrind
/* (TSan starts a thread of its own in the child of a fork; with a thread it does not know the
 * runtime calls nothing dead. Valgrind itself has handlers for all signals from the start.) A
 * program that waits for a signal is not dead; after the stop, one that waits is. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    int v;
    CHECK_EQ(gort_signal_notify(c, SIGUSR1), 0);
    CHECK_EQ(gort_chan_recv(c, &v), 0); /* the parent sends it, late */
    CHECK_EQ(v, SIGUSR1);
    CHECK_EQ(gort_signal_stop(c), 0);
    gort_chan_recv(c, &v); /* all asleep: status 2 */
    return 0;
}

int main(int argc, char **argv) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(gort_main(body, argc, argv));
    int status;
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    for (int watches = 0; !watches;) { /* until it has a handler for SIGUSR1 */
        FILE *f = fopen(path, "r");
        CHECK(f != NULL);
        while (fgets(line, sizeof line, f))
            if (strncmp(line, "SigCgt:", 7) == 0)
                watches = (strtoull(line + 7, NULL, 16) >> (SIGUSR1 - 1)) & 1;
        fclose(f);
        usleep(1000);
    }
    usleep(100000); /* time to be found dead, if it were */
    CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    return 0;
}
