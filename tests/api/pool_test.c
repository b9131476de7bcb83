/* The pool: every object has one user at a time, and none is lost: made = dropped. */
#include "../lib/test.h"
#include <pthread.h>

typedef struct Object {
    int in_use; /* atomic */
    char data[60];
} Object;

static long made, dropped;

static void *make(void *arg) {
    CHECK(arg == &made);
    add(&made, 1);
    return calloc(1, sizeof(Object));
}

static void drop(void *object) {
    CHECK_EQ(((Object *)object)->in_use, 0);
    add(&dropped, 1);
    free(object);
}

static void use(gort_pool *p, int n) {
    Object *held[70];
    for (int i = 0; i < n; i++) {
        held[i] = gort_pool_get(p);
        CHECK(held[i] != NULL);
        CHECK_EQ(add(&held[i]->in_use, 1), 1);
        memset(held[i]->data, i, sizeof held[i]->data);
    }
    if (n % 3 == 0) gort_yield();
    for (int i = 0; i < n; i++) {
        CHECK_EQ(held[i]->data[7], i);
        CHECK_EQ(add(&held[i]->in_use, -1), 0);
        gort_pool_put(p, held[i]);
    }
}

static void user(void *arg) {
    for (int i = 0; i < 200; i++) use(arg, i % 70 + 1);
}

static void *thread_user(void *arg) {
    for (int i = 0; i < 200; i++) use(arg, i % 70 + 1);
    return NULL;
}

/* What was put is got again, by the same user with nobody else about. */
static void caches(void) {
    long before = get(&made), gone = get(&dropped);
    gort_pool *p = gort_pool_new(make, drop, &made);
    CHECK(p != NULL);
    for (int i = 0; i < 1000; i++) use(p, 70);
    CHECK_GE(get(&made) - before, 70);
    CHECK_LT(get(&made) - before, 70000 / 2); /* it may drop, but it does keep */
    gort_pool_put(p, NULL);
    gort_pool_free(p);
    CHECK_EQ(get(&made) - before, get(&dropped) - gone);
}

static void without_make(void) {
    gort_pool *p = gort_pool_new(NULL, NULL, NULL);
    int x;
    CHECK(gort_pool_get(p) == NULL);
    gort_pool_put(p, &x);
    void *got = gort_pool_get(p);
    CHECK(got == &x || got == NULL);
    gort_pool_put(p, &x); /* no drop: nothing is done with it */
    gort_pool_free(p);
    gort_pool_free(NULL);
}

static gort_pool *survivor;

static int body(int argc, char **argv) {
    caches();
    without_make();
    gort_pool *p = survivor;
    pthread_t t[2];
    gort_wg wg = {0};
    int threads = test_simulated() ? 0 : 2;
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&t[i], NULL, thread_user, p), 0);
    for (int i = 0; i < 8; i++) CHECK_EQ(gort_wg_go(&wg, user, p), 0);
    int procs = gort_maxprocs(0); /* the Ps change under its feet */
    for (int n = 1; n < 40; n += 7) CHECK_GT(gort_maxprocs(n), 0);
    gort_maxprocs(procs);
    gort_wg_wait(&wg);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    return 0;
}

int main(int argc, char **argv) {
    caches();
    without_make();
    survivor = gort_pool_new(make, drop, &made); /* older and younger than two runtimes */
    use(survivor, 70);
    for (int i = 0; i < 2; i++) CHECK_EQ(gort_main(body, argc, argv), 0);
    use(survivor, 70);
    gort_pool_free(survivor);
    CHECK_EQ(get(&made), get(&dropped));
    return 0;
}
