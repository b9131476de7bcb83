// stderr: gort: stall: P0 held for
// stderr: its goroutine sleeps in the kernel while pinned
// procs: 1
// not-with: emulation
/* A pinned goroutine sleeps in the kernel and others wait: that is told without being asked for. */
#include "../lib/test.h"
#include <unistd.h>

static int ran;
static void waits(void *arg) { set(&ran, 1); }

static int body(int argc, char **argv) {
    CHECK_EQ(gort_go(waits, NULL), 0);
    gort_pin();
    usleep(2500000); /* what it is about */
    gort_unpin();
    wait_until(get(&ran));
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
