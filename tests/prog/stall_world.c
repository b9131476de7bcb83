// stderr: which is pinned: it sleeps in the kernel
// procs: 2 16
// not-with: emulation
/* A pinned goroutine sleeps in the kernel and the runtime is to end: that is told, and waited
 * for. */
#include "../lib/test.h"
#include <unistd.h>

static int pinned;

static void sleeps(void *arg) {
    gort_pin();
    set(&pinned, 1);
    usleep(2500000); /* what it is about */
    gort_unpin();
}

static int body(int argc, char **argv) {
    CHECK_EQ(gort_go(sleeps, NULL), 0);
    wait_until(get(&pinned));
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
