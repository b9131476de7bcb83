// env: GORT_DEBUG=leak=100ms
// status: 0
// stderr: 7  chan receive,
// stderr:  with stuck
// stderr: goroutines blocked for more than 100ms
/* Goroutines that wait for ever are reported by the monitor, grouped by where they were started,
 * also while every P is idle. */
#include "../lib/test.h"

#include <unistd.h>

static gort_chan *never;
static void stuck(void *arg) {
    gort_chan_recv(never, NULL);
    __asm__ volatile(""); /* no tail call */
}

static int body(int argc, char **argv) {
    char text[8192];
    size_t n = 0;
    int ends[2], err = dup(2);
    CHECK(err >= 0 && pipe(ends) == 0);
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 7; i++) CHECK_EQ(gort_go(stuck, NULL), 0);
    CHECK_EQ(dup2(ends[1], 2), 2);
    do { /* the first report may come before all of them have waited long enough */
        ssize_t got = gort_read(ends[0], text + n, sizeof text - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
        text[n] = 0;
    } while (strstr(text, "  7  chan receive, ") == NULL && n < sizeof text - 1);
    dup2(err, 2);
    fputs(text, stderr);
    return strstr(text, "  7  chan receive, ") ? 0 : 1;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
