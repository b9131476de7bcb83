/* A program that was made for threads: tests/threads. It knows nothing of gort. It holds under the
 * system's threads (kind native) as well as with its threads as goroutines (kind threads). */
#ifndef THREADS_TEST_H
#define THREADS_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x)                                                            \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* By tests/run: on a slow machine, whose kernel threads are the emulator's, too. */
static inline bool emulated(void) {
    const char *runner = getenv("TEST_RUNNER");
    return runner && *runner;
}

static inline bool in_valgrind(void) {
    const char *runs = getenv("VALGRIND");
    return runs && *runs;
}

/* Its threads are goroutines. */
static inline bool as_goroutines(void) { return getenv("GORT_THREADS") != NULL; }

#define wait_until(x)             \
    do {                          \
        while (!(x)) usleep(100); \
    } while (0)

/* How many threads the kernel sees. */
static inline int kernel_threads(void) {
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    if (f) fclose(f);
    return n;
}

#endif
