/* main leaves by pthread_exit; the program goes on, and ends with its last thread, by exit(0). */
#include "threads_test.h"

static pthread_t first;
static int destroyed; /* by main's end */
static int ended;     /* the last thread has */

static void destroy(void *value) { __atomic_store_n(&destroyed, 1, __ATOMIC_SEQ_CST); }
static void at_exit(void) {
    if (!destroyed || !ended) _exit(3);
    if (write(1, "the end\n", 8) != 8) _exit(4);
}

static void *last(void *arg) {
    void *value = NULL;
    CHECK(pthread_join(first, &value) == 0 && value == arg);
    CHECK(destroyed);
    usleep(20000);
    ended = 1;
    return NULL;
}

int main(void) {
    pthread_key_t key;
    pthread_t thread;
    first = pthread_self();
    atexit(at_exit);
    CHECK(pthread_key_create(&key, destroy) == 0 && pthread_setspecific(key, &key) == 0);
    CHECK(pthread_create(&thread, NULL, last, &first) == 0);
    CHECK(pthread_detach(thread) == 0);
    pthread_exit(&first);
}
