/*
 * Plain threads and goroutines, mixed: channels and mutexes work between both. Here four pthreads,
 * which could belong to a GUI or a library, hand numbers to a hundred goroutines and take the
 * results back. For the threads a blocking call blocks the thread, for a goroutine it does not.
 */
#include <gort.h>
#include <pthread.h>
#include <stdio.h>

GORT_CHAN_TYPE(longs, long)

enum { THREADS = 4, GOROUTINES = 100, EACH = 1000 };
static longs *work, *results;
static gort_mutex mutex;
static long handled_by_goroutines;

static void *thread(void *arg) {
    long base = *(long *)arg;
    for (long i = 0; i < EACH; i++) longs_send(work, base + i);
    return NULL;
}

static void goroutine(void *arg) {
    (void)arg;
    long handled = 0;
    for (long n; longs_recv(work, &n) == 0; handled++) longs_send(results, 2 * n);
    gort_mutex_lock(&mutex);
    handled_by_goroutines += handled;
    gort_mutex_unlock(&mutex);
}

static void *collector(void *arg) { /* a plain thread, too */
    long *sum = arg;
    for (long n; longs_recv(results, &n) == 0;) *sum += n;
    return NULL;
}

static long join(void *arg) { /* pthread_join blocks the thread: gort_blocking hands the P on */
    return pthread_join(*(pthread_t *)arg, NULL);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    pthread_t threads[THREADS], collecting;
    long base[THREADS], sum = 0;
    static gort_wg goroutines; /* static: an early return leaves them running */
    work = longs_new(16);
    results = longs_new(16);
    if (work == NULL || results == NULL) return 1;
    for (int i = 0; i < GOROUTINES; i++)
        if (gort_wg_go(&goroutines, goroutine, NULL) < 0) return 1;
    if (pthread_create(&collecting, NULL, collector, &sum) != 0) return 1;
    for (int i = 0; i < THREADS; i++) {
        base[i] = i * EACH;
        if (pthread_create(&threads[i], NULL, thread, &base[i]) != 0) return 1;
    }
    for (int i = 0; i < THREADS; i++) gort_blocking(join, &threads[i]);
    longs_close(work);
    gort_wg_wait(&goroutines);
    longs_close(results);
    gort_blocking(join, &collecting);
    printf("%ld numbers from %d threads, doubled: the sum is %ld\n", handled_by_goroutines, THREADS,
           sum);
    longs_release(work);
    longs_release(results);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
