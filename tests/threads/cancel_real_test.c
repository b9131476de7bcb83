/* Threads that stay the kernel's are cancelled: those that bring a stack, and, where the parent's
 * were goroutines, those of a child of fork. */
#include "threads_test.h"

#include <semaphore.h>
#include <sys/wait.h>

enum { WAYS = 6 };
static char stack[256 << 10] __attribute__((aligned(4096)));
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t never;
static pthread_t forever;
static int pipes[2], begun, cleaned; /* atomic */

static void cleans(void *arg) { __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST); }
static void unlocks(void *mu) { CHECK(pthread_mutex_unlock(mu) == 0); }

static void *sleeps(void *arg) {
    for (;;) sem_wait(&never);
    return NULL;
}

static void *waits(void *how) {
    char c;
    pthread_cleanup_push(cleans, NULL);
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    switch ((intptr_t)how) {
    case 0: read(pipes[0], &c, 1); break;
    case 1: sem_wait(&never); break;
    case 2:
        pthread_mutex_lock(&mutex);
        pthread_cleanup_push(unlocks, &mutex);
        for (;;) pthread_cond_wait(&cond, &mutex);
        pthread_cleanup_pop(1);
        break;
    case 3:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        for (volatile long n = 0;; n++) {}
    case 4: sleep(1000); break;
    case 5: pthread_join(forever, NULL); break;
    }
    CHECK(!"cancelled");
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancels(pthread_attr_t *attr) {
    CHECK(pthread_create(&forever, NULL, sleeps, NULL) == 0);
    for (intptr_t how = 0; how < WAYS; how++) {
        pthread_t thread;
        void *value;
        begun = cleaned = 0;
        CHECK(pthread_create(&thread, attr, waits, (void *)how) == 0);
        wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
        CHECK(cleaned == 1);
    }
}

int main(void) {
    pthread_attr_t attr;
    int status;
    CHECK(pipe(pipes) == 0 && sem_init(&never, 0, 0) == 0 && pthread_attr_init(&attr) == 0);
    cancels(NULL);
    CHECK(pthread_attr_setstack(&attr, stack, sizeof stack) == 0);
    cancels(&attr);
    pid_t pid = fork();
    if (pid == 0) {
        cancels(NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}
