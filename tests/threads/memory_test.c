// not-with: valgrind (what it keeps itself is resident, too)
/* Threads that have ended hold no memory of their stacks. */
#include "threads_test.h"

enum { THREADS = 60, ROUNDS = 3, USED = 4 << 20 };
static pthread_barrier_t all;

static void *deep(void *arg) {
    char used[USED];
    memset(used, 1, sizeof used);
    __asm__ volatile("" ::"r"(used) : "memory");
    pthread_barrier_wait(&all); /* they are there at once */
    return NULL;
}

static long resident(void) {
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%ld %ld", &size, &pages) == 2);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, USED + (256 << 10));
    pthread_barrier_init(&all, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], &attr, deep, NULL) == 0);
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    }
    /* libc's keeps no more than 40 MB of stacks; a few may not be gone yet */
    CHECK(resident() < (long)THREADS * USED / 4);
    return 0;
}
