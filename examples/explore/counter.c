/*
 * A planted bug: a counter without a lock. Between reading and writing it back the goroutine makes
 * a call; another one may count in between, and its count is lost.
 */
#include <gort.h>
#include <stdio.h>

enum { WORKERS = 3 };

static long counter;
static gort_chan *log_;

static void worker(void *arg) {
    long seen = counter;
    gort_chan_send(log_, &seen); /* wrong: others run here */
    counter = seen + 1;
}

static int body(int argc, char **argv) {
    static gort_wg wg;
    log_ = gort_chan_new(sizeof(long), WORKERS);
    for (int i = 0; i < WORKERS; i++)
        if (log_ == NULL || gort_wg_go(&wg, worker, NULL) < 0) return 2;
    gort_wg_wait(&wg);
    gort_chan_release(log_);
    if (counter == WORKERS) return 0;
    printf("%d workers counted to %ld\n", WORKERS, counter);
    return 1;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
