/* Mutexes with a priority protocol, robust ones and shared ones: they exclude, know their owners,
 * and the next owner hears of a dead one; of each type, and whoever waits. */
#include "threads_test.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 8, ROUNDS = 300 };
typedef struct Kind {
    int type, protocol, robust, shared;
} Kind;
typedef struct Shared {
    pthread_mutex_t mutex;
    int inside, sum;
} Shared;
static Shared *s;

static void *counts(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(pthread_mutex_lock(&s->mutex) == 0);
        CHECK(s->inside++ == 0);
        s->sum++;
        if (i % 16 == 0) usleep(10);
        CHECK(--s->inside == 0);
        CHECK(pthread_mutex_unlock(&s->mutex) == 0);
        if (i % 8 == 0) sched_yield();
    }
    return NULL;
}

static void *another(void *arg) {
    const Kind *k = arg;
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 20000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    CHECK(pthread_mutex_trylock(&s->mutex) == EBUSY);
    CHECK(pthread_mutex_timedlock(&s->mutex, &at) == ETIMEDOUT);
    if (k->type != PTHREAD_MUTEX_NORMAL || k->robust)
        CHECK(pthread_mutex_unlock(&s->mutex) == EPERM);
    return NULL;
}

static void owners(Kind *k) {
    pthread_t thread;
    CHECK(pthread_mutex_lock(&s->mutex) == 0);
    int again = k->type == PTHREAD_MUTEX_NORMAL ? 0 : pthread_mutex_lock(&s->mutex);
    CHECK(again == (k->type == PTHREAD_MUTEX_ERRORCHECK ? EDEADLK : 0));
    CHECK(pthread_create(&thread, NULL, another, k) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    if (k->type == PTHREAD_MUTEX_RECURSIVE) CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    if (k->type != PTHREAD_MUTEX_NORMAL) CHECK(pthread_mutex_unlock(&s->mutex) == EPERM);
}

static int begun; /* atomic */
static void *dies(void *arg) {
    CHECK(pthread_mutex_lock(&s->mutex) == 0);
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    usleep(10000);
    if (arg) pthread_exit(NULL);
    return NULL;
}
static void *inherits(void *arg) {
    wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
    CHECK(pthread_mutex_lock(&s->mutex) == EOWNERDEAD);
    if (arg) CHECK(pthread_mutex_consistent(&s->mutex) == 0);
    CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    return NULL;
}

/* The owner dies while another waits for it. */
static void deaths(void) {
    for (int round = 0; round < 4; round++) {
        pthread_t threads[2];
        void *last = round == 3 ? NULL : s;
        begun = 0;
        CHECK(pthread_create(&threads[0], NULL, inherits, last) == 0);
        CHECK(pthread_create(&threads[1], NULL, dies, round & 1 ? s : NULL) == 0);
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        if (last) CHECK(pthread_mutex_lock(&s->mutex) == 0);
        else CHECK(pthread_mutex_lock(&s->mutex) == ENOTRECOVERABLE);
        if (last) CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    }
}

static void all(Kind k) {
    pthread_mutexattr_t attr;
    pthread_t threads[THREADS];
    *s = (Shared){.sum = 0};
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, k.type) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attr, k.protocol) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, k.robust) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, k.shared) == 0);
    CHECK(pthread_mutex_init(&s->mutex, &attr) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, counts, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(s->sum == THREADS * ROUNDS);
    owners(&k);
    if (k.robust) deaths();
    CHECK(pthread_mutex_destroy(&s->mutex) == 0);
}

/* A child that shares the mutex, and has its own number for its first thread. */
static void between_processes(void) {
    pthread_mutexattr_t attr;
    int status;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    CHECK(pthread_mutex_init(&s->mutex, &attr) == 0 && pthread_mutex_lock(&s->mutex) == 0);
    pid_t child = fork();
    if (child == 0) {
        int r = pthread_mutex_lock(&s->mutex);
        _exit(r == 0 ? pthread_mutex_unlock(&s->mutex) : r);
    }
    usleep(20000);
    CHECK(waitpid(child, &status, WNOHANG) == 0);
    CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK};
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(s != MAP_FAILED);
    for (int i = 0; i < 3; i++)
        for (int bits = 0; bits < 8; bits++)
            all((Kind){types[i], bits & 1 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE,
                       bits & 2 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED,
                       bits & 4 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE});
    between_processes();
    return 0;
}
