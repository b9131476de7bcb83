/* Queues of waiters, seen from inside: who waits is known, not guessed, so the order of arrival is
 * the test's to choose. First come first served for every kind of waiter; what timed out or lost
 * leaves nothing behind; a runtime that ends takes its waiters off. */
#include "sync/chan.h"
#include "../lib/test.h"

#include <pthread.h>

/* The library's own words, inlined here: not for TSan, which does not see the rest of it. */
#define INSIDE __attribute__((noinline, no_sanitize("thread")))

/* Waiters on c, all or those for the value at elem. */
INSIDE static int queued(gort_chan *c, bool send, const void *elem) {
    int n = 0;
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    for (Sudog *w = (send ? &c->sendq : &c->recvq)->first; w; w = w->next)
        n += elem == NULL || w->elem == elem;
    unlock(&c->lock);
    leave(m);
    return n;
}

INSIDE static void check_clean(gort_chan *c) {
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    bool clean = c->recvq.first == NULL && c->recvq.last == NULL && c->sendq.first == NULL &&
                 c->sendq.last == NULL && c->pins == 0 && c->refs == 1;
    unlock(&c->lock);
    leave(m);
    CHECK(clean);
}

static int64_t late(void) { return gort_now() + 600 * GORT_SEC; }

/* ---- first come first served ----------------------------------------------------------------- */

enum { PLAIN, TIMED, SELECT, SELECT_TIMED, SELECT_TWICE, KINDS };

typedef struct Wait {
    gort_chan *c, *other; /* nobody uses other */
    bool send;
    int kind, value, result, done;
    int64_t deadline;
} Wait;

static int by_select(Wait *w) {
    gort_case one = w->send ? gort_on_send(w->c, &w->value) : gort_on_recv(w->c, &w->value);
    gort_case k[3] = {gort_on_recv(w->other, NULL), one, one};
    int n = w->kind == SELECT_TWICE ? 3 : 2;
    int r = w->kind == SELECT_TIMED ? gort_select_until(k, n, w->deadline) : gort_select(k, n);
    CHECK(r == -ETIMEDOUT || r == 1 || (n == 3 && r == 2));
    return r < 0 ? r : k[r].result;
}

static void waiter(void *arg) {
    Wait *w = arg;
    if (w->kind >= SELECT) w->result = by_select(w);
    else if (w->kind == TIMED && w->send)
        w->result = gort_chan_send_until(w->c, &w->value, w->deadline);
    else if (w->kind == TIMED) w->result = gort_chan_recv_until(w->c, &w->value, w->deadline);
    else w->result = w->send ? gort_chan_send(w->c, &w->value) : gort_chan_recv(w->c, &w->value);
    set(&w->done, 1);
}

static void *waiter_thread(void *arg) {
    waiter(arg);
    return NULL;
}

/* Every eighth waiter is a plain thread. */
static void start(Wait *w, int i) {
    pthread_t t;
    if (i % 8 != 3) {
        CHECK_EQ(gort_go(waiter, w), 0);
        return;
    }
    CHECK_EQ(pthread_create(&t, NULL, waiter_thread, w), 0);
    CHECK_EQ(pthread_detach(t), 0);
}

static void first_come(bool send, size_t capacity) {
    enum { N = 40 };
    Wait w[N];
    gort_chan *c = gort_chan_new(sizeof(int), capacity), *other = gort_chan_new(0, 0);
    for (size_t i = 0; send && i < capacity; i++) CHECK_EQ(gort_chan_send(c, &(int){-1}), 0);
    for (int i = 0; i < N; i++) {
        w[i] = (Wait){c, other, send, i % KINDS, send ? i : -1, 1, 0, late()};
        start(&w[i], i);
        wait_until(queued(c, send, &w[i].value) == (w[i].kind == SELECT_TWICE ? 2 : 1));
    }
    for (size_t i = 0; send && i < capacity; i++) CHECK_EQ(gort_chan_recv(c, NULL), 0);
    for (int i = 0, v; i < N; i++) {
        if (send) {
            CHECK_EQ(gort_chan_recv(c, &v), 0);
            CHECK_EQ(v, i);
        } else {
            CHECK_EQ(gort_chan_send(c, &i), 0);
        }
    }
    for (int i = 0; i < N; i++) {
        wait_until(get(&w[i].done));
        CHECK_EQ(w[i].result, 0);
        CHECK_EQ(w[i].value, i);
    }
    check_clean(c);
    check_clean(other);
    gort_chan_release(c);
    gort_chan_release(other);
}

/* Every third waiter times out while it is queued between others: they are not disturbed. */
static void some_give_up(bool send) {
    enum { N = 30 };
    Wait w[N];
    gort_chan *c = gort_chan_new(sizeof(int), 0), *other = gort_chan_new(0, 0);
    for (int i = 0; i < N; i++) {
        bool quits = i % 3 == 1;
        /* Far enough to be queued in nearly every run; one that was late anyway just timed out. */
        w[i] = (Wait){c, other, send, quits ? (i % 2 ? TIMED : SELECT_TIMED) : PLAIN,
                      i, 1,     0,    gort_now() + 5 * GORT_MS};
        start(&w[i], i);
        wait_until(queued(c, send, &w[i].value) == 1 || get(&w[i].done));
    }
    for (int i = 1; i < N; i += 3) {
        wait_until(get(&w[i].done));
        CHECK_EQ(w[i].result, -ETIMEDOUT);
        CHECK_EQ(w[i].value, i);
    }
    CHECK_EQ(queued(c, send, NULL), N - N / 3);
    for (int i = 0, v; i < N; i++) {
        if (i % 3 == 1) continue;
        if (send) CHECK_EQ(gort_chan_recv(c, &v), 0);
        else CHECK_EQ(gort_chan_send(c, &i), 0);
        if (send) CHECK_EQ(v, i);
        wait_until(get(&w[i].done));
        CHECK_EQ(w[i].value, i);
    }
    check_clean(c);
    check_clean(other);
    gort_chan_release(c);
    gort_chan_release(other);
}

/* ---- nothing is left behind ------------------------------------------------------------------ */

typedef struct Quitter {
    gort_chan *a, *b;
    uint64_t seed;
    int done;
} Quitter;

static void quitter(void *arg) {
    Quitter *q = arg;
    for (int i = 0; i < 400; i++) {
        int v = 1;
        uint64_t x = test_random(&q->seed) >> 20;
        int64_t deadline = gort_now() + (int64_t)(x >> 4) % 100 * GORT_US;
        gort_case k[3] = {gort_on_recv(q->a, &v), gort_on_send(q->b, &v), gort_on_recv(q->b, &v)};
        if (x % 4 == 0) gort_chan_recv_until(q->a, &v, deadline);
        else if (x % 4 == 1) gort_chan_send_until(q->a, &v, deadline);
        else gort_select_until(k, 3, deadline);
    }
    add(&q->done, 1);
}

static void nothing_left(void) {
    enum { N = 12 };
    gort_chan *a = gort_chan_new(sizeof(int), 0), *b = gort_chan_new(sizeof(int), 0);
    Quitter q[N];
    for (int i = 0; i < N; i++) {
        q[i] = (Quitter){a, b, (uint64_t)i + 1, 0};
        CHECK_EQ(gort_go(quitter, &q[i]), 0);
    }
    for (int i = 0; i < N; i++) wait_until(get(&q[i].done));
    check_clean(a);
    check_clean(b);
    gort_chan_release(a);
    gort_chan_release(b);
}

/* ---- a runtime that ends --------------------------------------------------------------------- */

static gort_chan *kept, *kept_other;
static Wait *kept_waits[2];
static int nkept;

static int ends_while_others_wait(int argc, char **argv) {
    Wait *forever = calloc(KINDS, sizeof *forever); /* they never end; main frees */
    kept_waits[nkept++] = forever;
    for (int i = 0; i < KINDS; i++) {
        forever[i] = (Wait){kept, kept_other, false, i, 0, 1, 0, late()};
        CHECK_EQ(gort_go(waiter, &forever[i]), 0);
    }
    wait_until(queued(kept, false, NULL) == KINDS + 1);
    return 0;
}

INSIDE static G *first_waiter(gort_chan *c) {
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    G *gp = c->recvq.first ? c->recvq.first->g : NULL;
    unlock(&c->lock);
    leave(m);
    return gp;
}

/* By hand, on a goroutine that is parked for good: what the end of a runtime does to each. */
INSIDE static int abandon_by_hand(int argc, char **argv) {
    ends_while_others_wait(argc, argv);
    for (G *gp; (gp = first_waiter(kept)) != NULL;) {
        CHECK(chan_waits(gp));
        chan_abandon(gp);
        CHECK(!chan_waits(gp));
    }
    check_clean(kept);
    check_clean(kept_other);
    return 0;
}

static int main_goroutine(int argc, char **argv) {
    first_come(false, 0);
    first_come(false, 3);
    first_come(true, 0);
    first_come(true, 3);
    some_give_up(false);
    some_give_up(true);
    nothing_left();
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(main_goroutine, argc, argv), 0);
    kept = gort_chan_new(sizeof(int), 0);
    kept_other = gort_chan_new(0, 0);
    CHECK_EQ(gort_main(abandon_by_hand, argc, argv), 0);
    CHECK_EQ(gort_main(ends_while_others_wait, argc, argv), 0);
    check_clean(kept); /* the channel outlived them, and may be used and released */
    check_clean(kept_other);
    CHECK_EQ(gort_chan_try_send(kept, &(int){1}), -EAGAIN);
    gort_chan_release(kept);
    gort_chan_release(kept_other);
    for (int i = 0; i < nkept; i++) free(kept_waits[i]);
    return 0;
}
