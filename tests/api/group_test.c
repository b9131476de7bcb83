/* Groups: the end of all, the first failure, the limit. */
#include "../test.h"

typedef struct Scene {
    int ran, running, most, go_on, cancelled;
} Scene;

static int counts(gort_ctx *ctx, void *arg) {
    CHECK(ctx != NULL);
    add(&((Scene *)arg)->ran, 1);
    return 7; /* not negative: no failure */
}

static void all_are_waited_for(void) {
    Scene s = {0};
    gort_group *g = gort_group_new(NULL, 0);
    CHECK(g != NULL);
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_group_go(g, counts, &s), 0);
    CHECK_EQ(gort_group_go(g, NULL, NULL), -EINVAL);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 100);
    CHECK_EQ(gort_group_wait(gort_group_new(NULL, 3)), 0); /* an empty one */
}

static int waits_for_end(gort_ctx *ctx, void *arg) {
    Scene *s = arg;
    CHECK_EQ(gort_chan_recv(gort_ctx_done(ctx), NULL), -EPIPE);
    add(&s->cancelled, 1);
    return gort_ctx_err(ctx); /* comes too late to be the first */
}

static int fails(gort_ctx *ctx, void *arg) { return -EIO; }

static void first_failure_cancels(void) {
    for (int limit = 0; limit <= 20; limit += 20) {
        Scene s = {0};
        gort_group *g = gort_group_new(NULL, limit);
        for (int i = 0; i < 10; i++) CHECK_EQ(gort_group_go(g, waits_for_end, &s), 0);
        CHECK_EQ(gort_group_go(g, fails, &s), 0);
        CHECK_EQ(gort_group_wait(g), -EIO);
        CHECK_EQ(s.cancelled, 10);
    }
}

static void parent_cancels(void) {
    Scene s = {0};
    gort_ctx *parent = gort_ctx_new(NULL);
    gort_group *g = gort_group_new(parent, 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_group_go(g, waits_for_end, &s), 0);
    gort_ctx_cancel(parent);
    CHECK_EQ(gort_group_wait(g), -ECANCELED);
    CHECK_EQ(s.cancelled, 10);
    gort_ctx_release(parent);
    parent = gort_ctx_new(NULL);
    g = gort_group_new(parent, 0);
    CHECK_EQ(gort_group_go(g, fails, &s), 0);
    CHECK_EQ(gort_group_wait(g), -EIO);
    CHECK_EQ(gort_ctx_err(parent), 0); /* downwards only */
    gort_ctx_release(parent);
}

static int one_of_few(gort_ctx *ctx, void *arg) {
    Scene *s = arg;
    int n = add(&s->running, 1);
    CHECK_LE(n, 3);
    for (int i = 0; i < 5; i++) gort_yield();
    add(&s->running, -1);
    add(&s->ran, 1);
    return 0;
}

static int holds(gort_ctx *ctx, void *arg) {
    Scene *s = arg;
    add(&s->running, 1);
    wait_until(get(&s->go_on));
    add(&s->running, -1);
    return 0;
}

static int exits(gort_ctx *ctx, void *arg) {
    add(&((Scene *)arg)->ran, 1);
    gort_exit();
}

typedef struct Fourth {
    gort_group *g;
    Scene *s;
    int started;
    gort_wg wg;
} Fourth;

static void starts_fourth(void *arg) {
    Fourth *f = arg;
    CHECK_EQ(gort_group_go(f->g, counts, f->s), 0);
    add(&f->started, 1);
}

static void limits(void) {
    Scene s = {0};
    gort_group *g = gort_group_new(NULL, 3);
    for (int i = 0; i < 50; i++) CHECK_EQ(gort_group_go(g, one_of_few, &s), 0);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 50);

    s = (Scene){0};
    g = gort_group_new(NULL, 3);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_group_go(g, holds, &s), 0);
    wait_until(get(&s.running) == 3);
    Fourth f = {.g = g, .s = &s};
    CHECK_EQ(gort_wg_go(&f.wg, starts_fourth, &f), 0); /* has to wait for a place */
    for (int i = 0; i < 50; i++) gort_yield();
    CHECK_EQ(get(&f.started), 0);
    set(&s.go_on, 1);
    gort_wg_wait(&f.wg);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 1);
}

/* A function that calls gort_exit has ended, with 0, and gives its place back. */
static void exit_counts_as_end(void) {
    Scene s = {0};
    gort_group *g = gort_group_new(NULL, 2);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_group_go(g, exits, &s), 0);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 20);
}

static int body(int argc, char **argv) {
    all_are_waited_for();
    first_failure_cancels();
    parent_cancels();
    limits();
    exit_counts_as_end();
    return 0;
}

int main(int argc, char **argv) {
    gort_group *g = gort_group_new(NULL, 1);
    CHECK(g != NULL);
    CHECK_EQ(gort_group_go(g, fails, NULL), -ENOTCONN);
    CHECK_EQ(gort_group_go(g, fails, NULL), -ENOTCONN); /* the place was not used up */
    CHECK_EQ(gort_group_wait(g), 0);
    return gort_main(body, argc, argv);
}
