/*
 * Select: one of several channel operations, a random one of those that can run.
 *
 * In phases, each a function:
 *
 *   valid      nothing is done where one case is malformed.
 *   pass       the way usually taken. In random order, one channel at a time: if it looks ready,
 *              lock it and try. At most one lock is held, and channels that are not ready cost two
 *              loads. The order is drawn as the pass goes (Fisher and Yates, one step a case): the
 *              first ready case of a random permutation is a uniform choice among the ready ones.
 *              A case that runs does so at a moment when it was ready, so it is a choice that a
 *              pass under all locks could have made too.
 *   block      only if none was ready: all locks, in the order of addresses (the one order, so two
 *              selects cannot deadlock; a channel that stands in several cases is locked once).
 *              "None is ready" must be true of one moment: a token that goes round between the
 *              channels is never overlooked, and nothing may come between the last look and the
 *              queues. So: look again, in the same random order, under all locks. Then try and
 *              passed deadlines give up; the others
 *   wait_on_all  put a Sudog on each channel, all with the same ticket, and park. commit gives the
 *              locks back once the stack has been left (the deadline may have fired by then).
 *   retract    who won the claim has dequeued its own Sudog and left it in g->param (a deadline
 *              leaves nothing). The others are taken off, one lock at a time.
 *
 * The frame may go when retract is done, and commit, which may still run on another thread at that
 * time, reads the list of locks from it. It is safe: retract locks each channel except the
 * winner's, and the winner had locked that one; so each lock of the list has been given back by
 * commit, and after the last one it reads nothing.
 *
 * A case may name the same channel as another, also for the other direction: the select's own
 * Sudogs never meet, since it looks before it queues them, and later their claims are used up
 * together.
 *
 * Memory: up to SMALL cases in the frame, exactly as many as needed, since a goroutine parked in
 * a select must stay small; above that one allocation, made before the section begins.
 *
 * Departure from Go, which locks all channels at once even if the first is ready: the pass above.
 */
#include "chan.h"

#define SMALL 16
#define MAX_CASES 65536
#define TRY INT64_MIN /* as a deadline: -EAGAIN */

typedef struct Select {
    gort_case *cases;
    int n;
    int64_t deadline;
    uint16_t *order;   /* n: a permutation of the cases, drawn by pass */
    gort_chan **locks; /* n: the channels, each once, by address */
    int nlocks;
    Sudog *waiters;   /* n: one for each case with a channel */
} Select;

static bool valid(const gort_case *cases, int n) {
    unsigned bad = 0;
    if (unlikely(n < 0 || n > MAX_CASES || (cases == NULL && n > 0))) return false;
    for (int i = 0; i < n; i++) bad |= (unsigned)cases[i].op - GORT_RECV > 1u;
    return !bad;
}

/* ch->lock. */
INLINE int run_locked(gort_case *k, G **wake) {
    if (k->op == GORT_SEND) return send_locked(k->ch, k->value, wake);
    return recv_locked(k->ch, k->value, wake);
}

/* The next step of the permutation: which case is the i-th. Two cases need one bit. */
INLINE uint32_t draw(M *m, uint16_t *order, uint32_t i, uint32_t n) {
    if (n == 2) {
        if (i == 1) return order[1] = order[0] ^ 1;
        return order[0] = (uint16_t)(random_next(&m->rng) >> 63);
    }
    if (i == 0)
        for (uint32_t k = 0; k < n; k++) order[k] = (uint16_t)k;
    uint32_t at = i, left = n - i;
    if (left > 1) at += (uint32_t)(((random_next(&m->rng) >> 32) * left) >> 32);
    uint16_t index = order[at];
    order[at] = order[i];
    return order[i] = index;
}

/* In a section. The index of the case that ran, or -EAGAIN and order is a random permutation. */
INLINE int pass(M *m, gort_case *cases, int n, uint16_t *order) {
    for (int i = 0; i < n; i++) {
        uint32_t index = draw(m, order, (uint32_t)i, (uint32_t)n);
        gort_case *k = &cases[index];
        gort_chan *c = k->ch;
        if (c == NULL || !looks_ready(c, k->op == GORT_SEND)) continue;
        G *wake = NULL;
        lock(&c->lock, RANK_PRIM);
        int r = run_locked(k, &wake);
        unlock(&c->lock);
        if (unlikely(r == -EAGAIN)) continue;
        if (wake) ready(m, wake);
        k->result = r;
        return (int)index;
    }
    return -EAGAIN;
}

/* ---- all locks -------------------------------------------------------------------------------- */

static void sift(gort_chan **a, int root, int n) {
    gort_chan *c = a[root];
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child] < a[child + 1]) child++;
        if (c >= a[child]) break;
        a[root] = a[child];
    }
    a[root] = c;
}

/* By address: a few by insertion, many by heap, which needs no memory and has no bad case. */
static void sort(gort_chan **a, int n) {
    if (n <= SMALL) {
        for (int i = 1, j; i < n; i++) {
            gort_chan *c = a[i];
            for (j = i; j > 0 && a[j - 1] > c; j--) a[j] = a[j - 1];
            a[j] = c;
        }
        return;
    }
    for (int i = n / 2; i-- > 0;) sift(a, i, n);
    for (int i = n - 1; i > 0; i--) {
        gort_chan *c = a[0];
        a[0] = a[i];
        a[i] = c;
        sift(a, 0, i);
    }
}

static void lock_all(Select *s) {
    int n = 0, unique = 0;
    for (int i = 0; i < s->n; i++)
        if (s->cases[i].ch) s->locks[n++] = s->cases[i].ch;
    sort(s->locks, n);
    for (int i = 0; i < n; i++)
        if (i == 0 || s->locks[i] != s->locks[i - 1]) s->locks[unique++] = s->locks[i];
    s->nlocks = unique;
    for (int i = 0; i < unique; i++) lock(&s->locks[i]->lock, RANK_PRIM);
}

static void unlock_all(Select *s) {
    gort_chan **locks = s->locks;
    /* Nothing of s is read after the last unlock: see above. */
    for (int i = s->nlocks; i-- > 0;) unlock(&locks[i]->lock);
}

static void commit(M *m, void *arg) { unlock_all(arg); }

/* All locks. The index of the case that ran, or -EAGAIN. */
static int look_again(Select *s, G **wake) {
    for (int i = 0; i < s->n; i++) {
        gort_case *k = &s->cases[s->order[i]];
        if (k->ch == NULL) continue;
        int r = run_locked(k, wake);
        if (r == -EAGAIN) continue;
        k->result = r;
        return s->order[i];
    }
    return -EAGAIN;
}

/* All locks. One waiter for each case that has a channel, in the order of the cases, linked. */
static void queue_all(Select *s, G *gp, uint32_t ticket) {
    Sudog *w = s->waiters, *last = NULL;
    for (int i = 0; i < s->n; i++) {
        gort_case *k = &s->cases[i];
        if (k->ch == NULL) continue;
        *w = (Sudog){.g = gp, .c = k->ch, .elem = k->value, .send = k->op == GORT_SEND,
                      .claim = true, .ticket = ticket, .index = (uint32_t)i};
        wait_on(k->ch, w);
        if (last) last->link = w;
        last = w++;
    }
    gp->waiting = last ? s->waiters : NULL;
}

/* In a section. Takes off all waiters but the one that won; channels to be freed go on *dead. */
static void retract(Sudog *first, Sudog *won, gort_chan **dead) {
    for (Sudog *w = first; w; w = w->link) {
        if (w == won) continue;
        gort_chan *c = w->c;
        lock(&c->lock, RANK_PRIM);
        bool last = give_up(c, w);
        unlock(&c->lock);
        if (last) c->next_dead = *dead, *dead = c;
    }
}

/* Parks; comes back with the waiter that won, or NULL for the deadline. Without a channel there is
 * nothing to give back, and nothing that would hold up a deadline's wake-up until commit is done
 * with the frame: then no commit. */
static M *park_on_all(M *m, Select *s, uint32_t ticket, Sudog **won) {
    G *gp = self(m);
    bool timed_out = false;
    int reason = s->n == 0 ? WAIT_SELECT_NONE : WAIT_SELECT;
    if (s->nlocks == 0) m = park_until(m, NULL, reason, s->deadline, ticket, &timed_out);
    else m = park_commit_until(m, commit, s, reason, s->deadline, ticket, &timed_out);
    *won = timed_out ? NULL : gp->param;
    return m;
}

/* All locks, in a section, nothing was ready. */
static M *wait_on_all(M *m, Select *s, int *result, gort_chan **dead) {
    G *gp = self(m);
    Sudog *won;
    uint32_t ticket = wait_begin(gp);
    queue_all(s, gp, ticket);
    Sudog *first = gp->waiting;
    m = park_on_all(m, s, ticket, &won);
    retract(first, won, dead);
    gp->waiting = NULL;
    *result = -ETIMEDOUT;
    if (won) {
        s->cases[won->index].result = waited(won);
        *result = (int)won->index;
    }
    return m;
}

/* In a section, which it leaves. */
static int block(M *m, Select *s) {
    G *wake = NULL;
    gort_chan *dead = NULL;
    lock_all(s);
    int r = look_again(s, &wake);
    if (r != -EAGAIN || (s->deadline != GORT_FOREVER && s->deadline <= os_now())) {
        unlock_all(s);
        if (wake) ready(m, wake);
        if (r == -EAGAIN && s->deadline != TRY) r = -ETIMEDOUT;
    } else {
        m = wait_on_all(m, s, &r, &dead);
    }
    leave(m);
    if (unlikely(dead != NULL)) chan_free_list(dead);
    return r;
}

/* ---- the calls -------------------------------------------------------------------------------- */

/* The frame of a select that has to wait: n is small. In a section, which it leaves. */
static NOINLINE int block_small(M *m, gort_case *cases, int n, uint16_t *order, int64_t deadline) {
    gort_chan *locks[n + 1]; /* n may be 0, an array not */
    Sudog waiters[n + 1];
    Select s = {cases, n, deadline, order, locks, 0, waiters};
    return block(m, &s);
}

static NOINLINE int select_large(gort_case *cases, int n, int64_t deadline) {
    size_t each = sizeof(Sudog) + sizeof(gort_chan *) + sizeof(uint16_t);
    Sudog *waiters = quiet_alloc(each * (size_t)n);
    if (waiters == NULL) return -ENOMEM;
    gort_chan **locks = (gort_chan **)(waiters + n);
    Select s = {cases, n, deadline, (uint16_t *)(locks + n), locks, 0, waiters};
    M *m = enter();
    int r = pass(m, cases, n, s.order);
    if (r == -EAGAIN) r = block(m, &s);
    else leave(m);
    quiet_free(waiters);
    return r;
}

INLINE int select_until(gort_case *cases, int n, int64_t deadline) {
    if (unlikely(in_forked_child())) return -ENOTCONN;
    if (unlikely(!valid(cases, n))) return -EINVAL;
    if (unlikely(n > SMALL)) return select_large(cases, n, deadline);
    uint16_t order[SMALL];
    M *m = enter();
    int r = pass(m, cases, n, order);
    /* With one case, "it does not look ready" is already true of one moment. */
    if (r == -EAGAIN && !(deadline == TRY && n <= 1))
        return block_small(m, cases, n, order, deadline);
    leave(m);
    return r;
}

EXPORT int gort_select(gort_case *cases, int n) { return select_until(cases, n, GORT_FOREVER); }

EXPORT int gort_select_until(gort_case *cases, int n, int64_t deadline) {
    if (deadline == TRY) deadline++; /* a point in the past like any other */
    return select_until(cases, n, deadline);
}

EXPORT int gort_try_select(gort_case *cases, int n) { return select_until(cases, n, TRY); }
