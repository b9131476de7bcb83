// status: abort
// stderr: gort: fatal: unlock of unlocked mutex
/* Misuse is loud: every user unlocks twice; the last one's second unlock finds nobody's lock. */
#include "../lib/test.h"

static gort_mutex m;

static void twice(void *arg) {
    gort_mutex_lock(&m);
    gort_yield();
    gort_mutex_unlock(&m);
    gort_mutex_unlock(&m);
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 8; i++) CHECK_EQ(gort_wg_go(&wg, twice, NULL), 0);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
