/* Mutexes of pthreads, between goroutines of one thread, of several, and plain threads. */
#include "hook.h"

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER, recursive, checking;
static int done, counter, inside;

static void init(pthread_mutex_t *mutex, int type) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, type);
    CHECK_EQ(pthread_mutex_init(mutex, &a), 0);
}

/* Held over a call that lets others run on this thread: with libc's own lock they would wait on
 * the very thread that has to go on. */
static void holder(void *arg) {
    pthread_mutex_t *mutex = arg;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pthread_mutex_lock(mutex), 0);
        CHECK_EQ(add(&inside, 1), 1);
        counter++;
        usleep(100);
        CHECK_EQ(add(&inside, -1), 0);
        CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    }
    add(&done, 1);
}

static void *plain_holder(void *arg) {
    holder(arg);
    return NULL;
}

static void exclusion(pthread_mutex_t *mutex) {
    pthread_t plain;
    set(&done, 0);
    counter = 0;
    for (int i = 0; i < 40; i++) gort_go(holder, mutex);
    CHECK_EQ(pthread_create(&plain, NULL, plain_holder, mutex), 0);
    wait_until(get(&done) == 41);
    CHECK_EQ(counter, 41 * 5);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_LT(threads(), 40);
}

static void nested(void) {
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    CHECK_EQ(pthread_mutex_trylock(&recursive), 0);
    usleep(100);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
    CHECK_EQ(pthread_mutex_lock(&checking), 0);
    CHECK_EQ(pthread_mutex_lock(&checking), EDEADLK);
    CHECK_EQ(pthread_mutex_trylock(&checking), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&checking), 0);
    CHECK_EQ(pthread_mutex_unlock(&checking), EPERM);
}

static void others(void *arg) {
    pthread_mutex_t *mutex = arg;
    struct timespec soon;
    CHECK_EQ(pthread_mutex_trylock(mutex), EBUSY);
    clock_gettime(CLOCK_REALTIME, &soon);
    CHECK_EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
    soon.tv_nsec += 5000000;
    if (soon.tv_nsec >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
    CHECK_EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &soon);
    CHECK_EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    CHECK_EQ(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &soon), EINVAL);
    if (mutex != &common) CHECK_EQ(pthread_mutex_unlock(mutex), EPERM);
    add(&done, 1);
    soon.tv_sec += 1000;
    CHECK_EQ(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1000;
    CHECK_EQ(pthread_mutex_timedlock(mutex, &soon), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    add(&done, 1);
}

/* Held by this goroutine: another one of the same thread does not get in. */
static void held(pthread_mutex_t *mutex) {
    set(&done, 0);
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    gort_go(others, mutex);
    wait_until(get(&done) == 1);
    wait_for_waiting("sync.Mutex.Lock", 1);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    wait_until(get(&done) == 2);
}

static int run(int argc, char **argv) {
    init(&recursive, PTHREAD_MUTEX_RECURSIVE);
    init(&checking, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t *all[] = {&common, &recursive, &checking};
    nested();
    for (int i = 0; i < 3; i++) {
        held(all[i]);
        exclusion(all[i]);
        CHECK_EQ(pthread_mutex_destroy(all[i]), 0);
    }
    return 0;
}
HOOK_MAIN(run)
