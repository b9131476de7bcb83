/* Exceptions of a goroutine that is a thread to libc. Nobody who stops it may be on its way: its
 * C++ state is its own, not its thread's. */
#include "cxx.h"

#include <cstdlib>

enum { THROWERS = 3, STOPS = 4 };
static int stop;
static gort_wg wg;

/* Leaves qsort by an exception now and then, so that a stopper finds it between the two phases. */
static int compare(const void *a, const void *b) {
    static thread_local unsigned calls;
    if (++calls % 3 == 0) throw std::runtime_error("not comparable");
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void throws_out_of_libc(void *) {
    int v[50];
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        for (int i = 0; i < 50; i++) v[i] = -i;
        try {
            qsort(v, 50, sizeof v[0], compare);
            FAILF("it has not thrown");
        } catch (const std::runtime_error &e) { CHECK_STR(e.what(), "not comparable"); }
    }
    gort_wg_done(&wg);
}

static void yields_in_a_catch(void *) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        try {
            try {
                throw 7;
            } catch (int) {
                gort_yield();
                throw;
            }
        } catch (int i) { CHECK_EQ(i, 7); }
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
    gort_wg_done(&wg);
}

static int app(int, char **) {
    const gort_attr attr = {"thrower", 0, 1};
    gort_wg_add(&wg, THROWERS + 2);
    for (int i = 0; i < THROWERS + 2; i++) {
        int r = gort_go_with(&attr, i < THROWERS ? throws_out_of_libc : yields_in_a_catch, nullptr);
        if (r == -ENOTSUP) return 0; /* none can be a thread here */
        CHECK_EQ(r, 0);
    }
    for (int i = 0; i < STOPS; i++) {
        gort_stop_world();
        gort_start_world();
        gort_sleep(20 * GORT_US);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
