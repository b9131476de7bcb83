/* Condition variables and semaphores of pthreads. */
#include "hook.h"
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, back = PTHREAD_COND_INITIALIZER, mono;
static int done, items, waiting;
static sem_t sem;

static void consumer(void *arg) {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    waiting++;
    while (items == 0) CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
    items--;
    waiting--;
    CHECK_EQ(pthread_cond_signal(&back), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    add(&done, 1);
}

static void *plain_consumer(void *arg) {
    consumer(arg);
    return NULL;
}

static int locked_read(int *at) {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    int v = *at;
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return v;
}

static void put(int n, bool broadcast) {
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    items += n;
    if (broadcast) CHECK_EQ(pthread_cond_broadcast(&cond), 0);
    else
        while (n-- > 0) CHECK_EQ(pthread_cond_signal(&cond), 0);
    while (items > 0) CHECK_EQ(pthread_cond_wait(&back, &mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void *plain_put(void *arg) {
    put(5, false);
    put(5, true);
    return NULL;
}

static void conditions(void) {
    pthread_t plain[3];
    for (int i = 0; i < 40; i++) gort_go(consumer, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&plain[i], NULL, plain_consumer, NULL), 0);
    wait_until(locked_read(&waiting) == 42);
    CHECK_GE(waiting_for("sync.Cond.Wait"), 30);
    put(10, false);
    wait_until(get(&done) == 10);
    CHECK_EQ(pthread_create(&plain[2], NULL, plain_put, NULL), 0);
    CHECK_EQ(pthread_join(plain[2], NULL), 0);
    put(22, true);
    wait_until(get(&done) == 42);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(plain[i], NULL), 0);
}

static void timeouts(void) {
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    CHECK_EQ(pthread_cond_init(&mono, &a), 0);
    struct timespec at;
    int64_t from = gort_now();
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 1;
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &at), ETIMEDOUT);
    CHECK_GE(gort_now() - from, 900 * GORT_MS);
    clock_gettime(CLOCK_MONOTONIC, &at);
    CHECK_EQ(pthread_cond_timedwait(&mono, &mutex, &at), ETIMEDOUT);
    CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    at.tv_nsec = -1;
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &at), EINVAL);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void taker(void *arg) {
    for (int i = 0; i < 10; i++) CHECK_EQ(sem_wait(&sem), 0);
    add(&done, 1);
}

static void *plain_poster(void *arg) {
    for (int i = 0; i < 200; i++) CHECK_EQ(sem_post(&sem), 0);
    return NULL;
}

static void semaphores(void) {
    pthread_t plain;
    struct timespec at;
    CHECK_EQ(sem_init(&sem, 0, 0), 0);
    CHECK_FAILS(sem_trywait(&sem), EAGAIN);
    clock_gettime(CLOCK_REALTIME, &at);
    CHECK_FAILS(sem_timedwait(&sem, &at), ETIMEDOUT);
    CHECK_FAILS(sem_clockwait(&sem, CLOCK_MONOTONIC, &(struct timespec){0}), ETIMEDOUT);
    CHECK_FAILS(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
    set(&done, 0);
    for (int i = 0; i < 40; i++) gort_go(taker, NULL);
    wait_for_waiting("semacquire", 40);
    CHECK_EQ(pthread_create(&plain, NULL, plain_poster, NULL), 0);
    for (int i = 0; i < 200; i++) CHECK_EQ(sem_post(&sem), 0);
    wait_until(get(&done) == 40);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    at.tv_sec += 1000;
    CHECK_EQ(sem_post(&sem), 0);
    CHECK_EQ(sem_timedwait(&sem, &at), 0);
    CHECK_EQ(sem_post(&sem), 0);
    CHECK_EQ(sem_clockwait(&sem, CLOCK_REALTIME, &at), 0);
    CHECK_FAILS(sem_trywait(&sem), EAGAIN);
}

static int run(int argc, char **argv) {
    conditions();
    timeouts();
    semaphores();
    CHECK_LT(threads(), 40);
    return 0;
}
HOOK_MAIN(run)
