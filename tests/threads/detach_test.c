/* pthread_detach of a thread that has ended, that ends this moment, that somebody joins: the next
 * life on its body is joined when it has ended, and not before. */
#include "threads_test.h"

enum { ROUNDS = 300 };
static int ended, released; /* atomic */

static void *ends(void *arg) {
    __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *waits(void *arg) {
    while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST)) usleep(100);
    return arg;
}

static void *joins(void *arg) {
    void *value;
    CHECK(pthread_join(*(pthread_t *)arg, &value) == 0);
    return value;
}

/* Lives that begin after detached ones have ended. */
static void next_lives(void) {
    pthread_t thread;
    void *value = NULL;
    __atomic_store_n(&released, 0, __ATOMIC_SEQ_CST);
    CHECK(pthread_create(&thread, NULL, waits, &ended) == 0);
    CHECK(pthread_tryjoin_np(thread, &value) == EBUSY);
    __atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(thread, &value) == 0 && value == &ended);
}

int main(void) {
    pthread_t thread, joiner;
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_store_n(&ended, 0, __ATOMIC_SEQ_CST);
        CHECK(pthread_create(&thread, NULL, ends, NULL) == 0);
        if (round % 3) wait_until(__atomic_load_n(&ended, __ATOMIC_SEQ_CST));
        if (round % 3 == 1) usleep(300);
        CHECK(pthread_detach(thread) == 0);
        next_lives();
    }
    /* of one that is joined: its joiner has it */
    void *value = NULL;
    __atomic_store_n(&released, 0, __ATOMIC_SEQ_CST);
    CHECK(pthread_create(&thread, NULL, waits, &released) == 0);
    CHECK(pthread_create(&joiner, NULL, joins, &thread) == 0);
    usleep(20000);
    pthread_detach(thread);
    __atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(joiner, &value) == 0 && value == &released);
    return 0;
}
