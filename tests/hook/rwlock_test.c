/* Reader-writer locks of pthreads. */
#include "hook.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int readers, writers, done, most;

static void reader(void *arg) {
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
        int n = add(&readers, 1);
        if (n > get(&most)) set(&most, n);
        CHECK_EQ(get(&writers), 0);
        usleep(100);
        add(&readers, -1);
        CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    }
    add(&done, 1);
}

static void writer(void *arg) {
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
        CHECK_EQ(add(&writers, 1), 1);
        CHECK_EQ(get(&readers), 0);
        usleep(100);
        CHECK_EQ(add(&writers, -1), 0);
        CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    }
    add(&done, 1);
}

static void *plain_writer(void *arg) {
    writer(arg);
    return NULL;
}

static void refused(void *arg) {
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    CHECK_EQ(pthread_rwlock_tryrdlock(&lock), EBUSY);
    CHECK_EQ(pthread_rwlock_trywrlock(&lock), EBUSY);
    CHECK_EQ(pthread_rwlock_timedrdlock(&lock, &soon), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_timedwrlock(&lock, &soon), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_clockrdlock(&lock, CLOCK_REALTIME, &soon), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, &soon), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_clockwrlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &soon), EINVAL);
    add(&done, 1);
    soon.tv_sec += 1000;
    CHECK_EQ(pthread_rwlock_timedrdlock(&lock, &soon), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_timedwrlock(&lock, &soon), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_sec += 1000;
    CHECK_EQ(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &soon), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &soon), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    add(&done, 1);
}

/* A goroutine that takes the lock where it cannot park is the writer, not the thread it is on: it
 * is refused a second lock, and may unlock on any thread. */
static int write_lock(int how) {
    struct timespec late;
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 1000;
    return how == 0   ? pthread_rwlock_wrlock(&lock)
           : how == 1 ? pthread_rwlock_timedwrlock(&lock, &late)
                      : pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, &late);
}

static int taking;
static long takes(void *arg) {
    set(&taking, 1);
    return write_lock(*(int *)arg);
}

static void in_blocking_call(void *how) {
    CHECK_EQ(gort_blocking(takes, how), 0);
    CHECK_EQ(write_lock(*(int *)how), EDEADLK);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    add(&done, 1);
}

static void pinned(void *how) {
    gort_pin();
    CHECK_EQ(write_lock(*(int *)how), 0);
    gort_unpin();
    CHECK_EQ(write_lock(*(int *)how), EDEADLK);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    add(&done, 1);
}

static void writer_is_the_goroutine(void) {
    for (int how = 0; how < 3; how++) {
        set(&done, 0);
        gort_go(in_blocking_call, &how); /* the lock is free */
        wait_until(get(&done) == 1);
        gort_go(pinned, &how);
        wait_until(get(&done) == 2);
        set(&taking, 0);
        CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
        gort_go(in_blocking_call, &how);
        wait_until(get(&taking));
        gort_sleep(5 * GORT_MS); /* the lock is taken; most likely it waits in libc */
        CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
        wait_until(get(&done) == 3);
    }
    CHECK_EQ(pthread_rwlock_trywrlock(&lock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
}

/* Where writers are preferred, one that waits comes before readers that come later. */
static pthread_rwlock_t preferring;
static void reads_once(void *arg) {
    CHECK_EQ(pthread_rwlock_rdlock(&preferring), 0);
    CHECK_EQ(pthread_rwlock_unlock(&preferring), 0);
    add(&done, 1);
}
static void writes_once(void *arg) {
    CHECK_EQ(pthread_rwlock_wrlock(&preferring), 0);
    CHECK_EQ(pthread_rwlock_unlock(&preferring), 0);
    add(&done, 1);
}
static void writers_preferred(void) {
    pthread_rwlockattr_t a;
    CHECK_EQ(pthread_rwlockattr_init(&a), 0);
    CHECK_EQ(pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), 0);
    CHECK_EQ(pthread_rwlock_init(&preferring, &a), 0);
    set(&done, 0);
    CHECK_EQ(pthread_rwlock_rdlock(&preferring), 0);
    gort_go(writes_once, NULL);
    wait_for_waiting("sync.RWMutex.Lock", 1);
    gort_go(reads_once, NULL);
    wait_for_waiting("sync.RWMutex.RLock", 1); /* behind the writer */
    CHECK_EQ(pthread_rwlock_unlock(&preferring), 0);
    wait_until(get(&done) == 2);
    CHECK_EQ(pthread_rwlock_destroy(&preferring), 0);
}

static int run(int argc, char **argv) {
    pthread_t plain;
    CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
    gort_go(refused, NULL);
    wait_until(get(&done) == 1);
    wait_for_waiting("sync.RWMutex.RLock", 1);
    CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
    wait_until(get(&done) == 2);
    set(&done, 0);
    for (int i = 0; i < 40; i++) gort_go(i % 4 ? reader : writer, NULL);
    CHECK_EQ(pthread_create(&plain, NULL, plain_writer, NULL), 0);
    wait_until(get(&done) == 41);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_GE(get(&most), 1);
    writer_is_the_goroutine();
    writers_preferred();
    CHECK_EQ(pthread_rwlock_destroy(&lock), 0);
    return 0;
}
HOOK_MAIN(run)
