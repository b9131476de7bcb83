// status: 2
// stderr: the function came back
// stderr: gort: fatal: all goroutines are asleep - deadlock!
/* A function that an earlier runtime has left behind holds the verdict back, as a plain thread
 * does; it comes once that thread is gone. */
#include "../lib/test.h"
#include <unistd.h>

static int inside;

static long nap(void *arg) {
    set(&inside, 1);
    usleep(50000);
    fprintf(stderr, "the function came back\n");
    return 0;
}
static void blocks(void *arg) { gort_blocking(nap, NULL); }
static int leaves(int argc, char **argv) {
    gort_go(blocks, NULL);
    wait_until(get(&inside));
    return 0;
}
static int waits(int argc, char **argv) {
    gort_select(NULL, 0);
    return 0;
}

int main(int argc, char **argv) {
    gort_main(leaves, argc, argv);
    return gort_main(waits, argc, argv);
}
