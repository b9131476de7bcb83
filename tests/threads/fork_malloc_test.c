/* Threads fork while others are in the middle of malloc, whose locks fork takes. */
#include "threads_test.h"

#include <stdlib.h>
#include <sys/wait.h>

enum { ALLOCATE = 4, FORK = 4, FORKS = 20 };
static int over;            /* atomic */
static void *volatile last; /* the compiler leaves out what is freed at once */

static void *allocates(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        void *mine = last = malloc(1 + (size_t)rand_r(&seed) % 3000);
        free(mine);
    }
    return NULL;
}

static void *forks(void *arg) {
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            last = malloc(1000);
            _exit(i);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[ALLOCATE + FORK];
    for (int i = 0; i < ALLOCATE; i++)
        CHECK(pthread_create(&threads[i], NULL, allocates, (void *)(uintptr_t)i) == 0);
    for (int i = ALLOCATE; i < ALLOCATE + FORK; i++)
        CHECK(pthread_create(&threads[i], NULL, forks, NULL) == 0);
    for (int i = ALLOCATE; i < ALLOCATE + FORK; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < ALLOCATE; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
