/* The world stops while goroutines are preempted inside malloc and the maker waits for malloc's
 * lock to make a thread. One arena without caches, so that all of them meet. */
#include "../lib/test.h"
#include <malloc.h>
#include <unistd.h>

static int over, born, allocate;

static void allocates(void *arg) {
    void *at[64];
    add(&allocate, 1);
    while (!get(&over)) {
        for (int i = 0; i < 64; i++) at[i] = malloc((size_t)(2000 + i * 97));
        for (int i = 0; i < 64; i++) free(at[i]);
        malloc_trim(0);
    }
    add(&allocate, -1);
}
static void ends_its_thread(void *arg) {
    gort_lock_thread();
    add(&born, 1);
    gort_sleep(2 * GORT_MS);
    if (!get(&over)) gort_go(ends_its_thread, NULL);
}

static int app(int argc, char **argv) {
    int64_t end = gort_now() + stress_seconds() * GORT_SEC;
    for (int i = 0; i < gort_maxprocs(0) + 2; i++) gort_go(allocates, NULL);
    for (int i = 0; i < 30; i++) gort_go(ends_its_thread, NULL);
    for (int worlds = 0; gort_now() < end; worlds++) {
        gort_stop_world();
        gort_start_world();
        gort_sleep((1 + worlds % 13) * GORT_MS);
    }
    set(&over, 1);
    wait_until(get(&born) > 0 && get(&allocate) == 0); /* what they hold at the end is lost */
    return 0;
}

int main(int argc, char **argv) {
    if (getenv("GLIBC_TUNABLES") == NULL) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
        execv("/proc/self/exe", argv);
    }
    return gort_main(app, argc, argv);
}
