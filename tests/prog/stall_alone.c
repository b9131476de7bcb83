// env: GORT_DEBUG=stall=1000
// procs: 1
// status: 0
// no-stderr: stall
/* The time of a stall counts from when another goroutine waits. This one is pinned for longer than
 * that alone, then wakes another and goes on only until the monitor has seen both. */
#include "../lib/test.h"

static int woken;
static void other(void *arg) { set(&woken, 1); }

static int body(int argc, char **argv) {
    gort_stats s;
    gort_pin();
    int64_t end = gort_now() + 1100 * GORT_MS;
    while (gort_now() < end) continue; /* nobody waits */
    gort_stats_read(&s);
    uint64_t before = s.preempt_requests;
    CHECK_EQ(gort_go(other, NULL), 0);
    do gort_stats_read(&s); /* it reports a stall before it asks */
    while (s.preempt_requests == before);
    gort_unpin();
    wait_until(get(&woken));
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
