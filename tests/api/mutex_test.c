/* The mutex: exclusion, tries, deadlines, fairness, and nothing left behind. */
#include "../lib/waiting.h"
#include <pthread.h>

static void tries_and_deadlines(void) {
    gort_mutex m = {0};
    CHECK_EQ(gort_mutex_try_lock(&m), 0);
    CHECK_EQ(gort_mutex_try_lock(&m), -EBUSY);
    CHECK_EQ(gort_mutex_lock_until(&m, 0), -ETIMEDOUT);
    CHECK_EQ(gort_mutex_lock_until(&m, gort_now() - 1), -ETIMEDOUT);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    CHECK_EQ(gort_mutex_lock_until(&m, deadline), -ETIMEDOUT);
    CHECK_GE(gort_now(), deadline);
    gort_mutex_unlock(&m);
    CHECK_EQ(gort_mutex_lock_until(&m, 0), 0); /* passed, but one attempt is made */
    gort_mutex_unlock(&m);
    CHECK_EQ(gort_mutex_lock_until(&m, GORT_FOREVER), 0);
    gort_mutex_unlock(&m);
    CHECK_EQ(AT_REST(m), 0);
}

/* ---- exclusion ------------------------------------------------------------------------------ */

typedef struct Shared {
    gort_mutex m;
    gort_wg wg;
    long plain;  /* m */
    long locked; /* atomic */
    int inside;
    int timeouts;
} Shared;

static void critical(Shared *s, int i) {
    CHECK_EQ(add(&s->inside, 1), 1);
    s->plain++;
    if (i % 7 == 0) gort_yield();
    CHECK_EQ(add(&s->inside, -1), 0);
    add(&s->locked, 1);
}

static void locker(void *arg) {
    Shared *s = arg;
    for (int i = 0; i < 500; i++) {
        gort_mutex_lock(&s->m);
        critical(s, i);
        gort_mutex_unlock(&s->m);
    }
}

static void timed_locker(void *arg) {
    Shared *s = arg;
    uint64_t rng = gort_id() * 7919 + 1;
    for (int i = 0; i < 500; i++) {
        int64_t wait = (int64_t)(test_random(&rng) % 40) * GORT_US;
        int r = gort_mutex_lock_until(&s->m, gort_now() + wait);
        if (r == 0) {
            critical(s, i);
            gort_mutex_unlock(&s->m);
        } else {
            CHECK_EQ(r, -ETIMEDOUT);
            add(&s->timeouts, 1);
        }
    }
}

static void try_locker(void *arg) {
    Shared *s = arg;
    for (int i = 0; i < 500; i++) {
        int r = gort_mutex_try_lock(&s->m);
        if (r == 0) {
            critical(s, i);
            gort_mutex_unlock(&s->m);
        } else {
            CHECK_EQ(r, -EBUSY);
            gort_yield();
        }
    }
}

static void *plain_locker(void *arg) {
    Shared *s = arg;
    for (int i = 0; i < 300; i++) {
        gort_mutex_lock(&s->m);
        CHECK_EQ(add(&s->inside, 1), 1);
        s->plain++;
        CHECK_EQ(add(&s->inside, -1), 0);
        add(&s->locked, 1);
        gort_mutex_unlock(&s->m);
    }
    return NULL;
}

static void exclusion(void) {
    Shared s = {0};
    pthread_t t[2];
    int threads = test_simulated() ? 0 : 2;
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&t[i], NULL, plain_locker, &s), 0);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(gort_wg_go(&s.wg, locker, &s), 0);
        CHECK_EQ(gort_wg_go(&s.wg, timed_locker, &s), 0);
        CHECK_EQ(gort_wg_go(&s.wg, try_locker, &s), 0);
    }
    gort_wg_wait(&s.wg);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    CHECK_EQ(s.plain, s.locked);
    CHECK_GE(s.plain, 6 * 500 + threads * 300);
    CHECK_EQ(AT_REST(s.m), 0);
}

/* ---- waiters that give up ------------------------------------------------------------------- */

static void expiring(void *arg) {
    Shared *s = arg;
    CHECK_EQ(gort_mutex_lock_until(&s->m, gort_now() + 3 * GORT_MS), -ETIMEDOUT);
}

static void patient(void *arg) {
    Shared *s = arg;
    gort_mutex_lock(&s->m);
    s->plain++;
    gort_mutex_unlock(&s->m);
}

/* All give up: the mutex is as new. Some give up: the others are served. */
static void giving_up(void) {
    Shared s = {0};
    gort_wg stay = {0};
    gort_mutex_lock(&s.m);
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_wg_go(&s.wg, expiring, &s), 0);
    gort_wg_wait(&s.wg);
    gort_mutex_unlock(&s.m);
    CHECK_EQ(AT_REST(s.m), 0);

    gort_mutex_lock(&s.m);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_wg_go(&s.wg, expiring, &s), 0);
        CHECK_EQ(gort_wg_go(&stay, patient, &s), 0);
    }
    gort_wg_wait(&s.wg);
    wait_until(waiting_for("sync.Mutex.Lock") == 10);
    gort_mutex_unlock(&s.m);
    gort_wg_wait(&stay);
    CHECK_EQ(s.plain, 10);
    CHECK_EQ(AT_REST(s.m), 0);
}

/* ---- fairness ------------------------------------------------------------------------------- */

typedef struct Fair {
    gort_mutex m;
    int stop, rounds;
    gort_wg wg;
} Fair;

/* Holds the mutex nearly always, and is the one that has a CPU when it is free. */
static void greedy(void *arg) {
    Fair *f = arg;
    while (!get(&f->stop)) {
        gort_mutex_lock(&f->m);
        add(&f->rounds, 1);
        gort_sleep(200 * GORT_US);
        gort_mutex_unlock(&f->m);
    }
}

/* Without starvation mode this takes for ever; with it, a few rounds. */
static void fairness(void) {
    Fair f = {0};
    CHECK_EQ(gort_wg_go(&f.wg, greedy, &f), 0);
    wait_until(get(&f.rounds) > 0);
    for (int i = 0; i < 10; i++) {
        int before = get(&f.rounds);
        gort_mutex_lock(&f.m);
        CHECK_LT(get(&f.rounds) - before, 1000000); /* minutes: a thread may be kept waiting */
        gort_mutex_unlock(&f.m);
        gort_sleep(100 * GORT_US);
    }
    set(&f.stop, 1);
    gort_wg_wait(&f.wg);
    CHECK_EQ(AT_REST(f.m), 0);
}

/* One waiter that has waited 1 ms and lost once is handed the mutex by the next unlock, so
 * that even a holder that never sleeps outside cannot keep it. */
static void hand_over(void) {
    Fair f = {0};
    int taken = 0;
    gort_mutex_lock(&f.m);
    CHECK_EQ(gort_wg_go(&f.wg, greedy, &f), 0);
    wait_until(waiting_for("sync.Mutex.Lock") == 1);
    gort_sleep(2 * GORT_MS); /* it is starving now, but learns it only when it loses */
    while (get(&f.rounds) == 0 && taken < 1000000) {
        gort_mutex_unlock(&f.m);
        gort_mutex_lock(&f.m);
        taken++;
        if (taken % 16 == 0) gort_yield();
    }
    CHECK_GT(get(&f.rounds), 0);
    gort_mutex_unlock(&f.m);
    set(&f.stop, 1);
    gort_wg_wait(&f.wg);
}

/* ---- the last one frees --------------------------------------------------------------------- */

typedef struct Counted {
    gort_mutex m;
    int refs;
} Counted;

static void drop(void *arg) {
    Counted *c = arg;
    gort_mutex_lock(&c->m);
    if (c->refs % 2 == 0) gort_yield();
    int left = --c->refs;
    gort_mutex_unlock(&c->m);
    if (left == 0) {
        memset(c, 0x5a, sizeof *c); /* whoever touches it now is found */
        free(c);
    }
}

static void freed_by_the_last(void) {
    gort_wg wg = {0};
    for (int round = 0; round < 200; round++) {
        Counted *c = calloc(1, sizeof *c);
        c->refs = 4;
        for (int i = 0; i < 4; i++) CHECK_EQ(gort_wg_go(&wg, drop, c), 0);
        if (round % 10 == 9) gort_wg_wait(&wg);
    }
    gort_wg_wait(&wg);
}

static int body(int argc, char **argv) {
    tries_and_deadlines();
    exclusion();
    giving_up();
    fairness();
    hand_over();
    freed_by_the_last();
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) tries_and_deadlines(); /* a plain thread, no runtime */
    return gort_main(body, argc, argv);
}
