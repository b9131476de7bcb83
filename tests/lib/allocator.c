/*
 * For tests/script/hook_allocator.sh: an allocator that keeps something for each thread, as all of
 * them do, and ends the program where a second goroutine enters it on the same thread. It holds its
 * lock over a sleep, so that others have to wait for it. Its first call, which comes before the
 * hook is loaded where it is linked behind it, makes a key: where that call comes back for memory
 * it finds itself inside. -DPROGRAM: goroutines that allocate.
 */
#define _GNU_SOURCE 1
#ifndef PROGRAM
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER, turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int word;
static __thread int inside __attribute__((tls_model("initial-exec")));
static struct timespec moment = {0, 100000};

static void *volatile first;
static __attribute__((constructor)) void allocator_begins(void) {
    sem_init(&sem, 0, 1);
    first = malloc(1);
}

/* Every call that an allocator might begin with. */
static void allocator_first(void) {
    pthread_key_t key;
    pthread_key_create(&key, NULL);
    pthread_setspecific(key, &key);
    pthread_getspecific(key);
    pthread_mutex_lock(&common);
    pthread_mutex_unlock(&common);
    pthread_cond_signal(&never);
    pthread_cond_broadcast(&never);
}

static void wait_somehow(unsigned how) {
    struct timespec past = {0, 0};
    switch (how % 6) {
    case 0:
        pthread_mutex_lock(&common);
        nanosleep(&moment, NULL);
        pthread_mutex_unlock(&common);
        break;
    case 1:
        while (sem_wait(&sem) != 0) {}
        usleep(100);
        sem_post(&sem);
        break;
    case 2:
        pthread_rwlock_wrlock(&rw);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
        pthread_rwlock_unlock(&rw);
        break;
    case 3: syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &moment); break;
    case 4:
        pthread_mutex_lock(&turn);
        pthread_cond_timedwait(&never, &turn, &past);
        pthread_mutex_unlock(&turn);
        break;
    default: sched_yield();
    }
}

void *malloc(size_t n) {
    static const char text[] = "two are inside malloc on one thread\n";
    static unsigned count, begun;
    int e = errno;
    if (inside++ > 0) {
        (void)!write(2, text, sizeof text - 1);
        _exit(1);
    }
    if (!__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED)) allocator_first();
    if (n == 777) wait_somehow(__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    inside--;
    errno = e;
    return __libc_malloc(n);
}
#else
#include <gort.h>
#include <stdlib.h>

static void *volatile kept;
static void allocates(void *arg) {
    for (int i = 0; i < 60; i++) {
        void *p = malloc(777);
        kept = p;
        free(p);
        gort_yield();
    }
}
static int run(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 40; i++) gort_wg_go(&wg, allocates, NULL);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
#endif
