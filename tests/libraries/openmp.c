/* OpenMP keeps the thread's team in __thread variables, over waits by a system call of its own: a
 * goroutine that uses it is locked to its thread. Then it is as a thread's, and its threads are the
 * library's. */
#include "crowd.h"
#include <omp.h>

static void sum(int i) {
    long n = 0;
    gort_lock_thread();
    for (int round = 0; round < 3; round++) {
        n = 0;
#pragma omp parallel for num_threads(2) reduction(+ : n)
        for (int k = 1; k <= 1000; k++) {
            if (k % 500 == 0) usleep(100); /* a wait inside of the team */
            n += k * (i + 1);
        }
        CHECK(n == 500500L * (i + 1));
        CHECK(omp_get_thread_num() == 0);
        gort_yield();
    }
    gort_unlock_thread();
}

static int run(int argc, char **argv) {
    gort_wg wg = {0};
    crowd_fn = sum;
    crowd_gate = gort_chan_new(0, 0);
    gort_chan_close(crowd_gate);
    for (intptr_t i = 0; i < 20; i++) CHECK(gort_wg_go(&wg, crowd_one, (void *)i) == 0);
    gort_wg_wait(&wg);
    printf("OpenMP: 20 goroutines, each locked to its thread\n");
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
