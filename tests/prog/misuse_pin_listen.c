// status: abort
// stderr: gort: fatal: blocking while pinned (goroutine 1)
// stderr: goroutine 1 [running
/* A call that may wait for another of its kind is misuse while pinned, also where it need not. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_pin();
    gort_listen("unix:@gort-misuse-pin-listen", 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
