/* The monitor has a collection made when none has happened for a while (GORT_DEBUG=forcegc), also
 * in a program that sleeps, and none where nothing was allocated. A deadlock is still found. */
#include <gc.h>
#include "../lib/test.h"

static int body(int argc, char **argv) {
    gort_stats s;
    unsigned long before = GC_get_gc_no();
    *(volatile char *)GC_MALLOC(1000) = 1;
    wait_until(GC_get_gc_no() > before); /* nobody but the monitor asks */
    gort_stats_read(&s);
    CHECK_GE(s.forced_collections, 1);
    if (argc > 1) gort_chan_recv(NULL, NULL);
    return 0;
}

int main(int argc, char **argv) {
    GC_INIT();
    return gort_main(body, argc, argv);
}
