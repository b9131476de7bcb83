// procs: 1
// status: 0
// stderr: gort: warning: the program has changed the handler of signal 23
/* A program without the hook that resets all signals has taken the runtime's, too. It is told when
 * a goroutine computes and cannot be preempted: this one, until it has read so. */
#include "../lib/test.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int ran;
static void other(void *arg) { set(&ran, 1); }

static int body(int argc, char **argv) {
    int ends[2], err = dup(2);
    char text[1024];
    ssize_t n;
    gort_maxprocs(1);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(dup2(ends[1], 2), 2);
    for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
    CHECK_EQ(gort_go(other, NULL), 0);
    do n = read(ends[0], text, sizeof text);
    while (n < 0);
    CHECK_EQ(get(&ran), 0);
    CHECK_EQ(dup2(err, 2), 2);
    CHECK_EQ(write(2, text, (size_t)n), n);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
