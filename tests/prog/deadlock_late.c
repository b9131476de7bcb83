// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* A sleeper, a timer or a blocking call holds the verdict back; it comes once they are done. */
#include "../test.h"
#include <unistd.h>

static int fired;
static void fire(void *arg) { add(&fired, 1); }
static long nap(void *arg) { return usleep(20000); }
static void blocks(void *arg) {
    gort_blocking(nap, NULL);
    add(&fired, 1);
}
static void sleeps(void *arg) {
    gort_sleep(30 * GORT_MS);
    add(&fired, 1);
    if (get(&fired) == 3) fprintf(stderr, "all three came\n");
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
