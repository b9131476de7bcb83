/* What the contract says of select, sentence by sentence, and the behaviour that Go's own tests ask
 * for: fairness, duplicates, self select, a try that never overlooks a token. */
#include "../lib/everywhere.h"

#include <pthread.h>
#include <stdbool.h>

static int64_t soon(void) { return gort_now() + GORT_MS; }
static int64_t late(void) { return gort_now() + 600 * GORT_SEC; }

static void *as_thread(void *arg) {
    void **call = arg;
    ((gort_fn *)call[0])(call[1]);
    free(call);
    return NULL;
}

/* A goroutine, or a thread where there is no runtime. */
static void start(gort_fn *fn, void *arg) {
    int r = gort_go(fn, arg);
    if (r == 0) return;
    CHECK_EQ(r, -ENOTCONN);
    pthread_t t;
    void **call = malloc(2 * sizeof *call);
    call[0] = (void *)fn;
    call[1] = arg;
    CHECK_EQ(pthread_create(&t, NULL, as_thread, call), 0);
    CHECK_EQ(pthread_detach(t), 0);
}

static void malformed(void) {
    int v = 1;
    gort_chan *c = gort_chan_new(sizeof v, 1);
    gort_case k[2] = {gort_on_send(c, &v), {3, c, &v, 0}};
    CHECK_EQ(gort_select(k, -1), -EINVAL);
    CHECK_EQ(gort_select(k, 65537), -EINVAL);
    CHECK_EQ(gort_select(k, 2), -EINVAL);
    CHECK_EQ(gort_try_select(k, 2), -EINVAL);
    CHECK_EQ(gort_select_until(k, 2, soon()), -EINVAL);
    k[1] = (gort_case){0, NULL, NULL, 0};
    CHECK_EQ(gort_select(k, 2), -EINVAL);
    CHECK_EQ(gort_chan_len(c), 0); /* nothing was done */
    gort_chan_release(c);
}

static void never_ready(void) {
    int v = 7;
    gort_chan *full = gort_chan_new(sizeof v, 1), *empty = gort_chan_new(sizeof v, 1);
    CHECK_EQ(gort_chan_send(full, &v), 0);
    gort_case k[4] = {gort_on_recv(NULL, &v), gort_on_send(NULL, &v), gort_on_send(full, &v),
                      gort_on_recv(empty, &v)};
    for (int i = 0; i < 4; i++) k[i].result = 99;
    for (int n = 0; n <= 4; n++) {
        CHECK_EQ(gort_try_select(k, n), -EAGAIN);
        CHECK_EQ(gort_select_until(k, n, soon()), -ETIMEDOUT);
        CHECK_EQ(gort_select_until(k, n, 0), -ETIMEDOUT);
        CHECK_EQ(gort_select_until(k, n, INT64_MIN), -ETIMEDOUT);
    }
    for (int i = 0; i < 4; i++) CHECK_EQ(k[i].result, 99); /* the caller's memory is untouched */
    CHECK_EQ(v, 7);
    CHECK_EQ(gort_chan_len(full), 1);
    CHECK_EQ(gort_chan_len(empty), 0);
    gort_chan_release(full);
    gort_chan_release(empty);
}

static void ready_ones(void) {
    int in = 5, out = 0;
    gort_chan *a = gort_chan_new(sizeof in, 1), *b = gort_chan_new(sizeof in, 1);
    gort_case k[3] = {gort_on_recv(NULL, &out), gort_on_recv(b, &out), gort_on_send(a, &in)};
    CHECK_EQ(gort_select(k, 3), 2);
    CHECK_EQ(k[2].result, 0);
    CHECK_EQ(gort_try_select(k, 3), -EAGAIN);
    CHECK_EQ(gort_chan_send(b, &(int){6}), 0);
    CHECK_EQ(gort_select_until(k, 3, 0), 1); /* a passed deadline makes one attempt */
    CHECK_EQ(out, 6);
    CHECK_EQ(gort_select_of(gort_on_recv(b, &out), gort_on_recv(a, &out)), 1);
    CHECK_EQ(out, 5);
    CHECK_EQ(gort_chan_close(b), 0);
    CHECK_EQ(gort_try_select(k, 2), 1);
    CHECK_EQ(k[1].result, -EPIPE);
    CHECK_EQ(out, 0);
    k[1] = gort_on_send(b, &in);
    CHECK_EQ(gort_try_select(k, 2), 1); /* closed: for a send too */
    CHECK_EQ(k[1].result, -EPIPE);
    k[1] = gort_on_recv(b, NULL);
    CHECK_EQ(gort_select(k, 2), 1);
    gort_chan_release(a);
    gort_chan_release(b);
}

/* n ready cases, each equally likely. */
static void fair(int n, bool buffered_only) {
    enum { ROUNDS = 20000 };
    gort_chan *c[20];
    gort_case k[20];
    int hits[20] = {0}, v = 0;
    for (int i = 0; i < n; i++) {
        c[i] = gort_chan_new(sizeof v, 1);
        if (!buffered_only && i % 2) CHECK_EQ(gort_chan_close(c[i]), 0);
        else if (i % 4 == 0) CHECK_EQ(gort_chan_send(c[i], &v), 0);
        k[i] = i % 4 ? gort_on_send(c[i], &v) : gort_on_recv(c[i], &v);
    }
    for (int r = 0; r < ROUNDS; r++) {
        int i = r % 2 ? gort_select(k, n) : gort_try_select(k, n);
        CHECK(i >= 0 && i < n);
        hits[i]++;
        if (k[i].result == 0 && k[i].op == GORT_RECV) CHECK_EQ(gort_chan_send(c[i], &v), 0);
        if (k[i].result == 0 && k[i].op == GORT_SEND) CHECK_EQ(gort_chan_recv(c[i], &v), 0);
    }
    double chi = 0, mean = (double)ROUNDS / n;
    for (int i = 0; i < n; i++) chi += (hits[i] - mean) * (hits[i] - mean) / mean;
    /* Chance exceeds this once in 10^14 runs, and a choice of 45 : 55 always. */
    CHECKF(chi < 4 * (n - 1) + 60, "n %d: chi squared %.1f", n, chi);
    for (int i = 0; i < n; i++) gort_chan_release(c[i]);
}

/* ---- waiting --------------------------------------------------------------------------------- */

typedef struct Call {
    gort_case *k;
    int n, index, done;
    int64_t deadline;
} Call;

static void caller(void *arg) {
    Call *s = arg;
    s->index = s->deadline ? gort_select_until(s->k, s->n, s->deadline) : gort_select(s->k, s->n);
    set(&s->done, 1);
}

/* Blocked on n channels, each case in turn is the one that comes true. */
static void blocked(int n, bool timed) {
    gort_chan **c = malloc((size_t)n * sizeof *c);
    gort_case *k = malloc((size_t)n * sizeof *k);
    int *value = malloc((size_t)n * sizeof *value), v;
    for (int i = 0; i < n; i++) c[i] = gort_chan_new(sizeof(int), 0);
    for (int round = 0; round < 12; round++) {
        int hit = (int)((unsigned)round * 7919u % (unsigned)n);
        for (int i = 0; i < n; i++) {
            value[i] = i + 1;
            k[i] = i % 2 ? gort_on_send(c[i], &value[i]) : gort_on_recv(c[i], &value[i]);
            k[i].result = 99;
        }
        Call s = {k, n, -1, 0, timed ? late() : 0};
        start(caller, &s);
        if (round % 3) gort_yield();
        int want = hit % 2 ? hit + 1 : 1000;
        if (hit % 2) {
            CHECK_EQ(gort_chan_recv(c[hit], &v), 0);
            CHECK_EQ(v, hit + 1);
        } else {
            CHECK_EQ(gort_chan_send(c[hit], &(int){1000}), 0);
        }
        wait_until(get(&s.done));
        CHECK_EQ(s.index, hit);
        for (int i = 0; i < n; i++) {
            CHECK_EQ(value[i], i == hit ? want : i + 1);
            CHECK_EQ(k[i].result, i == hit ? 0 : 99);
            /* nothing is left behind on the others */
            CHECK_EQ(gort_chan_try_send(c[i], &v), -EAGAIN);
            CHECK_EQ(gort_chan_try_recv(c[i], &v), -EAGAIN);
        }
    }
    for (int i = 0; i < n; i++) gort_chan_release(c[i]);
    free(c);
    free(k);
    free(value);
}

static void blocked_until_closed(void) {
    int v = 3, w = 4;
    gort_chan *a = gort_chan_new(sizeof v, 0), *b = gort_chan_new(sizeof v, 0);
    for (int round = 0; round < 2; round++) {
        gort_case k[2] = {gort_on_recv(a, &v), gort_on_send(b, &w)};
        Call s = {k, 2, -1, 0, 0};
        start(caller, &s);
        gort_yield();
        CHECK_EQ(gort_chan_close(round ? a : b), 0);
        wait_until(get(&s.done));
        /* the first time only b is closed, then both are */
        if (round == 0) CHECK_EQ(s.index, 1);
        CHECK_EQ(k[s.index].result, -EPIPE);
        CHECK_EQ(v, s.index == 0 ? 0 : 3);
    }
    gort_chan_release(a);
    gort_chan_release(b);
}

/* The same channel in several cases: one of them runs, once. */
static void duplicates(void) {
    int v[3];
    gort_chan *c = gort_chan_new(sizeof(int), 0), *d = gort_chan_new(sizeof(int), 0);
    for (int round = 0; round < 30; round++) {
        gort_case k[4] = {gort_on_recv(c, &v[0]), gort_on_recv(c, &v[1]), gort_on_recv(d, &v[2]),
                          gort_on_recv(c, NULL)};
        memset(v, 0, sizeof v);
        Call s = {k, 4, -1, 0, round % 2 ? late() : 0};
        start(caller, &s);
        if (round % 3) gort_yield();
        CHECK_EQ(gort_chan_send(round % 5 ? c : d, &(int){8}), 0);
        wait_until(get(&s.done));
        if (round % 5) CHECK(s.index != 2);
        else CHECK_EQ(s.index, 2);
        for (int i = 0; i < 3; i++) CHECK_EQ(v[i], s.index == i ? 8 : 0);
        CHECK_EQ(gort_chan_try_send(c, &(int){9}), -EAGAIN);
        CHECK_EQ(gort_chan_try_send(d, &(int){9}), -EAGAIN);
    }
    gort_chan_release(c);
    gort_chan_release(d);
}

/* A select that waits, all of its cases on one channel: any of them is served, not always the
 * first. (With one P it waits whenever the other one comes; where it does not, the choice is made
 * among those that are ready.) */
typedef struct Same {
    gort_chan *c;
    int n, rounds, entered;
    bool send;
    int *took;
} Same;

static void selects_same(void *arg) {
    Same *s = arg;
    int v = 1;
    gort_case k[40];
    for (int i = 0; i < s->n; i++) k[i] = s->send ? gort_on_send(s->c, &v) : gort_on_recv(s->c, &v);
    int rounds = s->rounds; /* *s may be gone behind the last */
    for (int i = 0; i < rounds; i++) {
        add(&s->entered, 1);
        add(&s->took[gort_select(k, s->n)], 1);
    }
}

static int sum_of(int *v, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += get(&v[i]);
    return sum;
}

static void same_waits(int n, bool send) {
    int took[40] = {0}, v = 1;
    Same s = {gort_chan_new(sizeof(int), 0), n, 60 * n, 0, send, took};
    start(selects_same, &s);
    for (int i = 1; i <= s.rounds; i++) {
        wait_until(get(&s.entered) == i);
        CHECK_EQ(send ? gort_chan_recv(s.c, &v) : gort_chan_send(s.c, &v), 0);
    }
    wait_until(sum_of(took, n) == s.rounds);
    for (int i = 0; i < n; i++) CHECKF(took[i] > 0, "case %d of %d is never served", i, n);
    gort_chan_release(s.c);
}

/* Send and receive on one channel in one select: without a buffer it never meets itself, only the
 * other. */
typedef struct Selfish {
    gort_chan *c;
    int me, rounds, done;
} Selfish;

static void selfish(void *arg) {
    Selfish *s = arg;
    for (int i = 0; i < s->rounds; i++) {
        int out = s->me, in = -1;
        gort_case k[2] = {gort_on_send(s->c, &out), gort_on_recv(s->c, &in)};
        int r = gort_select(k, 2);
        if (k[r].result == -EPIPE) break;
        if (r == 1 && gort_chan_cap(s->c) == 0)
            CHECKF(in == 1 - s->me, "%d received from %d", s->me, in);
    }
    /* The other may be in the middle of a wait: an end to it. */
    (void)gort_chan_close(s->c);
    set(&s->done, 1);
}

static void self_select(int capacity) {
    gort_chan *c = gort_chan_new(sizeof(int), (size_t)capacity);
    Selfish a = {c, 0, 2000, 0}, b = {c, 1, 2000, 0};
    start(selfish, &a);
    start(selfish, &b);
    wait_until(get(&a.done) && get(&b.done));
    gort_chan_release(c);
}

/* A token is in a, and then in b before it is taken out of a: a try that looks at both must see
 * it. The same with a close in the place of the second token. */
typedef struct Token {
    gort_chan *a, *b;
    int index, done;
} Token;

static void seeker(void *arg) {
    Token *t = arg;
    gort_case k[2] = {gort_on_recv(t->a, NULL), gort_on_recv(t->b, NULL)};
    t->index = gort_try_select(k, 2);
    set(&t->done, 1);
}

static void token_is_seen(void) {
    int rounds = gort_maxprocs(0) > 0 ? 2000 : 300;
    for (int i = 0; i < rounds; i++) {
        Token t = {gort_chan_new(sizeof(int), 1), gort_chan_new(sizeof(int), 1), 0, 0};
        CHECK_EQ(gort_chan_send(t.a, &(int){1}), 0);
        start(seeker, &t);
        if (i % 3 == 0) gort_yield();
        if (i % 2) CHECK_EQ(gort_chan_send(t.b, &(int){1}), 0);
        else CHECK_EQ(gort_chan_close(t.b), 0);
        (void)gort_chan_try_recv(t.a, NULL);
        wait_until(get(&t.done));
        CHECKF(t.index >= 0, "round %d: the token was overlooked", i);
        gort_chan_release(t.a);
        gort_chan_release(t.b);
    }
}

/* A deadline against a sender at the same moment: both agree. */
typedef struct Late {
    gort_chan *c;
    int value, result, done;
    int64_t deadline;
} Late;

static void late_sender(void *arg) {
    Late *s = arg;
    s->result = gort_chan_send_until(s->c, &s->value, s->deadline);
    set(&s->done, 1);
}

static void deadline_race(void) {
    gort_chan *a = gort_chan_new(sizeof(int), 0), *b = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < 300; i++) {
        int v = -1;
        int64_t at = gort_now() + (i % 30) * 5 * GORT_US;
        Late s = {i % 2 ? a : b, i, 1, 0, at};
        start(late_sender, &s);
        gort_case k[2] = {gort_on_recv(a, &v), gort_on_recv(b, &v)};
        int r = gort_select_until(k, 2, at);
        wait_until(get(&s.done));
        CHECK_EQ(r, s.result == 0 ? (i % 2 ? 0 : 1) : -ETIMEDOUT);
        CHECK_EQ(v, s.result == 0 ? i : -1);
    }
    gort_chan_release(a);
    gort_chan_release(b);
}

/* The taker of a result releases the other channel of the select while the worker, which holds no
 * reference, has not yet come back from it. */
typedef struct Shop {
    gort_chan *result, *quit;
    int done;
} Shop;

static void worker(void *arg) {
    Shop *s = arg;
    gort_case k[2] = {gort_on_send(s->result, &(int){1}), gort_on_recv(s->quit, NULL)};
    CHECK_EQ(gort_select(k, 2), 0);
    set(&s->done, 1);
}

static void shop_closes(void) {
    for (int i = 0; i < 200; i++) {
        Shop s = {gort_chan_new(sizeof(int), 0), gort_chan_new(0, 0), 0};
        start(worker, &s);
        CHECK_EQ(gort_chan_recv(s.result, NULL), 0);
        gort_chan_release(s.result);
        gort_chan_release(s.quit);
        wait_until(get(&s.done));
    }
}

GORT_CHAN_TYPE(ints, int)

/* The forms that list their cases, over typed channels: with the index, and with the result. */
static void listed(void) {
    int v = 0, w = 3, result = 99;
    ints *full = ints_new(1), *room = ints_new(1), *never = NULL;
    CHECK_EQ(gort_try_select_of(ints_on_recv(full, &v), ints_on_send(never, &w)), -EAGAIN);
    CHECK_EQ(gort_select_until_of(soon(), ints_on_recv(full, &v)), -ETIMEDOUT);
    CHECK_EQ(gort_try_select_result_of(&result, ints_on_recv(full, &v)), -EAGAIN);
    CHECK_EQ(gort_select_until_result_of(soon(), &result, ints_on_recv(full, &v)), -ETIMEDOUT);
    CHECK_EQ(result, 99); /* none ran */
    CHECK_EQ(v, 0);
    CHECK_EQ(gort_select_of(ints_on_recv(full, NULL), ints_on_send(room, &w)), 1);
    CHECK_EQ(gort_select_of(ints_on_recv(full, NULL), ints_on_recv(room, &v)), 1);
    CHECK_EQ(v, 3);
    CHECK_EQ(ints_send(full, 5), 0);
    CHECK_EQ(ints_close(full), 0);
    CHECK_EQ(gort_select_result_of(&result, ints_on_recv(never, &w), ints_on_recv(full, &v)), 1);
    CHECK_EQ(result, 0);
    CHECK_EQ(v, 5);
    /* closed and drained: the index is the same, the result tells */
    result = 99;
    CHECK_EQ(gort_select_result_of(&result, ints_on_recv(never, &w), ints_on_recv(full, &v)), 1);
    CHECK_EQ(result, -EPIPE);
    CHECK_EQ(v, 0);
    result = 99;
    CHECK_EQ(gort_try_select_result_of(&result, ints_on_send(full, &w)), 0);
    CHECK_EQ(result, -EPIPE);
    result = 99;
    CHECK_EQ(gort_select_until_result_of(late(), &result, ints_on_recv(full, &v)), 0);
    CHECK_EQ(result, -EPIPE);
    ints_release(full);
    ints_release(room);
}

static void many_cases(void) {
    enum { N = 65536 };
    int v = 1;
    gort_chan *c = gort_chan_new(sizeof v, 0), *last = gort_chan_new(sizeof v, 1);
    gort_case *k = malloc(N * sizeof *k);
    for (int i = 0; i < N; i++) k[i] = gort_on_recv(i % 3 ? c : NULL, &v);
    CHECK_EQ(gort_try_select(k, N), -EAGAIN);
    CHECK_EQ(gort_select_until(k, N, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_try_send(c, &v), -EAGAIN);
    k[N - 1].ch = last;
    CHECK_EQ(gort_chan_send(last, &(int){12}), 0);
    CHECK_EQ(gort_select(k, N), N - 1);
    CHECK_EQ(v, 12);
    gort_chan_release(c);
    gort_chan_release(last);
    free(k);
}

static void everything(void) {
    malformed();
    never_ready();
    ready_ones();
    for (int n = 1; n <= 8; n++) fair(n, n % 2);
    fair(20, false);
    static const int sizes[] = {1, 2, 3, 5, 16, 17, 40, 300};
    for (int i = 0; i < 8; i++) blocked(sizes[i], false), blocked(sizes[i], true);
    blocked_until_closed();
    duplicates();
    static const int same[] = {2, 3, 5, 17};
    for (int i = 0; i < 4; i++) same_waits(same[i], true), same_waits(same[i], false);
    self_select(0);
    self_select(10);
    token_is_seen();
    deadline_race();
    shop_closes();
    listed();
    many_cases();
}

int main(int argc, char **argv) { return everywhere(everything, argc, argv); }
