/* gort_maxprocs: the value of the environment, changes while goroutines run, and what it bounds. */
#include "../lib/test.h"

static int stop, inside, most, highest;

/* Runs pinned for a moment: at most maxprocs are inside at once, on Ps numbered below it. */
static void busy(void *arg) {
    while (!get(&stop)) {
        int id = gort_pin();
        int now = add(&inside, 1);
        for (volatile int i = 0; i < 200; i++) {}
        if (now > get(&most)) set(&most, now);
        if (id > get(&highest)) set(&highest, id);
        add(&inside, -1);
        gort_unpin();
        gort_yield();
    }
}

static void bounded_by(int n) {
    set(&most, 0);
    set(&highest, 0);
    for (int i = 0; i < 300; i++) {
        gort_yield();
        CHECK_LE(get(&most), n);
        CHECK_LT(get(&highest), n);
    }
}

static int body(int argc, char **argv) {
    int was = test_procs();
    if (was) CHECK_EQ(gort_maxprocs(0), was);
    else was = gort_maxprocs(0);
    CHECK_EQ(gort_maxprocs(-7), was);
    CHECK_EQ(gort_maxprocs(3), was);
    CHECK_EQ(gort_maxprocs(0), 3);
    CHECK_EQ(gort_maxprocs(3), 3);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_go(busy, NULL), 0);
    static const int sizes[] = {1, 4, 1, 2, 16, 3, 1};
    int before = 3;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_EQ(gort_maxprocs(sizes[i]), before);
        before = sizes[i];
        gort_stats s;
        gort_stats_read(&s);
        CHECK_EQ(s.maxprocs, before);
        bounded_by(before);
    }
    set(&stop, 1);
    wait_until(gort_count() == 1); /* none was lost with the Ps */
    CHECK_EQ(gort_maxprocs(5000), before);
    CHECK_EQ(gort_maxprocs(1), 1024);
    CHECK_EQ(gort_maxprocs(0), 1);
    return 0;
}

static int seven(int argc, char **argv) { return gort_maxprocs(0); }

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(body, argc, argv), 0);
    setenv("GORT_MAXPROCS", "7", 1); /* read anew by each start */
    CHECK_EQ(gort_main(seven, argc, argv), 7);
    return 0;
}
