/* Threads begin, keep what is their own on whatever kernel thread they run, and end: by a return,
 * by pthread_exit, detached; and the next life on the same body finds nothing of the last. */
#include "threads_test.h"

#include <locale.h>
#include <threads.h>

enum { THREADS = 200, ROUNDS = 4 };
static __thread int mine = 7;
static __thread char zeroed[100];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static long sum;
static int destroyed, ended; /* atomic */

static void destroy(void *value) { __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST); }

static void *life(void *arg) {
    int number = (int)(intptr_t)arg;
    pthread_t self = pthread_self();
    CHECK(mine == 7 && zeroed[50] == 0 && pthread_getspecific(key) == NULL);
    CHECK(errno == 0 && uselocale(NULL) == LC_GLOBAL_LOCALE);
    mine = number;
    zeroed[50] = 1;
    CHECK(pthread_setspecific(key, &sum) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        pthread_mutex_unlock(&mutex);
        errno = number;
        if (i % 10 == 0) usleep(50);
        else sched_yield();
        CHECK(mine == number && pthread_equal(self, pthread_self()));
    }
    __atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
    if (number % 3 == 0) pthread_exit(arg);
    return arg;
}

static int c11_life(void *arg) {
    CHECK(mine == 7);
    mine = 8;
    if (arg) thrd_exit(4);
    return 3;
}

static void *on_itself(void *arg) {
    int r = pthread_join(pthread_self(), NULL);
    CHECK(r == EDEADLK || (r == EINVAL && arg)); /* detached */
    return NULL;
}

static void *waits(void *arg) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void) {
    static pthread_t threads[THREADS];
    pthread_t self = pthread_self();
    CHECK(getpid() == gettid());
    CHECK(pthread_key_create(&key, destroy) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (intptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, life, (void *)i) == 0);
        for (intptr_t i = 0; i < THREADS; i++) {
            void *value = NULL;
            CHECK(pthread_join(threads[i], &value) == 0 && value == (void *)i);
        }
        CHECK(destroyed == (round + 1) * THREADS);
    }
    CHECK(sum == 50 * THREADS * ROUNDS && mine == 7);

    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 100000);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[0], &attr, life, (void *)i) == 0);
    wait_until(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) == (ROUNDS + 1) * THREADS);

    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 20000000) % 1000000000;
    soon.tv_sec += soon.tv_nsec < 20000000;
    pthread_mutex_lock(&mutex);
    CHECK(pthread_create(&threads[0], NULL, waits, &soon) == 0);
    CHECK(pthread_tryjoin_np(threads[0], NULL) == EBUSY);
    CHECK(pthread_timedjoin_np(threads[0], NULL, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    void *value;
    CHECK(pthread_clockjoin_np(threads[0], &value, CLOCK_MONOTONIC, NULL) == 0 && value == &soon);

    CHECK(pthread_create(&threads[0], NULL, on_itself, NULL) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(pthread_create(&threads[0], NULL, on_itself, &mutex) == 0);
    CHECK(pthread_detach(threads[0]) == 0);

    thrd_t c11[2];
    int codes[2];
    for (int i = 0; i < 2; i++)
        CHECK(thrd_create(&c11[i], c11_life, i ? &mine : NULL) == thrd_success);
    for (int i = 0; i < 2; i++) CHECK(thrd_join(c11[i], &codes[i]) == thrd_success);
    CHECK(codes[0] == 3 && codes[1] == 4);
    CHECK(thrd_create(&c11[0], c11_life, NULL) == thrd_success);
    CHECK(thrd_detach(c11[0]) == thrd_success);
    CHECK(pthread_equal(self, pthread_self()) && getpid() == gettid());
    if (as_goroutines() && !emulated()) CHECK(kernel_threads() < 50);
    return 0;
}
