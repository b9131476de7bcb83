/* Groups: the end of all, the first failure, the limit. */
#include "../lib/test.h"

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

static int tells_cause(gort_ctx *ctx, void *arg) {
    CHECK_EQ(gort_sleep(3600 * GORT_SEC), -ECANCELED);
    *(int *)arg = gort_ctx_cause(ctx);
    return 0;
}

static int fails_with(gort_ctx *ctx, void *arg) { return *(int *)arg; }

/* As errgroup's: the first failure is the cause, not its error. */
static void failure_is_the_cause(void) {
    int failures[] = {-EIO, -ETIMEDOUT, -ENOTCONN, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        int cause = 0;
        gort_group *g = gort_group_new(NULL, 0);
        CHECK_EQ(gort_group_go(g, tells_cause, &cause), 0);
        CHECK_EQ(gort_group_go(g, fails_with, &failures[i]), 0);
        CHECK_EQ(gort_group_wait(g), failures[i]);
        CHECK_EQ(cause, failures[i] == INT32_MIN ? -INT32_MAX : failures[i]);
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

/* The try form never waits, for a place or for its own group. */
static int starts_itself(gort_ctx *ctx, void *arg) {
    Fourth *f = arg;
    f->started = gort_group_try_go(f->g, counts, f->s);
    return 0;
}

static void tries(void) {
    Scene s = {0};
    gort_group *g = gort_group_new(NULL, 3);
    Fourth f = {.g = g, .s = &s, .started = 1};
    CHECK_EQ(gort_group_try_go(g, NULL, &s), -EINVAL);
    CHECK_EQ(gort_group_try_go(g, holds, &s), 0);
    CHECK_EQ(gort_group_try_go(g, starts_itself, &f), 0);
    wait_until(get(&s.ran) == 1); /* in the third place */
    CHECK_EQ(f.started, 0);
    wait_until(gort_group_try_go(g, holds, &s) == 0);
    wait_until(gort_group_try_go(g, holds, &s) == 0);
    CHECK_EQ(gort_group_try_go(g, holds, &s), -EAGAIN);
    set(&s.go_on, 1);
    CHECK_EQ(gort_group_wait(g), 0);

    s = (Scene){0};
    f = (Fourth){.g = g = gort_group_new(NULL, 1), .s = &s};
    CHECK_EQ(gort_group_try_go(g, starts_itself, &f), 0);
    wait_until(get(&f.started) != 0);
    CHECK_EQ(f.started, -EAGAIN);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 0);

    g = gort_group_new(NULL, 0); /* without a limit there is always a place */
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_group_try_go(g, counts, &s), 0);
    CHECK_EQ(gort_group_wait(g), 0);
    CHECK_EQ(s.ran, 100);
}

/* Members that start others while one of them is on its way to its end: nobody hangs, nothing is
 * fatal. */
static int starts_another(gort_ctx *ctx, void *arg) {
    Fourth *f = arg;
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_group_go(f->g, counts, f->s), 0);
    return 0;
}

static void members_start_members(void) {
    for (int round = 0; round < 50; round++) {
        Scene s = {0};
        gort_group *g = gort_group_new(NULL, 4);
        Fourth f = {.g = g, .s = &s};
        for (int i = 0; i < 3; i++) CHECK_EQ(gort_group_go(g, starts_another, &f), 0);
        CHECK_EQ(gort_group_wait(g), 0);
        CHECK_EQ(s.ran, 60);
    }
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
    failure_is_the_cause();
    parent_cancels();
    limits();
    tries();
    members_start_members();
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
