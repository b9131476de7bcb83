/* Ids count up from 1 and are never given twice in a run: also with Ps that gort_maxprocs has
 * added, which in a second run must not go on with ids of the first. */
#include "../lib/test.h"

enum { PS = 4, MOST = 180 };

static uint64_t ids[PS * MOST];
/* per_p: more in each run, so that the ids of the last come again */
static int on_p[PS], nids, noted, stop, running, per_p;

static void note_id(void *arg) {
    ids[add(&nids, 1) - 1] = gort_id();
    add(&noted, 1); /* only now it may be read */
}

/* Starts per_p goroutines from each P, whoever gets there. */
static void starter(void *arg) {
    while (!get(&stop)) {
        int p = gort_pin();
        if (add(&on_p[p], 1) <= per_p) CHECK_EQ(gort_go(note_id, NULL), 0);
        gort_unpin();
        gort_yield();
    }
    add(&running, -1);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int body(int argc, char **argv) {
    memset(on_p, 0, sizeof on_p);
    nids = noted = stop = 0;
    running = PS * 2;
    CHECK_EQ(gort_id(), 1);
    gort_maxprocs(PS);
    for (int i = 0; i < PS * 2; i++) CHECK_EQ(gort_go(starter, NULL), 0);
    wait_until(get(&noted) == PS * per_p);
    set(&stop, 1);
    wait_until(get(&running) == 0);
    qsort(ids, (size_t)(PS * per_p), sizeof ids[0], by_value);
    CHECK_GT(ids[0], 1);
    for (int i = 1; i < PS * per_p; i++) CHECK_NE(ids[i], ids[i - 1]);
    return 0;
}

int main(int argc, char **argv) {
    for (per_p = 20; per_p <= MOST; per_p *= 3) CHECK_EQ(gort_main(body, argc, argv), 0);
    return 0;
}
