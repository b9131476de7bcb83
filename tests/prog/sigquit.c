// status: 2
// stderr: goroutine 1 [
// stderr: "idle" [chan receive
/* SIGQUIT shows every goroutine and ends the program with status 2. */
#include "../test.h"
#include <signal.h>
#include <unistd.h>

static void idle(void *arg) { gort_chan_recv(arg, NULL); }

static int body(int argc, char **argv) {
    gort_stats before, s;
    gort_chan *c = gort_chan_new(0, 0);
    gort_stats_read(&before);
    gort_go_with(&(gort_attr){.name = "idle"}, idle, c);
    do { /* it waits: nothing is queued, and the only one that runs is main */
        gort_yield();
        gort_stats_read(&s);
    } while (s.waiters == before.waiters);
    kill(getpid(), SIGQUIT);
    gort_sleep(3600 * GORT_SEC);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
