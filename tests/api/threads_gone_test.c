/*
 * When gort_main returns the threads of the runtime are gone, with the destructors of what
 * libraries keep for a thread: beside them the program's own end would begin (exit, and the
 * destructors of libraries). Also one that left earlier, with a goroutine that ended locked, while
 * other threads have begun since.
 */
#include "../lib/test.h"

#include <pthread.h>

enum { RUNTIMES = 20, MANY = 50 };
static pthread_key_t key;
static int begun, ended;

static void destroy(void *value) {
    struct timespec nap = {0, 2000000}; /* gives a main that goes on the time to show */
    nanosleep(&nap, NULL);
    add(&ended, 1);
}

static void uses_a_library(void *arg) {
    gort_pin(); /* the value is this thread's */
    if (pthread_getspecific(key) == NULL) {
        add(&begun, 1);
        CHECK_EQ(pthread_setspecific(key, &key), 0);
    }
    gort_unpin();
    gort_yield();
}

enum { LATER = 20 };
static pthread_key_t slow;
static int leaving, main_returns, left;

static void destroy_slowly(void *value) {
    set(&leaving, 1);
    while (!get(&main_returns)) sched_yield();
    struct timespec nap = {0, 2000000}; /* as above */
    nanosleep(&nap, NULL);
    set(&left, 1);
}

static void ends_locked(void *arg) {
    gort_lock_thread();
    CHECK_EQ(pthread_setspecific(slow, &slow), 0);
}

static void needs_a_thread(void *arg) {
    gort_lock_thread();
    gort_wg_done(arg);
    gort_sleep(3600 * GORT_SEC);
}

static int threads_come_and_go(int argc, char **argv) {
    gort_wg wg = {0};
    CHECK_EQ(gort_go(ends_locked, NULL), 0);
    while (!get(&leaving)) gort_yield();
    gort_wg_add(&wg, LATER);
    for (int i = 0; i < LATER; i++) CHECK_EQ(gort_go(needs_a_thread, &wg), 0);
    gort_wg_wait(&wg);
    set(&main_returns, 1);
    return 0;
}

static int app(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < MANY; i++) CHECK_EQ(gort_wg_go(&wg, uses_a_library, NULL), 0);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(pthread_key_create(&key, destroy), 0);
    for (int i = 0; i < RUNTIMES; i++) {
        CHECK_EQ(gort_main(app, argc, argv), 0);
        CHECK_EQ(get(&ended), get(&begun));
    }
    CHECK_GT(begun, 0);
    CHECK_EQ(pthread_key_create(&slow, destroy_slowly), 0);
    CHECK_EQ(gort_main(threads_come_and_go, argc, argv), 0);
    CHECK(get(&left));
    return 0;
}
