// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
// stderr: goroutine 1 [IO wait
/* Nothing can wake a poll that has no descriptor, or only negative ones, and no limit. */
#include "../lib/test.h"

static void only_negative(void *arg) {
    struct pollfd many[6];
    for (int i = 0; i < 6; i++) many[i] = (struct pollfd){.fd = -1 - i, .events = POLLIN};
    gort_poll(many, 6, -1);
}

static int body(int argc, char **argv) {
    gort_go(only_negative, NULL);
    return gort_poll_until(NULL, 0, GORT_FOREVER);
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
