/*
 * The soak's channels, selects, timers, locks, contexts and groups. Each keeps books of what it
 * moves.
 */
#include "soak.h"

/* ---- tokens that go round over channels and selects ------------------------------------------ */

enum { RING = 8, TOKENS_ROUND = 12 };
static gort_chan *ring[RING];
static uint64_t token_sum;

typedef struct Passer {
    Part *part;
    int at;
    uint64_t seed;
} Passer;

/* Takes a token from its channel, or the one before, and passes it on; a deadline only makes it
 * look again. */
static void passer(void *arg) {
    Passer *p = arg;
    uint64_t rng = p->seed;
    while (!soak_over()) {
        uint64_t token, r = test_random(&rng);
        gort_case take[2] = {gort_on_recv(ring[p->at], &token),
                             gort_on_recv(ring[(p->at + 1) % RING], &token)};
        int64_t deadline = gort_now() + (int64_t)(r % 5) * GORT_MS;
        int got = r % 3 == 0 ? gort_chan_recv_until(ring[p->at], &token, deadline)
                             : gort_select_until(take, 2, deadline);
        if (got == -ETIMEDOUT) continue;
        CHECK_GE(got, 0);
        gort_chan *a = ring[(p->at + 2) % RING], *b = ring[(p->at + 3) % RING];
        gort_case give[2] = {gort_on_send(a, &token), gort_on_send(b, &token)};
        CHECK_GE(gort_select(give, 2), 0);
        if (r % 512 == 0) gort_sleep(GORT_MS); /* else it would be most of what happens */
        soak_round(p->part);
    }
}

static void tokens_run(Part *part, uint64_t seed) {
    gort_wg wg = {0};
    Passer p[2 * RING];
    /* room: nobody is stuck at the end */
    for (int i = 0; i < RING; i++) ring[i] = gort_chan_new(sizeof(uint64_t), TOKENS_ROUND);
    for (uint64_t t = 1; t <= TOKENS_ROUND; t++) {
        token_sum += t;
        CHECK_EQ(gort_chan_send(ring[t % RING], &t), 0);
    }
    for (int i = 0; i < 2 * RING; i++) {
        p[i] = (Passer){part, i % RING, seed + (uint64_t)i};
        CHECK_EQ(gort_wg_go(&wg, passer, &p[i]), 0);
    }
    gort_wg_wait(&wg);
}

static void tokens_check(Part *part) {
    uint64_t sum = 0, n = 0, t;
    for (int i = 0; i < RING; i++) {
        while (gort_chan_try_recv(ring[i], &t) == 0) sum += t, n++;
        gort_chan_release(ring[i]);
    }
    CHECK_EQ(n, TOKENS_ROUND);
    CHECK_EQ(sum, token_sum);
}

/* ---- unbuffered, with a close at the end of each run ----------------------------------------- */

static void sends_until_closed(void *arg) {
    gort_chan **c = arg;
    int v = 1;
    /* counted by the reader */
    while (gort_chan_send(c[0], &v) == 0) CHECK_EQ(gort_chan_send(c[1], &v), 0);
}

static void closing_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        gort_chan *c[2] = {gort_chan_new(sizeof(int), 0), gort_chan_new(sizeof(int), 1 << 12)};
        gort_wg wg = {0};
        int v, n = (int)(test_random(&seed) % 200);
        for (int i = 0; i < 5; i++) CHECK_EQ(gort_wg_go(&wg, sends_until_closed, c), 0);
        for (int i = 0; i < n; i++) CHECK_EQ(gort_chan_recv(c[0], &v), 0);
        CHECK_EQ(gort_chan_close(c[0]), 0);
        gort_wg_wait(&wg);
        CHECK_EQ(gort_chan_len(c[1]), n); /* what was sent was received */
        gort_chan_release(c[0]);
        gort_chan_release(c[1]);
        soak_round(part);
    }
}

/* ---- timers ---------------------------------------------------------------------------------- */

static uint64_t fired;
static void fires(void *arg) { add(&fired, 1); }

static void timers_run(Part *part, uint64_t seed) {
    uint64_t armed = 0, stopped = 0;
    while (!soak_over()) {
        enum { N = 40 };
        gort_timer *t[N];
        for (int i = 0; i < N; i++) {
            t[i] = gort_timer_new((int64_t)(test_random(&seed) % 3000) * GORT_US, fires, NULL);
            CHECK(t[i] != NULL);
            armed++;
        }
        int64_t before = gort_now(), ns = (int64_t)(test_random(&seed) % 2000) * GORT_US;
        gort_sleep(ns);
        CHECK_GE(gort_now(), before + ns);
        for (int i = 0; i < N; i++) {
            if (i % 4 == 0) {
                /* had fired: once more; else the same one */
                if (gort_timer_reset(t[i], GORT_US) == 0) armed++;
            } else if (gort_timer_stop(t[i])) {
                stopped++;
            }
        }
        gort_chan *c = gort_after((int64_t)(test_random(&seed) % 1000) * GORT_US);
        CHECK_EQ(gort_chan_recv(c, NULL), 0);
        gort_chan_release(c);
        wait_until(get(&fired) + stopped == armed); /* none lost, none twice */
        for (int i = 0; i < N; i++) gort_timer_free(t[i]);
        soak_round(part);
    }
}

/* ---- locks ----------------------------------------------------------------------------------- */

static gort_mutex mutex;
static gort_rwmutex rw;
static gort_cond cond;
static gort_sem sem;
static uint64_t guarded, guarded_ops, rw_a, rw_b, turns;
static int inside;

static void lock_user(void *arg) {
    Passer *me = arg;
    while (!soak_over()) {
        uint64_t r = test_random(&me->seed);
        if (r % 4 == 0) {
            if (gort_mutex_lock_until(&mutex, gort_now() + (int64_t)(r >> 8) % GORT_MS) != 0)
                continue;
        } else {
            gort_mutex_lock(&mutex);
        }
        guarded++;
        if (r % 64 == 0) gort_yield();
        turns++;
        gort_cond_signal(&cond);
        gort_mutex_unlock(&mutex);
        add(&guarded_ops, 1);
        if (r % 8 == 0) {
            gort_rwmutex_lock(&rw);
            rw_a++, rw_b++;
            gort_rwmutex_unlock(&rw);
        } else {
            gort_rwmutex_rlock(&rw);
            CHECK_EQ(rw_a, rw_b);
            gort_rwmutex_runlock(&rw);
        }
        gort_sem_acquire(&sem, 1 + (int64_t)(r % 3));
        CHECK_LE(add(&inside, 1), 4);
        if (r % 16 == 0) gort_sleep(10 * GORT_US);
        add(&inside, -1);
        gort_sem_release(&sem, 1 + (int64_t)(r % 3));
        soak_round(me->part);
    }
}

/* Waits for turns to move on, with a deadline: at the end nobody signals any more. */
static void cond_user(void *arg) {
    uint64_t last = 0;
    while (!soak_over()) {
        gort_mutex_lock(&mutex);
        for (int r = 0; turns == last && r == 0;)
            r = gort_cond_wait_until(&cond, &mutex, gort_now() + 5 * GORT_MS);
        last = turns;
        gort_mutex_unlock(&mutex);
    }
}

static void locks_run(Part *part, uint64_t seed) {
    gort_wg wg = {0};
    Passer p[12];
    gort_sem_release(&sem, 4);
    for (int i = 0; i < 12; i++) {
        p[i] = (Passer){part, i, seed + (uint64_t)i};
        CHECK_EQ(gort_wg_go(&wg, i < 10 ? lock_user : cond_user, &p[i]), 0);
    }
    gort_wg_wait(&wg);
}

static void locks_check(Part *part) {
    CHECK_EQ(guarded, guarded_ops);
    CHECK_EQ(rw_a, rw_b);
    CHECK_EQ(inside, 0);
    CHECK_EQ(gort_sem_try_acquire(&sem, 4), 0);
}

/* ---- contexts and groups --------------------------------------------------------------------- */

static int member(gort_ctx *ctx, void *arg) {
    uint64_t r = (uint64_t)(uintptr_t)arg;
    gort_chan *after = gort_after((int64_t)(r % 2000) * GORT_US);
    int which = gort_select_of(gort_on_recv(gort_ctx_done(ctx), NULL), gort_on_recv(after, NULL));
    gort_chan_release(after);
    if (which == 0) return gort_ctx_err(ctx);
    return r % 7 == 0 ? -EIO : 0;
}

static void groups_run(Part *part, uint64_t seed) {
    while (!soak_over()) {
        gort_ctx *top = gort_ctx_new(NULL);
        gort_ctx *timed = gort_ctx_with_deadline(
            top, gort_now() + (int64_t)(test_random(&seed) % 3000) * GORT_US);
        CHECK(top && timed);
        gort_group *g = gort_group_new(timed, 6);
        for (int i = 0; i < 12; i++)
            CHECK_EQ(gort_group_go(g, member, (void *)(uintptr_t)(test_random(&seed) >> 8)), 0);
        if (test_random(&seed) % 3 == 0) gort_ctx_cancel(top);
        int r = gort_group_wait(g);
        CHECK(r == 0 || r == -EIO || r == -ECANCELED || r == -ETIMEDOUT);
        gort_ctx_release(top);
        gort_ctx_release(timed);
        soak_round(part);
    }
}

Part soak_sync[] = {
    {"tokens", tokens_run, tokens_check, 0, 0, 0, 0}, {"close", closing_run, NULL, 0, 0, 0, 0},
    {"timers", timers_run, NULL, 0, 0, 0, 0},         {"locks", locks_run, locks_check, 0, 0, 0, 0},
    {"groups", groups_run, NULL, 0, 0, 0, 0},         {0}};
