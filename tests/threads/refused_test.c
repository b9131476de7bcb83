// not-with: emulation (it counts threads, and qemu has one of its own)
/* No runtime can begin, since there is no descriptor for it: threads stay threads, and main's is as
 * it was. With its own descriptors back the program goes on like that. */
#include "threads_test.h"

#include <signal.h>
#include <sys/resource.h>

static pthread_barrier_t barrier;
static __thread int mine = 1;

static void *meets(void *arg) {
    CHECK(mine == 1);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void meet(int n) {
    pthread_t threads[20];
    pthread_barrier_init(&barrier, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) CHECK(pthread_create(&threads[i], NULL, meets, &barrier) == 0);
    CHECK(kernel_threads() == n + 1);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < n; i++) {
        void *value;
        CHECK(pthread_join(threads[i], &value) == 0 && value == &barrier);
    }
}

int main(void) {
    struct rlimit limit, none;
    pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_t self = pthread_self(), thread;
    mine = 4;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = limit;
    none.rlim_cur = 3;
    while (close((int)none.rlim_cur) == 0) none.rlim_cur++;
    none.rlim_cur = 3;
    CHECK(pthread_mutex_lock(&checked) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    pthread_barrier_init(&barrier, NULL, 1);
    CHECK(pthread_create(&thread, NULL, meets, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(pthread_mutex_unlock(&checked) == 0 && mine == 4 && pthread_equal(self, pthread_self()));
    CHECK(gettid() == getpid());
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigisemptyset(&blocked));
    while (kernel_threads() > 1) usleep(100); /* what was tried is gone */
    meet(20);
    pthread_exit(NULL);
}
