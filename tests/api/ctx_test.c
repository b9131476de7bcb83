/* Contexts: cancellation runs down the tree, deadlines, values, release in any order; with a
 * runtime and without one. */
#include "../lib/test.h"
#include <pthread.h>

static int closed(gort_ctx *c) { return gort_chan_try_recv(gort_ctx_done(c), NULL) == -EPIPE; }

static void is_alive(gort_ctx *c) {
    CHECK_EQ(gort_ctx_err(c), 0);
    CHECK_EQ(gort_chan_try_recv(gort_ctx_done(c), NULL), -EAGAIN);
}

static void is_over(gort_ctx *c, int err) {
    CHECK_EQ(gort_ctx_err(c), err);
    CHECK(closed(c));
}

/* root -> a -> b -> c, root -> d */
static void tree(void) {
    gort_ctx *root = gort_ctx_new(NULL), *a = gort_ctx_new(root), *b = gort_ctx_new(a);
    gort_ctx *c = gort_ctx_with_value(b, &root, NULL), *d = gort_ctx_new(root);
    CHECK(root && a && b && c && d);
    is_alive(c);
    gort_ctx_cancel(b);
    is_over(b, -ECANCELED);
    is_over(c, -ECANCELED);
    is_alive(a);
    is_alive(d);
    gort_ctx_cancel(b);               /* again: nothing */
    gort_ctx *late = gort_ctx_new(b); /* below a dead one */
    is_over(late, -ECANCELED);
    gort_ctx_release(root); /* cancels, and takes nothing away from below */
    is_over(a, -ECANCELED);
    is_over(d, -ECANCELED);
    gort_ctx_release(b);
    gort_ctx_release(late);
    gort_ctx_release(a);
    is_over(c, -ECANCELED);
    gort_ctx_release(c);
    gort_ctx_release(d);
}

static void values(void) {
    static int k1, k2, k3, v1, v2;
    gort_ctx *root = gort_ctx_new(NULL);
    gort_ctx *a = gort_ctx_with_value(root, &k1, &v1);
    gort_ctx *b = gort_ctx_with_value(a, &k2, &v2);
    gort_ctx *c = gort_ctx_new(b);
    gort_ctx *d = gort_ctx_with_value(c, &k1, &v2); /* hides the upper one */
    CHECK(gort_ctx_value(c, &k1) == &v1);
    CHECK(gort_ctx_value(c, &k2) == &v2);
    CHECK(gort_ctx_value(c, &k3) == NULL);
    CHECK(gort_ctx_value(d, &k1) == &v2);
    CHECK(gort_ctx_value(root, &k1) == NULL);
    gort_ctx_release(a); /* values stay reachable from below */
    gort_ctx_release(b);
    CHECK(gort_ctx_value(d, &k2) == &v2);
    CHECK(gort_ctx_value(c, &k1) == &v1);
    gort_ctx_release(root);
    gort_ctx_release(c);
    gort_ctx_release(d);
}

static void deadlines(void) {
    int64_t soon = gort_now() + 3 * GORT_MS;
    gort_ctx *c = gort_ctx_with_deadline(NULL, soon);
    gort_ctx *below = gort_ctx_new(c);
    gort_ctx *later = gort_ctx_with_deadline(c, soon + 1000 * GORT_SEC); /* the parent's counts */
    gort_ctx *cut = gort_ctx_with_deadline(c, soon);
    CHECK(c && below && later && cut);
    gort_ctx_cancel(cut);
    CHECK_EQ(gort_chan_recv(gort_ctx_done(later), NULL), -EPIPE);
    CHECK_GE(gort_now(), soon);
    CHECK_EQ(gort_chan_recv(gort_ctx_done(below), NULL), -EPIPE);
    is_over(c, -ETIMEDOUT);
    is_over(below, -ETIMEDOUT);
    is_over(later, -ETIMEDOUT);
    CHECK(gort_ctx_err(cut) == -ECANCELED || gort_ctx_err(cut) == -ETIMEDOUT);
    gort_ctx_cancel(c); /* the first cause counts */
    is_over(c, -ETIMEDOUT);
    gort_ctx_release(c);
    gort_ctx_release(below);
    gort_ctx_release(later);
    gort_ctx_release(cut);

    c = gort_ctx_with_deadline(NULL, gort_now() - 1); /* passed already */
    is_over(c, -ETIMEDOUT);
    gort_ctx_release(c);
    c = gort_ctx_with_deadline(NULL, GORT_FOREVER);
    is_alive(c);
    gort_ctx_release(c);
    c = gort_ctx_with_deadline(NULL, gort_now() + 1000 * GORT_SEC);
    below = gort_ctx_with_deadline(c, gort_now() + 2000 * GORT_SEC);
    is_alive(c);
    gort_ctx_cancel(c);
    is_over(c, -ECANCELED);
    is_over(below, -ECANCELED);
    gort_ctx_release(below);
    gort_ctx_release(c);
}

static void no_context(void) {
    CHECK(gort_ctx_done(NULL) == NULL);
    CHECK_EQ(gort_ctx_err(NULL), 0);
    CHECK(gort_ctx_value(NULL, &no_context) == NULL);
    gort_ctx_cancel(NULL);
    gort_ctx_release(NULL);
}

/* A chain longer than any stack would bear to recurse, cancelled at its top, released from it. */
static void long_chain(void) {
    enum { N = 20000 };
    gort_ctx **c = calloc(N, sizeof *c);
    for (int i = 0; i < N; i++) CHECK((c[i] = gort_ctx_new(i ? c[i - 1] : NULL)) != NULL);
    gort_ctx_cancel(c[0]);
    for (int i = 0; i < N; i++) CHECK_EQ(gort_ctx_err(c[i]), -ECANCELED);
    for (int i = 0; i < N; i++) gort_ctx_release(c[i]);
    free(c);
}

/* The channel outlives its context where it was retained. */
static void kept_channel(void) {
    gort_ctx *c = gort_ctx_new(NULL);
    gort_chan *done = gort_chan_retain(gort_ctx_done(c));
    gort_ctx_release(c);
    CHECK_EQ(gort_chan_recv(done, NULL), -EPIPE);
    gort_chan_release(done);
}

/* ---- with goroutines ------------------------------------------------------------------------- */

typedef struct Scene {
    gort_ctx *c;
    gort_wg wg;
    int woken;
} Scene;

static void waiter(void *arg) {
    Scene *s = arg;
    gort_ctx *mine = gort_ctx_new(s->c);
    gort_chan *never = gort_chan_new(0, 0);
    int i = gort_select_of(gort_on_recv(never, NULL), gort_on_recv(gort_ctx_done(mine), NULL));
    CHECK_EQ(i, 1);
    CHECK_NE(gort_ctx_err(mine), 0);
    add(&s->woken, 1);
    gort_ctx_release(mine);
    gort_chan_release(never);
}

static void wakes_all(void) {
    for (int round = 0; round < 20; round++) {
        int64_t deadline = round % 2 ? gort_now() + GORT_MS : GORT_FOREVER;
        Scene s = {.c = gort_ctx_with_deadline(NULL, deadline)};
        for (int i = 0; i < 20; i++) CHECK_EQ(gort_wg_go(&s.wg, waiter, &s), 0);
        if (round % 2 == 0) gort_ctx_cancel(s.c);
        gort_wg_wait(&s.wg);
        CHECK_EQ(s.woken, 20);
        CHECK_EQ(gort_ctx_err(s.c), round % 2 ? -ETIMEDOUT : -ECANCELED);
        gort_ctx_release(s.c);
    }
}

/* Cancelled by parent, itself and its deadline at once: one cause, children follow, nothing is
 * used after it was freed (the sanitizers' builds look). */
static void maker(void *arg) {
    Scene *s = arg;
    uint64_t rng = gort_id() + 1;
    for (int i = 0; i < 100; i++) {
        int64_t wait = (int64_t)(test_random(&rng) % 30) * GORT_US;
        gort_ctx *c = gort_ctx_with_deadline(s->c, gort_now() + wait);
        gort_ctx *child = gort_ctx_new(c);
        if (i % 2) gort_yield();
        else if (i % 3) gort_sleep(wait);
        if (rng % 2) gort_ctx_cancel(c);
        if (rng % 3) gort_ctx_release(c), c = NULL;
        CHECK(c != NULL || gort_ctx_err(child) != 0);
        if (rng % 5) gort_chan_recv(gort_ctx_done(child), NULL);
        gort_ctx_release(child);
        gort_ctx_release(c);
    }
}

static void races(void) {
    for (int round = 0; round < 4; round++) {
        Scene s = {.c = gort_ctx_new(NULL)};
        for (int i = 0; i < 8; i++) CHECK_EQ(gort_wg_go(&s.wg, maker, &s), 0);
        gort_sleep(round * 300 * GORT_US);
        gort_ctx_cancel(s.c);
        gort_wg_wait(&s.wg);
        gort_ctx_release(s.c);
    }
}

static gort_ctx *left_behind;

static void everywhere(void) {
    no_context();
    tree();
    values();
    deadlines();
    long_chain();
    kept_channel();
}

static int body(int argc, char **argv) {
    everywhere();
    wakes_all();
    races();
    left_behind = gort_ctx_with_deadline(NULL, gort_now() + 1000 * GORT_SEC);
    return 0;
}

static void *thread(void *arg) {
    for (int i = 0; i < 5; i++) deadlines();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t t[3];
    int threads = test_simulated() ? 0 : 3;
    if (threads) everywhere(); /* no runtime */
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&t[i], NULL, thread, NULL), 0);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_main(body, argc, argv), 0);
        is_alive(left_behind); /* its runtime is gone, and its deadline with it */
        gort_ctx_release(left_behind);
    }
    if (threads) deadlines();
    return 0;
}
