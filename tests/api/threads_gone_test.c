/*
 * When gort_main returns the threads of the runtime are gone, with the destructors of what
 * libraries keep for a thread: beside them the program's own end would begin (exit, and the
 * destructors of libraries).
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
    if (pthread_getspecific(key) == NULL) {
        add(&begun, 1);
        CHECK_EQ(pthread_setspecific(key, &key), 0);
    }
    gort_yield();
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
    return 0;
}
