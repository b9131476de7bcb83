// env: GORT_DEBUG=stall=50
// procs: 1
// status: 0
// stderr: gort: stall: P0 held for
// stderr: goroutine 1 [running
/* A goroutine that cannot be preempted while another waits is reported, once. */
#include "../lib/test.h"

static int ran;
static void other(void *arg) { set(&ran, 1); }

static int body(int argc, char **argv) {
    gort_stats s;
    gort_pin();
    CHECK_EQ(gort_go(other, NULL), 0);
    do gort_stats_read(&s); /* the monitor has asked in vain, and asks again and again */
    while (s.preempt_requests == 0);
    int64_t end = gort_now() + GORT_SEC;
    while (gort_now() < end) continue; /* the report is due after 50 ms */
    CHECK_EQ(get(&ran), 0);
    gort_unpin();
    gort_yield();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
