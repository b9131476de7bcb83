/*
 * Keys that the allocator makes, the object that malloc is in, are the thread's (threadkeys.c),
 * whichever function makes them. This program is one. A goroutine's value would be destroyed at the
 * goroutine's end; a thread's stays as long as the thread.
 */
#include "hook.h"
#include <threads.h>

extern void *__libc_malloc(size_t size);
void *malloc(size_t size) { return __libc_malloc(size); }

enum { CROWD = 20 };
static pthread_key_t by_pthread;
static tss_t by_c11;
static int destroyed;

static void destroy(void *value) { add(&destroyed, 1); }

static void sets(void *arg) {
    CHECK_EQ(pthread_setspecific(by_pthread, &destroyed), 0);
    CHECK_EQ(tss_set(by_c11, &destroyed), thrd_success);
}

static int run(int argc, char **argv) {
    gort_wg wg = {0};
    CHECK_EQ(pthread_key_create(&by_pthread, destroy), 0);
    CHECK_EQ(tss_create(&by_c11, destroy), thrd_success);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_wg_go(&wg, sets, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(get(&destroyed), 0);
    return 0;
}
HOOK_MAIN(run)
