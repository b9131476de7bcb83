/* A handler that waits is cancelled there, over a wait of its thread's. For a condition: the
 * thread's cleanup handler finds the mutex locked, as libc's wait leaves it. At a barrier: the
 * thread ends. */
#include "threads_test.h"

#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int begun, inside, unlocked; /* atomic */

static void on_signal(int signo) {
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    for (;;) pause();
}
static void unlock(void *arg) {
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    __atomic_add_fetch(&unlocked, 1, __ATOMIC_SEQ_CST);
}
static void *waits(void *arg) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(unlock, NULL);
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    for (;;) pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *meets(void *arg) {
    pthread_barrier_t *barrier = arg;
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(barrier);
    return NULL;
}
static void cancel_meeting(void) {
    pthread_barrier_t barrier; /* afterwards libc's waits for the one that has gone */
    pthread_t thread;
    void *value;
    begun = inside = 0;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, meets, &barrier) == 0);
    wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
    usleep(1000); /* it waits, as a rule */
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    wait_until(__atomic_load_n(&inside, __ATOMIC_SEQ_CST));
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
}

int main(void) {
    enum { ROUNDS = 20 };
    struct sigaction act = {.sa_handler = on_signal};
    pthread_mutexattr_t checks;
    CHECK(pthread_mutexattr_init(&checks) == 0);
    CHECK(pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK) == 0);
    CHECK(pthread_mutex_init(&mutex, &checks) == 0);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    for (int round = 1; round <= ROUNDS; round++) {
        pthread_t thread;
        void *value;
        begun = inside = 0;
        CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
        wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
        CHECK(pthread_mutex_lock(&mutex) == 0); /* it waits for the condition */
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
        wait_until(__atomic_load_n(&inside, __ATOMIC_SEQ_CST));
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
        CHECK(__atomic_load_n(&unlocked, __ATOMIC_SEQ_CST) == round);
        cancel_meeting();
    }
    return 0;
}
