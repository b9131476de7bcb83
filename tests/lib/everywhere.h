/*
 * The same checks from everywhere: objects work between plain threads with no runtime, between
 * goroutines, and on a plain thread while a runtime runs, whose partners are goroutines then.
 */
#ifndef GORT_EVERYWHERE_H
#define GORT_EVERYWHERE_H

#include "test.h"
#include <pthread.h>

static void (*everywhere_checks)(void);

static void *everywhere_thread(void *done) {
    everywhere_checks();
    set((int *)done, 1);
    return NULL;
}

static int everywhere_inside(int argc, char **argv) {
    int done = 0;
    pthread_t t;
    (void)argc, (void)argv;
    everywhere_checks();
    if (test_simulated()) return 0; /* one thread, and the seed decides: nothing else */
    CHECK_EQ(pthread_create(&t, NULL, everywhere_thread, &done), 0);
    wait_until(get(&done));
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 0;
}

/* main's: before a runtime, on a goroutine, on a plain thread beside it, and after it. */
TEST_UNUSED static int everywhere(void (*checks)(void), int argc, char **argv) {
    everywhere_checks = checks;
    if (!test_simulated()) checks();
    CHECK_EQ(gort_main(everywhere_inside, argc, argv), 0);
    if (!test_simulated()) checks();
    return 0;
}

#endif
