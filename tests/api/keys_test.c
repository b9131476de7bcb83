/* A program that has taken all of libc's keys before the runtime asks for one: its values stay its
 * own. (libgort.so is loaded, and has its key, before the program can take them.) */
#include "../lib/test.h"
#include <limits.h>
#include <pthread.h>

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static int nkeys;

__attribute__((constructor(101))) static void take_all(void) {
    while (nkeys < PTHREAD_KEYS_MAX && pthread_key_create(&keys[nkeys], NULL) == 0) nkeys++;
}

static void *value_of(int i) { return (char *)keys + i; }

static void *calls(void *arg) {
    for (int i = 0; i < nkeys; i++) CHECK_EQ(pthread_setspecific(keys[i], value_of(i)), 0);
    gort_yield();
    for (int i = 0; i < nkeys; i++) CHECK(pthread_getspecific(keys[i]) == value_of(i));
    return NULL;
}

static void keeps(void *arg) {
    gort_lock_thread();
    for (int i = 0; i < nkeys; i++) CHECK(pthread_getspecific(keys[i]) == NULL);
    gort_wg_done(arg);
}
static int body(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 10; i++) {
        gort_wg_add(&wg, 1);
        CHECK_EQ(gort_go(keeps, &wg), 0);
    }
    gort_wg_wait(&wg);
    return 7;
}

int main(int argc, char **argv) {
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&t, NULL, calls, NULL), 0);
        CHECK_EQ(pthread_join(t, NULL), 0);
        CHECK_EQ(gort_main(body, argc, argv), 7);
    }
    return 0;
}
