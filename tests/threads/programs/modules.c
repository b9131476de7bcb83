/* Libraries with variables of the thread's are opened and closed, and opened anew, while threads
 * begin, live and end. Each thread finds first values in each opening, and keeps its own. */
#include "../threads_test.h"

#include <dlfcn.h>

enum { KINDS = 2, ROUNDS = 40, CHURN = 4 };
static char *files[KINDS];
static const int firsts[KINDS] = {100, 5000};
static int stop; /* atomic */
static pthread_barrier_t barrier;

typedef int next_fn(void);

static void *open_kind(int kind, next_fn **next) {
    void *module = dlopen(files[kind], RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(module);
    *(void **)next = dlsym(module, "module_next");
    CHECK(*next);
    return module;
}

static void count(next_fn *next, int first, int n) {
    for (int i = 0; i < n; i++) {
        CHECK(next() == first + i);
        if (i % 4 == 0) sched_yield();
    }
}

/* Opens for itself. */
static void *opens(void *arg) {
    for (int i = 0; i < 3; i++) {
        int kind = (int)(intptr_t)arg % KINDS;
        next_fn *next;
        void *module = open_kind(kind, &next);
        int value = next(); /* another thread may have kept it open */
        CHECK(value >= firsts[kind] && value < firsts[kind] + 3);
        usleep(50);
        CHECK(dlclose(module) == 0);
    }
    return arg;
}

static void *churns(void *arg) {
    pthread_t thread;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        CHECK(pthread_create(&thread, NULL, opens, arg) == 0 && pthread_join(thread, NULL) == 0);
    }
    return arg;
}

typedef struct Given {
    next_fn *next;
    int first;
} Given;

/* A new thread, on a body that has served, in a library that is open. */
static void *short_life(void *arg) {
    Given *g = arg;
    count(g->next, g->first, 10);
    return arg;
}

/* Lives over all openings. */
static void *long_life(void *arg) {
    Given *g = arg;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier); /* it is open */
        count(g->next, g->first, 10);
        pthread_barrier_wait(&barrier);
    }
    return arg;
}

static void rounds(void) {
    pthread_t lives[4], thread;
    Given g;
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&lives[i], NULL, long_life, &g) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        void *module = open_kind(round % KINDS, &g.next);
        g.first = firsts[round % KINDS];
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 5; i++)
            CHECK(pthread_create(&thread, NULL, short_life, &g) == 0 &&
                  pthread_join(thread, NULL) == 0);
        CHECK(dlclose(module) == 0);
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(lives[i], NULL) == 0);
}

int main(int argc, char **argv) {
    pthread_t churning[CHURN];
    files[0] = argv[1];
    files[1] = argv[2];
    pthread_barrier_init(&barrier, NULL, 5);
    rounds();
    for (intptr_t i = 0; i < CHURN; i++)
        CHECK(pthread_create(&churning[i], NULL, churns, (void *)i) == 0);
    usleep(300000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < CHURN; i++) CHECK(pthread_join(churning[i], NULL) == 0);
    return 0;
}
