/*
 * For a simulation: GORT_SIM=1, or gort-explore. Outside of one it sleeps for an hour.
 *
 * The three programs beside this one put right: no seed fails. And an hour of sleep takes no time,
 * since the clock of a simulation jumps.
 */
#include <gort.h>
#include <stdio.h>

static gort_mutex mutex;
static gort_cond ready;
static int work;
static long counter;

static void producer(void *arg) {
    gort_sleep(3600 * GORT_SEC);
    gort_mutex_lock(&mutex);
    work++;
    gort_cond_signal(&ready);
    gort_mutex_unlock(&mutex);
}

static void worker(void *arg) {
    gort_mutex_lock(&mutex);
    long seen = counter;
    gort_yield();
    counter = seen + 1;
    gort_mutex_unlock(&mutex);
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    int64_t begin = gort_now();
    if (gort_wg_go(&wg, producer, NULL) < 0) return 2;
    for (int i = 0; i < 3; i++)
        if (gort_wg_go(&wg, worker, NULL) < 0) return 2;
    gort_mutex_lock(&mutex);
    while (work == 0) gort_cond_wait(&ready, &mutex);
    gort_mutex_unlock(&mutex);
    gort_wg_wait(&wg);
    printf("%ld counted, after %ld s\n", counter, (long)((gort_now() - begin) / GORT_SEC));
    return counter == 3 ? 0 : 1;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
