/* A mutex is in use while a thread waits with it at a condition: pthread_mutex_destroy says so. */
#include "threads_test.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *waits(void *arg) {
    pthread_mutex_lock(&mutex);
    waiting = 1;
    while (!go) CHECK(pthread_cond_wait(&cond, &mutex) == 0);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
static void *not_owner(void *arg) {
    int r = pthread_cond_wait(&cond, &mutex);
    CHECK(r == EPERM);
    return NULL;
}

static void in_use(int type) {
    pthread_mutexattr_t attr;
    pthread_t thread;
    waiting = go = 0;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    CHECK(pthread_mutex_init(&mutex, &attr) == 0);
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    for (int seen = 0; !seen; sched_yield()) {
        pthread_mutex_lock(&mutex);
        seen = waiting;
        pthread_mutex_unlock(&mutex);
    }
    CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_join(thread, NULL) == 0);
    if (type == PTHREAD_MUTEX_ERRORCHECK) {
        CHECK(pthread_create(&thread, NULL, not_owner, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(pthread_mutex_destroy(&mutex) == 0);
}

int main(void) {
    in_use(PTHREAD_MUTEX_NORMAL);
    in_use(PTHREAD_MUTEX_RECURSIVE);
    in_use(PTHREAD_MUTEX_ERRORCHECK);
    return 0;
}
