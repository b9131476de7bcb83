/* The condition: who is woken, in which order, how many, and deadlines. */
#include "../lib/waiting.h"

typedef struct Scene {
    gort_mutex m;
    gort_cond c;
    gort_wg wg;
    int order[16], woken; /* m */
    int next;             /* m: number of the next waiter */
} Scene;

static void waiter(void *arg) {
    Scene *s = arg;
    gort_mutex_lock(&s->m);
    int me = s->next++;
    gort_cond_wait(&s->c, &s->m);
    CHECK_EQ(gort_mutex_try_lock(&s->m), -EBUSY); /* it is ours */
    s->order[s->woken++] = me;
    gort_mutex_unlock(&s->m);
}

static int woken(Scene *s) {
    gort_mutex_lock(&s->m);
    int n = s->woken;
    gort_mutex_unlock(&s->m);
    return n;
}

/* A signal wakes one, the longest waiter, and only a signal wakes; broadcast wakes all. */
static void signals_wake_in_order(void) {
    Scene s = {0};
    gort_cond_signal(&s.c); /* nobody: nothing is kept */
    gort_cond_broadcast(&s.c);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_wg_go(&s.wg, waiter, &s), 0);
        wait_until(waiting_for("sync.Cond.Wait") == i + 1);
    }
    for (int i = 0; i < 4; i++) {
        gort_cond_signal(&s.c);
        wait_until(woken(&s) == i + 1);
        for (int k = 0; k < 20; k++) gort_yield();
        CHECK_EQ(woken(&s), i + 1);
    }
    gort_mutex_lock(&s.m);
    gort_cond_broadcast(&s.c); /* with or without the mutex */
    gort_mutex_unlock(&s.m);
    gort_wg_wait(&s.wg);
    CHECK_EQ(s.woken, 10);
    for (int i = 0; i < 4; i++) CHECK_EQ(s.order[i], i);
    CHECK(s.c.head_ == NULL && s.c.tail_ == NULL);
}

static void deadlines(void) {
    gort_mutex m = {0};
    gort_cond c = {0};
    gort_mutex_lock(&m);
    CHECK_EQ(gort_cond_wait_until(&c, &m, 0), -ETIMEDOUT);
    CHECK_EQ(gort_mutex_try_lock(&m), -EBUSY);
    int64_t deadline = gort_now() + 2 * GORT_MS;
    CHECK_EQ(gort_cond_wait_until(&c, &m, deadline), -ETIMEDOUT);
    CHECK_GE(gort_now(), deadline);
    CHECK_EQ(gort_mutex_try_lock(&m), -EBUSY);
    gort_mutex_unlock(&m);
    CHECK(c.head_ == NULL && c.tail_ == NULL);
}

/* ---- a signal is never used up by one that timed out ----------------------------------------- */

typedef struct Tokens {
    gort_mutex m;
    gort_cond c;
    gort_wg wg;
    int tokens, taken, closed; /* m */
    int wakeups;               /* waits that returned 0 */
} Tokens;

static void taker(void *arg) {
    Tokens *t = arg;
    uint64_t rng = gort_id() + 5;
    gort_mutex_lock(&t->m);
    for (;;) {
        if (t->tokens > 0) {
            t->tokens--;
            t->taken++;
        } else if (t->closed) {
            break;
        } else {
            int64_t wait = (int64_t)(test_random(&rng) % 50) * GORT_US;
            int64_t deadline = rng % 4 ? gort_now() + wait : GORT_FOREVER;
            int r = gort_cond_wait_until(&t->c, &t->m, deadline);
            CHECK(r == 0 || (r == -ETIMEDOUT && deadline != GORT_FOREVER));
            t->wakeups += r == 0;
        }
    }
    gort_mutex_unlock(&t->m);
}

static void tokens_are_conserved(void) {
    Tokens t = {0};
    for (int i = 0; i < 8; i++) CHECK_EQ(gort_wg_go(&t.wg, taker, &t), 0);
    for (int i = 0; i < 2000; i++) {
        gort_mutex_lock(&t.m);
        t.tokens++;
        gort_cond_signal(&t.c);
        gort_mutex_unlock(&t.m);
        if (i % 16 == 0) gort_sleep(20 * GORT_US);
    }
    gort_mutex_lock(&t.m);
    t.closed = 1;
    gort_cond_broadcast(&t.c);
    gort_mutex_unlock(&t.m);
    gort_wg_wait(&t.wg);
    CHECK_EQ(t.taken, 2000);
    CHECK_LE(t.wakeups, 2000 + 8); /* never without a signal */
    CHECK(t.c.head_ == NULL && t.c.tail_ == NULL);
}

/* Waiters without a deadline stand behind waiters that expire at the moment of the signals: as
 * many of them wake as there were signals that no other got. */
typedef struct Pass {
    gort_mutex m;
    gort_cond c;
    gort_wg wg;
    int got; /* m: signals received by anybody */
    int stayers_out;
} Pass;

static void goer(void *arg) {
    Pass *p = arg;
    gort_mutex_lock(&p->m);
    p->got += gort_cond_wait_until(&p->c, &p->m, gort_now() + 300 * GORT_US) == 0;
    gort_mutex_unlock(&p->m);
}

static void stayer(void *arg) {
    Pass *p = arg;
    gort_mutex_lock(&p->m);
    gort_cond_wait(&p->c, &p->m);
    p->got++;
    gort_mutex_unlock(&p->m);
}

static void signals_pass_on(void) {
    for (int round = 0; round < 30; round++) {
        Pass p = {0};
        for (int i = 0; i < 4; i++) CHECK_EQ(gort_wg_go(&p.wg, stayer, &p), 0);
        wait_until(waiting_for("sync.Cond.Wait") == 4);
        for (int i = 0; i < 4; i++) CHECK_EQ(gort_wg_go(&p.wg, goer, &p), 0);
        gort_sleep(250 * GORT_US);
        for (int i = 0; i < 4; i++) gort_cond_signal(&p.c); /* there are always four that stay */
        int got = 0;
        while (got < 4) {
            gort_mutex_lock(&p.m);
            got = p.got;
            gort_mutex_unlock(&p.m);
            gort_yield();
        }
        gort_cond_broadcast(&p.c);
        gort_wg_wait(&p.wg);
    }
}

static int body(int argc, char **argv) {
    signals_wake_in_order();
    deadlines();
    tokens_are_conserved();
    signals_pass_on();
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) deadlines();
    return gort_main(body, argc, argv);
}
