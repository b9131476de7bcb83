// status: 3
// stdout: main has ended
// not-with: thread
/* (TSan holds signals back until the next call of libc's, and a loop makes none.)
 * When main returns, nobody else runs any further: loops, sleepers and blocking calls. */
#include "../lib/test.h"
#include <unistd.h>

static int there;
static void loop(void *arg) {
    add(&there, 1);
    for (;;) {}
}
static void sleeps(void *arg) {
    add(&there, 1);
    gort_sleep(3600 * GORT_SEC);
}
static long nap(void *arg) {
    add(&there, 1);
    sleep(60); /* "may finish on its thread": the program does not wait for it */
    return 0;
}
static void blocks(void *arg) { gort_blocking(nap, NULL); }

static int body(int argc, char **argv) {
    for (int i = 0; i < 3; i++) gort_go(loop, NULL);
    gort_go(sleeps, NULL);
    gort_go(blocks, NULL);
    wait_until(get(&there) == 5);
    return 3;
}

int main(int argc, char **argv) {
    int r = gort_main(body, argc, argv);
    printf("main has ended\n");
    return r;
}
