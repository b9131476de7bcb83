// status: 2
// stderr: the timer came
// stderr: the blocking call came back
// stderr: the sleeper woke up
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* A sleeper, a timer or a blocking call holds the verdict back; it comes once they are done. */
#include "../lib/test.h"
#include <unistd.h>

static void fire(void *arg) { fprintf(stderr, "the timer came\n"); }
static long nap(void *arg) { return usleep(20000); }
static void blocks(void *arg) {
    gort_blocking(nap, NULL);
    fprintf(stderr, "the blocking call came back\n");
}
static void sleeps(void *arg) {
    gort_sleep(30 * GORT_MS);
    fprintf(stderr, "the sleeper woke up\n");
    gort_select(NULL, 0);
}

static int body(int argc, char **argv) {
    gort_timer_new(10 * GORT_MS, fire, NULL);
    gort_go(blocks, NULL);
    gort_go(sleeps, NULL);
    gort_select(NULL, 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
