/* More goroutines compute inside malloc than it has arenas. The one that holds an arena's lock was
 * preempted there, and the maker of threads waits for that lock. It comes to its turn, wherever it
 * is queued, and main wakes. */
#include "../lib/test.h"
#include <stdlib.h>

enum { CROWD = 100 };
static int enough;

static void allocates(void *arg) {
    void *kept[64] = {0};
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    while (!get(&enough)) {
        uint64_t r = test_random(&seed);
        void **at = &kept[r % 64];
        free(*at);
        *at = *at ? NULL : malloc(r >> 8 & 4095);
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
}

static int crowded(int argc, char **argv) {
    gort_wg wg = {0};
    for (uintptr_t i = 1; i <= CROWD; i++) CHECK_EQ(gort_wg_go(&wg, allocates, (void *)i), 0);
    for (int i = 0; i < 3; i++) gort_sleep(100 * GORT_MS);
    set(&enough, 1);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(crowded, argc, argv); }
