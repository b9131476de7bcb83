/* The counting semaphore: first come first served. */
#include "../lib/waiting.h"

#define S "semacquire"

static void alone(void) {
    gort_sem s = {0};
    CHECK_EQ(gort_sem_try_acquire(&s, 1), -EBUSY); /* zeroed: no permits */
    CHECK_EQ(gort_sem_acquire_until(&s, 1, 0), -ETIMEDOUT);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    CHECK_EQ(gort_sem_acquire_until(&s, 1, deadline), -ETIMEDOUT);
    CHECK_GE(gort_now(), deadline);
    gort_sem_release(&s, 5);
    CHECK_EQ(gort_sem_try_acquire(&s, 6), -EBUSY);
    CHECK_EQ(gort_sem_try_acquire(&s, 2), 0);
    gort_sem_acquire(&s, 2);
    CHECK_EQ(gort_sem_acquire_until(&s, 1, 0), 0);
    CHECK_EQ(gort_sem_try_acquire(&s, 1), -EBUSY);
    CHECK_EQ(gort_sem_try_acquire(&s, 0), 0);
    gort_sem_release(&s, (int64_t)1 << 40);
    CHECK_EQ(gort_sem_try_acquire(&s, (int64_t)1 << 40), 0);
    CHECK(s.permits_ == 0 && s.head_ == NULL && s.tail_ == NULL);
}

typedef struct Scene {
    gort_sem s;
    gort_wg wg;
    int order[16], next, served; /* an entry of order is there once it is counted in served */
} Scene;

typedef struct Want {
    Scene *scene;
    int id, amount;
} Want;

static void wanter(void *arg) {
    Want w = *(Want *)arg;
    gort_sem_acquire(&w.scene->s, w.amount);
    w.scene->order[add(&w.scene->next, 1) - 1] = w.id;
    add(&w.scene->served, 1);
    gort_wg_done(&w.scene->wg);
}

static void queue_up(Scene *s, int id, int amount, int queued) {
    Want w = {s, id, amount};
    gort_wg_add(&s->wg, 1);
    CHECK_EQ(gort_go_copy(wanter, &w, sizeof w), 0);
    wait_until(waiting_for(S) == queued);
}

/* Served one by one, in the order of arrival. */
static void in_order(void) {
    Scene s = {0};
    for (int i = 0; i < 8; i++) queue_up(&s, i, 1, i + 1);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(gort_sem_try_acquire(&s.s, 0), -EBUSY); /* somebody waits */
        gort_sem_release(&s.s, 1);
        wait_until(get(&s.served) == i + 1);
        CHECK_EQ(s.order[i], i);
    }
    gort_wg_wait(&s.wg);
}

/* A large request at the head is not overtaken by small ones, nor by a try. */
static void large_at_the_head(void) {
    Scene s = {0};
    queue_up(&s, 0, 10, 1);
    queue_up(&s, 1, 1, 2);
    queue_up(&s, 2, 1, 3);
    gort_sem_release(&s.s, 9);
    CHECK_EQ(gort_sem_try_acquire(&s.s, 1), -EBUSY);
    CHECK_EQ(gort_sem_acquire_until(&s.s, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(waiting_for(S), 3);
    gort_sem_release(&s.s, 1);
    wait_until(get(&s.served) == 1);
    CHECK_EQ(s.order[0], 0);
    CHECK_EQ(waiting_for(S), 2);
    gort_sem_release(&s.s, 5); /* both, and 3 are left */
    gort_wg_wait(&s.wg);
    CHECK_EQ(gort_sem_try_acquire(&s.s, 4), -EBUSY);
    CHECK_EQ(gort_sem_try_acquire(&s.s, 3), 0);
}

static void impatient(void *arg) {
    Scene *s = arg;
    CHECK_EQ(gort_sem_acquire_until(&s->s, 10, gort_now() + 20 * GORT_MS), -ETIMEDOUT);
}

/* The head gives up: those behind it fit, and are served by that. */
static void head_gives_up(void) {
    Scene s = {0};
    gort_wg gone = {0};
    gort_sem_release(&s.s, 2);
    CHECK_EQ(gort_wg_go(&gone, impatient, &s), 0);
    wait_until(waiting_for(S) == 1 || gone.state_ >> 32 == 0);
    for (int i = 0; i < 2; i++) {
        Want w = {&s, i, 1};
        gort_wg_add(&s.wg, 1);
        CHECK_EQ(gort_go_copy(wanter, &w, sizeof w), 0);
    }
    gort_wg_wait(&gone);
    gort_wg_wait(&s.wg);
    CHECK_EQ(s.served, 2);
    CHECK(s.s.permits_ == 0 && s.s.head_ == NULL);
}

/* ---- conservation ---------------------------------------------------------------------------- */

typedef struct Bank {
    gort_sem s;
    gort_wg wg;
    int64_t out; /* permits in use */
} Bank;

static void customer(void *arg) {
    Bank *b = arg;
    uint64_t rng = gort_id() + 3;
    for (int i = 0; i < 300; i++) {
        int64_t n = (int64_t)(test_random(&rng) % 10) + 1;
        int r;
        switch (rng % 3) {
        case 0: r = gort_sem_try_acquire(&b->s, n); break;
        case 1:
            r = gort_sem_acquire_until(&b->s, n, gort_now() + (int64_t)(rng % 50) * GORT_US);
            break;
        default: gort_sem_acquire(&b->s, n), r = 0;
        }
        if (r < 0) continue;
        CHECK_LE(add(&b->out, n), 10);
        if (i % 4 == 0) gort_yield();
        add(&b->out, -n);
        gort_sem_release(&b->s, n);
    }
}

static void conservation(void) {
    Bank b = {0};
    gort_sem_release(&b.s, 10);
    for (int i = 0; i < 16; i++) CHECK_EQ(gort_wg_go(&b.wg, customer, &b), 0);
    gort_wg_wait(&b.wg);
    CHECK_EQ(b.s.permits_, 10);
    CHECK(b.s.head_ == NULL && b.s.tail_ == NULL);
}

static int body(int argc, char **argv) {
    alone();
    in_order();
    large_at_the_head();
    head_gives_up();
    conservation();
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) alone();
    return gort_main(body, argc, argv);
}
