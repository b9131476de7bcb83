// status: abort
// stderr: gort: fatal: gort_timer_free: timer 0x
// stderr: is used after gort_timer_free
// procs: 1 2
// not-with: address thread valgrind
/* Misuse is loud: a timer that was freed. */
#include "../lib/test.h"

static void nothing(void *arg) {}

static int body(int argc, char **argv) {
    gort_timer *timer = gort_timer_new(GORT_SEC, nothing, NULL);
    gort_timer_free(timer);
    gort_timer_free(timer);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
