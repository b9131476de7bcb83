/* OpenMP keeps the thread's team in __thread variables, over waits by a system call of its own: a
 * goroutine that uses it is locked to its thread, or is a thread to libc. Its threads are the
 * library's. Argument: the library's name. */
#include "crowd.h"
#include <omp.h>

static void sum(int i) {
    long n = 0;
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
}

static int run(int argc, char **argv) {
    crowd_of_threads(argv[1], sum);
    return 0;
}
int main(int argc, char **argv) { return argc > 1 ? gort_main(run, argc, argv) : 2; }
