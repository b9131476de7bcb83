/* The reader/writer mutex: who may be in together, who is held back, and deadlines. */
#include "../lib/waiting.h"
#include <stdbool.h>

#define R "sync.RWMutex.RLock"
#define W "sync.RWMutex.Lock"

static void is_as_new(gort_rwmutex *rw) {
    CHECK_EQ(AT_REST(rw->w_), 0);
    CHECK_EQ(rw->readers_, 0);
}

static void tries(void) {
    gort_rwmutex rw = {0};
    CHECK_EQ(gort_rwmutex_try_rlock(&rw), 0);
    CHECK_EQ(gort_rwmutex_try_rlock(&rw), 0);
    CHECK_EQ(gort_rwmutex_try_lock(&rw), -EBUSY);
    CHECK_EQ(gort_rwmutex_lock_until(&rw, 0), -ETIMEDOUT);
    CHECK_EQ(gort_rwmutex_lock_until(&rw, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_rwmutex_rlock_until(&rw, 0), 0); /* the writers that gave up hold nobody back */
    gort_rwmutex_runlock(&rw);
    gort_rwmutex_runlock(&rw);
    CHECK_EQ(gort_rwmutex_try_lock(&rw), -EBUSY);
    gort_rwmutex_runlock(&rw);
    CHECK_EQ(gort_rwmutex_try_lock(&rw), 0);
    CHECK_EQ(gort_rwmutex_try_lock(&rw), -EBUSY);
    CHECK_EQ(gort_rwmutex_try_rlock(&rw), -EBUSY);
    CHECK_EQ(gort_rwmutex_rlock_until(&rw, 0), -ETIMEDOUT);
    CHECK_EQ(gort_rwmutex_rlock_until(&rw, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_rwmutex_lock_until(&rw, gort_now() + GORT_MS), -ETIMEDOUT);
    gort_rwmutex_unlock(&rw);
    CHECK_EQ(gort_rwmutex_lock_until(&rw, 0), 0);
    gort_rwmutex_unlock(&rw);
    is_as_new(&rw);
}

/* ---- order ---------------------------------------------------------------------------------- */

typedef struct Scene {
    gort_rwmutex rw;
    gort_wg wg;
    int readers_in, writers_in, go_on, done;
} Scene;

static void reader(void *arg) {
    Scene *s = arg;
    gort_rwmutex_rlock(&s->rw);
    CHECK_EQ(get(&s->writers_in), 0);
    add(&s->readers_in, 1);
    wait_until(get(&s->go_on));
    add(&s->readers_in, -1);
    gort_rwmutex_runlock(&s->rw);
    add(&s->done, 1);
}

static void writer(void *arg) {
    Scene *s = arg;
    gort_rwmutex_lock(&s->rw);
    CHECK_EQ(get(&s->readers_in), 0);
    CHECK_EQ(add(&s->writers_in, 1), 1);
    wait_until(get(&s->go_on));
    add(&s->writers_in, -1);
    gort_rwmutex_unlock(&s->rw);
    add(&s->done, 1);
}

static void readers_share(void) {
    Scene s = {0};
    for (int i = 0; i < 5; i++) CHECK_EQ(gort_wg_go(&s.wg, reader, &s), 0);
    wait_until(get(&s.readers_in) == 5);
    set(&s.go_on, 1);
    gort_wg_wait(&s.wg);
    is_as_new(&s.rw);
}

/* A writer that waits holds back new readers; it is next; then all of them get in together,
 * before a second writer. */
static void writer_holds_back(void) {
    Scene s = {0};
    gort_rwmutex_rlock(&s.rw);
    CHECK_EQ(gort_wg_go(&s.wg, writer, &s), 0);
    wait_until(waiting_for(W) == 1);
    CHECK_EQ(gort_rwmutex_try_rlock(&s.rw), -EBUSY);
    CHECK_EQ(gort_rwmutex_rlock_until(&s.rw, gort_now() + GORT_MS), -ETIMEDOUT);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_wg_go(&s.wg, reader, &s), 0);
    wait_until(waiting_for(R) == 3);
    gort_rwmutex_runlock(&s.rw);
    wait_until(get(&s.writers_in) == 1);
    CHECK_EQ(get(&s.readers_in), 0);

    Scene *second = &s; /* another writer queues up behind the first */
    CHECK_EQ(gort_wg_go(&s.wg, writer, second), 0);
    wait_until(waiting_for(W) == 1);
    CHECK_EQ(waiting_for(R), 3);
    set(&s.go_on, 1);
    gort_wg_wait(&s.wg);
    CHECK_EQ(s.done, 5);
    is_as_new(&s.rw);
}

static void impatient_writer(void *arg) {
    Scene *s = arg;
    CHECK_EQ(gort_rwmutex_lock_until(&s->rw, gort_now() + 20 * GORT_MS), -ETIMEDOUT);
    add(&s->done, 1);
}

/* The writer that others are held back for gives up: they get in, while the first reader stays. */
static void writer_gives_up(void) {
    Scene s = {0};
    gort_rwmutex_rlock(&s.rw);
    CHECK_EQ(gort_wg_go(&s.wg, impatient_writer, &s), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_wg_go(&s.wg, reader, &s), 0);
    wait_until(get(&s.readers_in) == 3 && get(&s.done) == 1);
    set(&s.go_on, 1);
    gort_wg_wait(&s.wg);
    gort_rwmutex_runlock(&s.rw);
    is_as_new(&s.rw);
}

/* ---- hammer --------------------------------------------------------------------------------- */

typedef struct Hammer {
    gort_rwmutex rw;
    gort_wg wg;
    int activity; /* readers count 1, a writer 10000 */
    bool timed;
} Hammer;

static int64_t soon(Hammer *h, uint64_t *rng) {
    return h->timed ? gort_now() + (int64_t)(test_random(rng) % 30) * GORT_US : GORT_FOREVER;
}

static void hammer_reader(void *arg) {
    Hammer *h = arg;
    uint64_t rng = gort_id() + 99;
    for (int i = 0; i < 300; i++) {
        if (gort_rwmutex_rlock_until(&h->rw, soon(h, &rng)) < 0) continue;
        int n = add(&h->activity, 1);
        CHECK(n >= 1 && n < 10000);
        if (i % 5 == 0) gort_yield();
        add(&h->activity, -1);
        gort_rwmutex_runlock(&h->rw);
    }
}

static void hammer_writer(void *arg) {
    Hammer *h = arg;
    uint64_t rng = gort_id() + 77;
    for (int i = 0; i < 300; i++) {
        if (gort_rwmutex_lock_until(&h->rw, soon(h, &rng)) < 0) continue;
        CHECK_EQ(add(&h->activity, 10000), 10000);
        if (i % 5 == 0) gort_yield();
        add(&h->activity, -10000);
        gort_rwmutex_unlock(&h->rw);
    }
}

static void hammer(bool timed) {
    Hammer h = {.timed = timed};
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_wg_go(&h.wg, hammer_reader, &h), 0);
        if (i % 3 == 0) CHECK_EQ(gort_wg_go(&h.wg, hammer_writer, &h), 0);
    }
    gort_wg_wait(&h.wg);
    is_as_new(&h.rw);
}

static int body(int argc, char **argv) {
    tries();
    readers_share();
    writer_holds_back();
    writer_gives_up();
    hammer(false);
    hammer(true);
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) tries();
    return gort_main(body, argc, argv);
}
