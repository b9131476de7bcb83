/* Sleeping, timers, tickers and their channels. Nothing here depends on how late anything is. */
#include "../lib/waiting.h"

static void one_more(void *arg) { add((int *)arg, 1); }

static void sleeps(void) {
    int64_t begin = gort_now();
    gort_sleep(3 * GORT_MS);
    CHECK_GE(gort_now() - begin, 3 * GORT_MS);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    gort_sleep_until(deadline);
    CHECK_GE(gort_now(), deadline);
    gort_sleep(0);
    gort_sleep(-5);
    gort_sleep_until(0);
    gort_sleep_until(-1);
}

static int never;
static void sleeper_for_ever(void *arg) {
    gort_sleep(INT64_MAX); /* the sum overflows */
    add(&never, 1);
}

/* ---- one shot ------------------------------------------------------------------------------- */

static void fires_once(void) {
    int n = 0;
    gort_timer *t = gort_timer_new(GORT_MS, one_more, &n);
    CHECK(t != NULL);
    wait_until(get(&n) == 1);
    CHECK_EQ(gort_timer_stop(NULL), -EINVAL);
    CHECK_EQ(gort_timer_reset(NULL, 1), -EINVAL);
    CHECK_EQ(gort_timer_stop(t), 0);
    CHECK_EQ(gort_timer_reset(t, 0), 0);
    wait_until(get(&n) == 2);
    CHECK_EQ(gort_timer_reset(t, GORT_SEC * 1000), 0);
    CHECK_EQ(gort_timer_reset(t, -7), 1);
    wait_until(get(&n) == 3);
    gort_timer_free(t);

    t = gort_timer_new(-1, one_more, &n);
    wait_until(get(&n) == 4);
    gort_timer_free(t);
    CHECK(gort_timer_new(0, NULL, NULL) == NULL);
    gort_timer_free(NULL);
}

static void stopped_does_not_fire(void) {
    int n = 0;
    gort_timer *t = gort_timer_new(1000 * GORT_SEC, one_more, &n);
    CHECK_EQ(gort_timer_stop(t), 1);
    CHECK_EQ(gort_timer_stop(t), 0);
    gort_timer *far = gort_timer_new(INT64_MAX, one_more, &n); /* overflows: never */
    gort_timer *far2 = gort_timer_new(GORT_FOREVER - 5, one_more, &n);
    gort_timer *near = gort_timer_new(1000 * GORT_SEC, one_more, &n);
    CHECK_EQ(gort_timer_reset(near, INT64_MAX), 1);
    gort_sleep(2 * GORT_MS);
    CHECK_EQ(get(&n), 0);
    CHECK_EQ(gort_timer_stop(far), 1);
    CHECK_EQ(gort_timer_stop(far2), 1);
    CHECK_EQ(gort_timer_stop(near), 1);
    gort_timer_free(t);
    gort_timer_free(far);
    gort_timer_free(far2);
    gort_timer_free(near);
    t = gort_timer_new(1000 * GORT_SEC, one_more, &n);
    gort_timer_free(t); /* stops it */
    CHECK_EQ(get(&n), 0);
}

/* It does not fire early, and has a goroutine of its own. */
static int64_t due;
static int fired;
static void check_due(void *arg) {
    CHECK_GE(gort_now(), due);
    CHECK_NE(gort_id(), *(uint64_t *)arg);
    gort_sleep(10 * GORT_US); /* it may block */
    add(&fired, 1);
}
static void own_goroutine(void) {
    uint64_t me = gort_id();
    due = gort_now() + 2 * GORT_MS;
    gort_timer *t = gort_timer_new(2 * GORT_MS, check_due, &me);
    wait_until(get(&fired) == 1);
    gort_timer_free(t);
}

/* Every one of many timers either is stopped or runs, never both, whatever happens at once. */
typedef struct Race {
    gort_timer *t;
    int ran, stopped;
} Race;
static void race_fires(void *arg) { add(&((Race *)arg)->ran, 1); }

static void stop_races(void) {
    enum { N = 400 };
    static Race r[N];
    int stopped = 0;
    memset(r, 0, sizeof r);
    for (int i = 0; i < N; i++) {
        r[i].t = gort_timer_new((i % 50) * 10 * GORT_US, race_fires, &r[i]);
        CHECK(r[i].t != NULL);
        if (i % 3 == 0) gort_yield();
    }
    for (int i = 0; i < N; i++) {
        r[i].stopped = gort_timer_stop(r[i].t);
        stopped += r[i].stopped;
        if (i % 5 == 0) gort_sleep(5 * GORT_US);
    }
    for (int i = 0; i < N; i++) {
        wait_until(get(&r[i].ran) + r[i].stopped == 1);
        gort_timer_free(r[i].t);
    }
    gort_sleep(GORT_MS);
    for (int i = 0; i < N; i++) CHECK_EQ(get(&r[i].ran) + r[i].stopped, 1);
    printf("%d of %d stopped in time\n", stopped, N);
}

/* Resets against firing: it runs once more than it was found armed... counted exactly. */
static void reset_races(void) {
    Race r = {0};
    int armed = 1, cut = 0; /* armings, and armings that a reset or stop took back */
    r.t = gort_timer_new(0, race_fires, &r);
    for (int i = 0; i < 500; i++) {
        cut += gort_timer_reset(r.t, (i % 3) * 5 * GORT_US);
        armed++;
        if (i % 4 == 0) gort_yield();
        if (i % 9 == 0) gort_sleep(10 * GORT_US);
    }
    cut += gort_timer_stop(r.t);
    wait_until(get(&r.ran) == armed - cut);
    gort_sleep(GORT_MS);
    CHECK_EQ(get(&r.ran), armed - cut);
    gort_timer_free(r.t);
}

/* ---- free from its own function, and while it runs ------------------------------------------- */

typedef struct Self {
    gort_chan *handle; /* of gort_timer * */
    int done, running, go_on;
} Self;

static void frees_itself(void *arg) {
    Self *s = arg;
    gort_timer *t;
    if (gort_chan_recv(s->handle, &t) == -EPIPE) return; /* a further tick */
    gort_timer_free(t);
    add(&s->done, 1);
}

static void stays(void *arg) {
    Self *s = arg;
    add(&s->running, 1);
    wait_until(get(&s->go_on));
    add(&s->done, 1);
}

static void freeing(void) {
    static Self s; /* late ticks look at it */
    s = (Self){.handle = gort_chan_new(sizeof(gort_timer *), 1)};
    gort_timer *t = gort_timer_new(0, frees_itself, &s);
    CHECK_EQ(gort_chan_send(s.handle, &t), 0);
    wait_until(get(&s.done) == 1);
    t = gort_ticker_new(100 * GORT_US, frees_itself, &s); /* one tick gets it; the rest wait */
    CHECK_EQ(gort_chan_send(s.handle, &t), 0);
    wait_until(get(&s.done) == 2);
    gort_chan_close(s.handle);
    wait_until(gort_count() == 2); /* main and the eternal sleeper */
    t = gort_timer_new(0, stays, &s);
    wait_until(get(&s.running) == 1);
    gort_timer_free(t);
    set(&s.go_on, 1);
    wait_until(get(&s.done) == 3);
    gort_chan_release(s.handle);
}

/* ---- tickers --------------------------------------------------------------------------------- */

static void tickers(void) {
    int n = 0;
    int64_t begin = gort_now();
    gort_timer *t = gort_ticker_new(500 * GORT_US, one_more, &n);
    CHECK(t != NULL);
    wait_until(get(&n) >= 5);
    CHECK_GE(gort_now() - begin, 5 * 500 * GORT_US);
    CHECK_EQ(gort_timer_reset(t, 0), -EINVAL);
    CHECK_EQ(gort_timer_reset(t, -1), -EINVAL);
    CHECK_EQ(gort_timer_reset(t, 1000 * GORT_SEC), 1);
    CHECK_EQ(gort_timer_reset(t, 100 * GORT_US), 1);
    int seen = get(&n);
    wait_until(get(&n) >= seen + 3);
    CHECK_EQ(gort_timer_stop(t), 1);
    CHECK_EQ(gort_timer_stop(t), 0);
    CHECK_EQ(gort_timer_reset(t, 100 * GORT_US), 0);
    seen = get(&n);
    wait_until(get(&n) >= seen + 3);
    gort_timer_free(t);
    wait_until(gort_count() == 2); /* main and the eternal sleeper: no tick is under way */
    seen = get(&n);
    gort_sleep(2 * GORT_MS);
    CHECK_EQ(get(&n), seen);
    CHECK(gort_ticker_new(0, one_more, &n) == NULL);
    CHECK(gort_ticker_new(-1, one_more, &n) == NULL);
    CHECK(gort_ticker_new(1, NULL, NULL) == NULL);
}

/* ---- channels -------------------------------------------------------------------------------- */

static void after_and_tick(void) {
    int64_t now = gort_now(), t = 0, before;
    gort_chan *c = gort_after(2 * GORT_MS);
    CHECK_EQ(gort_chan_recv(c, &t), 0);
    CHECK_GE(t, now + 2 * GORT_MS);
    CHECK_LE(t, gort_now());
    CHECK_EQ(gort_chan_try_recv(c, &t), -EAGAIN);
    gort_chan_release(c);
    c = gort_after(-3);
    CHECK_EQ(gort_chan_recv(c, &t), 0);
    gort_chan_release(c);
    gort_chan_release(gort_after(GORT_MS)); /* nobody cares */
    gort_chan_release(gort_after(INT64_MAX));

    gort_timer *owner = NULL;
    now = gort_now();
    c = gort_tick(300 * GORT_US, &owner);
    CHECK(c != NULL && owner != NULL);
    before = now;
    for (int i = 1; i <= 4; i++) {
        CHECK_EQ(gort_chan_recv(c, &t), 0);
        CHECK_GE(t, now + i * 300 * GORT_US);
        CHECK_GT(t, before);
        before = t;
    }
    gort_sleep(3 * GORT_MS); /* a slow receiver finds one tick */
    CHECK_LE(gort_chan_len(c), 1);
    gort_timer_stop(owner);
    while (gort_chan_try_recv(c, &t) == 0) {}
    gort_sleep(GORT_MS);
    CHECK_EQ(gort_chan_len(c), 0); /* stopped is stopped */
    CHECK_EQ(gort_timer_reset(owner, 100 * GORT_US), 0);
    CHECK_EQ(gort_chan_recv(c, &t), 0);
    gort_chan_release(c); /* first the channel, then the owner */
    gort_sleep(GORT_MS);
    gort_timer_free(owner);
    c = gort_tick(100 * GORT_US, &owner);
    gort_timer_free(owner); /* and the other way round */
    gort_chan_release(c);
    CHECK(gort_tick(0, &owner) == NULL);
    CHECK(gort_tick(-1, &owner) == NULL);
}

/* A timer whose channel the program has released has nobody to send to, and goes at once. */
static uint64_t armed_now(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.timers;
}
static int heard;
static void hears(void *c) {
    CHECK_EQ(gort_chan_recv(c, NULL), 0);
    add(&heard, 1);
}
static void released_is_gone(void) {
    uint64_t before = armed_now();
    for (int i = 0; i < 100; i++) gort_chan_release(gort_after(1000 * GORT_SEC));
    CHECK_EQ(armed_now(), before);
    gort_chan_release(gort_tick(1000 * GORT_SEC, NULL));
    CHECK_EQ(armed_now(), before);

    gort_timer *owner = NULL;
    gort_chan_release(gort_tick(1000 * GORT_SEC, &owner));
    CHECK_EQ(armed_now(), before);
    CHECK_EQ(gort_timer_stop(owner), 0);
    CHECK_EQ(gort_timer_reset(owner, 1000 * GORT_SEC), 0); /* it is the owner's */
    CHECK_EQ(armed_now(), before + 1);
    gort_timer_free(owner);
    CHECK_EQ(armed_now(), before);

    gort_chan *c = gort_chan_retain(gort_after(1000 * GORT_SEC));
    gort_chan_release(c);
    CHECK_EQ(armed_now(), before + 1);
    CHECK_EQ(gort_chan_recv_until(c, NULL, gort_now() + 1), -ETIMEDOUT);
    gort_case cases[2] = {{.ch = c, .op = GORT_RECV}, {.op = GORT_RECV}};
    CHECK_EQ(gort_select_until(cases, 2, gort_now() + 1), -ETIMEDOUT);
    gort_chan_release(c);
    CHECK_EQ(armed_now(), before);

    bool waits;
    do {
        set(&heard, 0);
        c = gort_after(30 * GORT_MS);
        gort_go(hears, c);
        wait_until((waits = waiting_for("chan receive") == 1) || get(&heard));
        gort_chan_release(c); /* one waits: it is served */
        wait_until(get(&heard) == 1);
    } while (!waits); /* the time was over before we looked */
}

/* Released while it fires, by whatever comes first. */
static void releases_race(void) {
    uint64_t before = armed_now();
    for (int i = 0; i < 3000 / TEST_SCALE; i++) {
        gort_timer *owner = NULL;
        gort_chan *c = gort_after(i % 30 * GORT_US), *ticks = gort_tick(1 + i % 20 * GORT_US, NULL);
        gort_chan *owned = gort_tick(1 + i % 10 * GORT_US, &owner);
        if (i % 3 == 0) gort_sleep(i % 25 * GORT_US);
        gort_chan_release(c);
        gort_chan_release(ticks);
        if (i % 2) gort_chan_release(owned);
        gort_timer_free(owner);
        if (i % 2 == 0) gort_chan_release(owned);
    }
    CHECK_EQ(armed_now(), before);
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct Line {
    gort_wg wg;
    int64_t when[64], woke[64];
} Line;
static Line line;
static void in_line(void *arg) {
    intptr_t i = (intptr_t)arg;
    gort_sleep_until(line.when[i]);
    line.woke[i] = gort_now();
}
static void sleepers(void) {
    int64_t now = gort_now();
    for (intptr_t i = 0; i < 64; i++) {
        line.when[i] = now + (i * 37 % 64) * 50 * GORT_US;
        CHECK_EQ(gort_wg_go(&line.wg, in_line, (void *)i), 0);
    }
    gort_wg_wait(&line.wg);
    for (int i = 0; i < 64; i++) CHECK_GE(line.woke[i], line.when[i]);
}

static gort_timer *left_armed, *left_ticking;
static gort_chan *left_after;
static int left_n;

static int body(int argc, char **argv) {
    never = 0;
    CHECK_EQ(gort_go(sleeper_for_ever, NULL), 0);
    sleeps();
    fires_once();
    stopped_does_not_fire();
    own_goroutine();
    fired = 0;
    stop_races();
    reset_races();
    freeing();
    tickers();
    after_and_tick();
    released_is_gone();
    releases_race();
    sleepers();
    CHECK_EQ(never, 0);
    left_armed = gort_timer_new(1000 * GORT_SEC, one_more, &left_n);
    left_ticking = gort_ticker_new(1000 * GORT_SEC, one_more, &left_n);
    CHECK((left_after = gort_after(1000 * GORT_SEC)) != NULL);
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) sleeps(); /* a plain thread, no runtime */
    CHECK(gort_timer_new(0, one_more, NULL) == NULL);
    CHECK(gort_ticker_new(1, one_more, NULL) == NULL);
    CHECK(gort_after(1) == NULL);
    CHECK(gort_tick(1, NULL) == NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_main(body, argc, argv), 0);
        gort_timer_stop(left_armed); /* their runtime is gone */
        CHECK_EQ(gort_timer_reset(left_armed, 1), -ENOTCONN);
        gort_timer_free(left_armed);
        gort_timer_free(left_ticking);
        gort_chan_release(left_after);
    }
    return 0;
}
