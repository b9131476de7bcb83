/*
 * Six threads use all that is hooked, and note each step with the time: the hash of the history.
 * In a simulation it is one for each seed (tests/script/threads_explore.sh). Addresses that malloc
 * gives are in it.
 */
#include "../threads_test.h"

#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { THREADS = 6, ROUNDS = 10, MESSAGE = 10 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, nested;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t sem;
static unsigned word; /* a futex's */
static int pipe_ends[2], sockets[2];
static unsigned long history = 5381;

static void note(unsigned long what) { history = history * 33 + what; }
static void step(int id, const char *what) {
    struct timespec now;
    note((unsigned long)id);
    while (*what) note((unsigned char)*what++);
    clock_gettime(CLOCK_MONOTONIC, &now);
    note((unsigned long)now.tv_nsec);
}

static void routine(void) {
    step(99, "once");
    usleep(10);
}

static void locks(int id) {
    pthread_mutex_lock(&mutex);
    step(id, "lock");
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 2; i++) pthread_mutex_lock(&nested);
    step(id, "nested");
    for (int i = 0; i < 2; i++) pthread_mutex_unlock(&nested);
    bool free_now = pthread_mutex_trylock(&mutex) == 0;
    step(id, free_now ? "free" : "busy");
    if (free_now) pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&rwlock);
    step(id, "read lock");
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    step(id, "write lock");
    pthread_rwlock_unlock(&rwlock);
    sem_wait(&sem);
    step(id, "semaphore");
    sem_post(&sem);
    pthread_once(&once, routine);
}

static void timed(int id) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 100000 * (id + 1);
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    step(id, pthread_cond_timedwait(&cond, &mutex, &at) == 0 ? "signal" : "timeout");
    pthread_mutex_unlock(&mutex);
    if (id % 2) pthread_cond_signal(&cond);
    else pthread_cond_broadcast(&cond);
    sched_yield();
    usleep((unsigned)(50 * id));
}

static void *short_life(void *arg) {
    void *block = malloc(100 + (size_t)arg);
    step((int)(intptr_t)arg, "short life");
    note((unsigned long)block);
    free(block);
    return arg;
}
static void starts(int id, int i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, short_life, (void *)(intptr_t)(id * 100 + i)) == 0);
    if (i % 3) CHECK(pthread_join(thread, NULL) == 0);
    else CHECK(pthread_detach(thread) == 0);
}

static void futexes(int id, int flag) {
    struct timespec most = {0, 200000};
    __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE | flag, 1, NULL, NULL, 0);
    syscall(SYS_futex, &word, FUTEX_WAIT | flag, word, &most, NULL, 0);
    step(id, "futex");
}

static void writes(int id) {
    char message[MESSAGE] = "";
    CHECK(write(pipe_ends[1], message, 1) == 1);
    step(id, "wrote");
    CHECK(send(sockets[0], message, MESSAGE, 0) == MESSAGE);
}
static void reads(int id) {
    char message[MESSAGE];
    CHECK(read(pipe_ends[0], message, 1) == 1);
    step(id, "read");
    for (ssize_t got = 0, n; got < MESSAGE; got += n)
        CHECK((n = recv(sockets[1], message, (size_t)(MESSAGE - got), 0)) > 0);
    step(id, "received");
}

static void *worker(void *arg) {
    int id = (int)(intptr_t)arg;
    struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};
    for (int i = 0; i < ROUNDS; i++) {
        locks(id);
        timed(id);
        starts(id, i);
        futexes(id, i % 2 ? FUTEX_PRIVATE_FLAG : 0);
        if (id % 2) writes(id);
        else reads(id);
        step(id, poll(&p, 1, 1) > 0 ? "ready" : "not ready");
        pthread_barrier_wait(&barrier);
        step(id, "barrier");
    }
    return arg;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_mutexattr_t attr;
    struct timeval now;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(&nested, &attr) == 0 && sem_init(&sem, 0, 2) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    gettimeofday(&now, NULL);
    printf("%016lx %ld.%06ld %ld\n", history, (long)now.tv_sec, (long)now.tv_usec,
           (long)time(NULL));
    return 0;
}
