/*
 * A planted bug: a lost wake-up. The consumer looks whether there is work, and then waits for the
 * signal; but it looks outside the mutex it waits with. A signal that comes in between meets
 * nobody. On an idle machine this runs for hours; `gort-explore` finds it at once.
 */
#include <gort.h>
#include <stdio.h>

static gort_mutex mutex;
static gort_cond ready;
static int work;

static void producer(void *arg) {
    gort_mutex_lock(&mutex);
    work++;
    gort_cond_signal(&ready);
    gort_mutex_unlock(&mutex);
}

static int body(int argc, char **argv) {
    if (gort_go(producer, NULL) < 0) return 2;
    if (work == 0) { /* wrong: must be looked at, again and again, under the mutex */
        gort_mutex_lock(&mutex);
        gort_cond_wait(&ready, &mutex);
        gort_mutex_unlock(&mutex);
    }
    printf("%d piece of work\n", work);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
