/*
 * Threads created and joined, one after the other: threads_lives N. Prints lives_N_us and
 * lives_N_cpu, microseconds for one, of the clock and of all processors. Knows nothing of gort.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *live(void *arg) { return arg; }

static double now(clockid_t clock) {
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void lives(int n) {
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, live, &n)) exit(1);
        if (pthread_join(thread, &result) || result != &n) exit(1);
    }
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100000;
    lives(n / 10);
    double time = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    lives(n);
    printf("lives_%d_us %.3f\n", n, (now(CLOCK_MONOTONIC) - time) / n);
    printf("lives_%d_cpu %.3f\n", n, (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / n);
    return 0;
}
