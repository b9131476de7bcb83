/* A fork beside goroutines that are preempted inside malloc. libc's fork takes malloc's locks: who
 * has one needs a P to give it back. */
#include "../lib/waiting.h"
#include "../lib/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOPS = 4, FORKS = 20 };
static int over, allocated;
static void *volatile last; /* the compiler leaves out what is freed at once */

static void allocates(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    while (!get(&over)) {
        void *mine = last = malloc(1 + test_random(&seed) % 3000);
        free(mine);
        add(&allocated, 1);
    }
}

static void forks(void) {
    for (int i = 0; i < FORKS; i++) {
        int status, before = get(&allocated);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            free(malloc(1000));
            _exit(i);
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
        wait_until(get(&allocated) > before); /* others have been preempted, and go on */
    }
}

static long forks_in_a_call(void *arg) {
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) _exit(i);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    return 0;
}
static void *forks_plainly(void *arg) {
    forks_in_a_call(NULL);
    return NULL;
}

static int app(int argc, char **argv) {
    pthread_t plain;
    gort_wg wg = {0};
    for (uintptr_t i = 1; i <= LOOPS; i++) CHECK_EQ(gort_wg_go(&wg, allocates, (void *)i), 0);
    forks();
    CHECK_EQ(gort_blocking(forks_in_a_call, NULL), 0);
    CHECK_EQ(pthread_create(&plain, NULL, forks_plainly, NULL), 0);
    forks();
    CHECK_EQ(pthread_join(plain, NULL), 0);
    set(&over, 1);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
