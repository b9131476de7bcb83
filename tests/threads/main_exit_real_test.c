/* main leaves by pthread_exit, and the last thread is one that brings its stack: the kernel's. The
 * program ends behind the destructors of that one, by exit(0). */
#include "threads_test.h"

static _Alignas(4096) char stack[256 << 10];
static pthread_key_t late;
static int ended; /* atomic */

static void ends(void *value) {
    usleep(10000);
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
}
static void at_exit(void) {
    if (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) _exit(3);
}

static void *ends_first(void *arg) { return arg; }
static void *last(void *arg) {
    CHECK(pthread_setspecific(late, stack) == 0);
    usleep(20000); /* main and the others have gone */
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_attr_t attr;
    atexit(at_exit);
    CHECK(pthread_key_create(&late, ends) == 0);
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, sizeof stack) == 0);
    CHECK(pthread_create(&thread, NULL, ends_first, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, &attr, last, NULL) == 0);
    CHECK(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}
