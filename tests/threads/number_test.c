/* A thread has a number of its own: what one that has ended left locked belongs to none that comes
 * later, neither by the error-checking nor by the recursive kind, nor a lock for writing. */
#include "threads_test.h"

enum { LATER = 3000 };
static pthread_mutex_t checks, counts;
static pthread_rwlock_t writes = PTHREAD_RWLOCK_INITIALIZER;
static pid_t first;

static void *holds(void *arg) {
    first = gettid();
    CHECK(pthread_mutex_lock(&checks) == 0 && pthread_mutex_lock(&counts) == 0);
    CHECK(pthread_rwlock_wrlock(&writes) == 0);
    return NULL;
}

static void *comes_later(void *arg) {
    CHECK(gettid() != first);
    CHECK(pthread_mutex_trylock(&checks) == EBUSY && pthread_mutex_unlock(&checks) == EPERM);
    CHECK(pthread_mutex_trylock(&counts) == EBUSY && pthread_mutex_unlock(&counts) == EPERM);
    CHECK(pthread_rwlock_trywrlock(&writes) == EBUSY);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(pthread_rwlock_timedwrlock(&writes, &now) == ETIMEDOUT);
    return NULL;
}

static void with(void *(*fn)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fn, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void kind_is(pthread_mutex_t *mutex, int kind) {
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0 && pthread_mutexattr_settype(&attr, kind) == 0);
    CHECK(pthread_mutex_init(mutex, &attr) == 0);
}

int main(void) {
    kind_is(&checks, PTHREAD_MUTEX_ERRORCHECK);
    kind_is(&counts, PTHREAD_MUTEX_RECURSIVE);
    with(holds);
    for (int i = 0; i < LATER; i++) with(comes_later);
    return 0;
}
