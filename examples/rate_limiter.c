/*
 * A token bucket: a semaphore holds the tokens, a ticker adds one per period up to the size of the
 * bucket. A burst goes through at once, the rest at the ticker's pace.
 */
#include <gort.h>
#include <stdio.h>

enum { BURST = 5, REQUESTS = 15 };
static const int64_t PERIOD = 10 * GORT_MS;

static gort_sem tokens; /* what may go through now */
static gort_sem room;   /* what still fits into the bucket */

static void add_token(void *arg) {
    (void)arg;
    if (gort_sem_try_acquire(&room, 1) == 0) gort_sem_release(&tokens, 1);
}

static void take_token(void) {
    gort_sem_acquire(&tokens, 1);
    gort_sem_release(&room, 1);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_sem_release(&tokens, BURST);
    int64_t start = gort_now();
    gort_timer *ticker = gort_ticker_new(PERIOD, add_token, NULL);
    if (ticker == NULL) return 1;
    for (int i = 1; i <= REQUESTS; i++) {
        take_token();
        int64_t elapsed = gort_now() - start;
        /* request i needs at least i - BURST ticks, however slow or fast the machine is */
        int64_t earliest = i > BURST ? (i - BURST) * PERIOD : 0;
        if (elapsed < earliest) printf("request %d came too early\n", i);
        if (i == BURST) printf("the burst of %d is through\n", BURST);
    }
    printf("%d requests, none above the rate\n", REQUESTS);
    gort_timer_free(ticker);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
