/*
 * A planted bug: a counter is read under a lock, and written back under the lock, which another
 * thread may have had in between: its count is lost. -DRIGHT: the lock is held all the time.
 */
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *worker(void *arg) {
    pthread_mutex_lock(&mutex);
    long seen = counter;
#ifndef RIGHT
    pthread_mutex_unlock(&mutex); /* wrong: others count here */
    pthread_mutex_lock(&mutex);
#endif
    counter = seen + 1;
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void) {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, worker, NULL) != 0) return 2;
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    if (counter == WORKERS) return 0;
    printf("%d workers counted to %ld\n", WORKERS, counter);
    return 1;
}
