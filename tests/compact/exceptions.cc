// Exceptions across segments: every destructor runs, the stack can be used as before, and nothing
// is left.
#include <gort.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#define CHECK(cond)                                                                  \
    do {                                                                             \
        if (!(cond)) {                                                               \
            fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

static gort_wg wg;

struct Counts {
    int *n;
    explicit Counts(int *n) : n(n) {}
    ~Counts() { ++*n; }
};

static __attribute__((noinline)) int throws(int depth, int *ended) {
    Counts counts(ended);
    volatile char frame[200];
    frame[0] = 1;
    if (depth == 0) throw std::runtime_error("from below");
    return throws(depth - 1, ended) + frame[0];
}

static __attribute__((noinline)) int down(int depth) {
    volatile char frame[200];
    frame[0] = 1;
    return depth ? down(depth - 1) + frame[0] : 0;
}

static void catches(void *) {
    for (int i = 0; i < 100; i++) {
        int ended = 0;
        std::string what;
        try {
            throws(10 + 7 * i, &ended);
        } catch (const std::exception &e) { what = e.what(); }
        CHECK(what == "from below" && ended == 11 + 7 * i);
        CHECK(down(50) == 50);
        gort_yield();
    }
    gort_wg_done(&wg);
}

static int body(int, char **) {
    gort_wg_add(&wg, 8);
    for (int i = 0; i < 8; i++) gort_go(catches, nullptr);
    gort_wg_wait(&wg);
    gort_stats s;
    do {
        gort_yield();
        gort_stats_read(&s);
    } while (s.goroutines > 1 || s.stack_segments > 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
