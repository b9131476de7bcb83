// status: abort
// stderr: gort: fatal: gort_lock_thread nested 65536 times
// stderr: goroutine 1 [running
/* Misuse is loud: a count of locks that ran over would leave the thread locked for good. */
#include "../lib/test.h"

static int body(int argc, char **argv) {
    for (int i = 0; i < 65536; i++) gort_lock_thread();
    for (int i = 0; i < 65536; i++) gort_unlock_thread();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
