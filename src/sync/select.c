/*
 * Select: one of several channel operations, a random one of those that can run. The phases:
 *
 *   select_pass   the usual way: look at all cases without a lock, choose one of those that look
 *                 ready, lock its channel and try. If another operation was faster, look again.
 *   select_block  none looked ready: take all locks, each once, by address (so two selects cannot
 *                 deadlock), and look again: "none is ready" must be true of one moment, and stay
 *                 so up to the queues. A try or a passed deadline gives up.
 *   wait_on_all   put a Sudog on each channel, all with one ticket, and park. unlock_commit gives
 *                 the locks back once the stack has been left.
 *   retract       the dequeuer that won the claim has left its Sudog in g->param (a deadline leaves
 *                 nothing). Take the others off, one lock at a time.
 *
 * The frame may go when retract is done, while unlock_commit, on another thread, reads the list of
 * locks from it. That is safe: retract locks each channel but the winner's, and the winner has
 * locked that. So unlock_commit has given back all locks of the list, and reads nothing after that.
 *
 * Cases may share a channel, in one direction or both: the select's own Sudogs never meet, since it
 * looks before it queues them, and one claim uses all of them up.
 *
 * Memory: up to SMALL cases in the frame, exactly as many as needed, since a goroutine parked in a
 * select must stay small; above that one allocation, made before the section. Two cases, the usual
 * select, have a copy of the blocking way in which the compiler knows the number.
 * Go locks all channels at once, even if the first is ready.
 */
#include "sync/chan.h"
#include "sync/sema.h"

#define SMALL 16
#define MAX_CASES 65536
#define TRY INT64_MIN /* as a deadline: -EAGAIN */

/* What the commit of the wait unlocks. Apart from Select, which so stays in registers. */
typedef struct Locked {
    gort_chan **chans; /* each channel once, by address */
    int n;
} Locked;

typedef struct Select {
    gort_case *cases;
    int n;
    int64_t deadline;
    Sudog *waiters; /* n: one for each case with a channel */
    Locked *locked; /* with room for n */
} Select;

static bool cases_valid(const gort_case *cases, int n) {
    unsigned bad = 0;
    if (unlikely(n < 0 || n > MAX_CASES || (cases == NULL && n > 0))) return false;
    for (int i = 0; i < n; i++) bad |= (unsigned)cases[i].op - GORT_RECV > 1u;
    return !bad;
}

/* Which of up to 32 cases look ready, a bit each. */
INLINE uint32_t looks(gort_case *cases, int n, uint32_t *count) {
    uint32_t bits = 0, k = 0;
    for (int i = 0; i < n; i++) {
        gort_chan *c = cases[i].ch;
        uint32_t ready = c != NULL && looks_ready(c, cases[i].op == GORT_SEND);
        bits |= ready << i;
        k += ready;
    }
    *count = k;
    return bits;
}

/* One of those that look ready, each with the same probability; -1: none. In a section. Of each 32
 * cases, k of them ready, one replaces the choice so far with probability k / seen. */
INLINE int choose(M *m, gort_case *cases, int n) {
    int chosen = -1;
    uint32_t seen = 0, k;
    for (int base = 0; base < n; base += 32) {
        uint32_t bits = looks(cases + base, n - base < 32 ? n - base : 32, &k);
        if (k == 0) continue;
        seen += k;
        uint32_t at = 0;
        if (seen > 1) at = (uint32_t)((random_next(&m->rng) >> 32) * seen >> 32);
        if (at >= k) continue;
        while (at-- > 0) bits &= bits - 1;
        chosen = base + __builtin_ctz(bits);
    }
    return chosen;
}

/* In a section. The index of the case that ran, or -EAGAIN: none looked ready. */
INLINE int select_pass(M *m, gort_case *cases, int n) {
    for (int i; (i = choose(m, cases, n)) >= 0;) {
        gort_case *k = &cases[i];
        G *wake = NULL;
        lock(&k->ch->lock, RANK_PRIM);
        int r = attempt_locked(k->ch, k->value, k->op == GORT_SEND, &wake);
        unlock(&k->ch->lock);
        if (unlikely(r == -EAGAIN)) continue;
        if (wake) ready(m, wake);
        k->result = r;
        return i;
    }
    return -EAGAIN;
}

/* ---- all locks ------------------------------------------------------------------------------- */

static void sift_locks(gort_chan **a, int root, int n) {
    gort_chan *c = a[root];
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child] < a[child + 1]) child++;
        if (c >= a[child]) break;
        a[root] = a[child];
    }
    a[root] = c;
}

static NOINLINE void heap_sort_locks(gort_chan **a, int n) {
    for (int i = n / 2; i-- > 0;) sift_locks(a, i, n);
    for (int i = n - 1; i > 0; i--) {
        gort_chan *c = a[0];
        a[0] = a[i];
        a[i] = c;
        sift_locks(a, 0, i);
    }
}

/* By address: few by insertion, many by heap, which needs no memory and has no bad case. */
INLINE void sort_locks(gort_chan **a, int n) {
    if (n <= SMALL) {
        for (int i = 1, j; i < n; i++) {
            gort_chan *c = a[i];
            for (j = i; j > 0 && a[j - 1] > c; j--) a[j] = a[j - 1];
            a[j] = c;
        }
        return;
    }
    heap_sort_locks(a, n);
}

INLINE void lock_all(Select *s) {
    gort_chan **chans = s->locked->chans;
    int n = 0, unique = 0;
    for (int i = 0; i < s->n; i++)
        if (s->cases[i].ch) chans[n++] = s->cases[i].ch;
    sort_locks(chans, n);
    for (int i = 0; i < n; i++)
        if (i == 0 || chans[i] != chans[i - 1]) chans[unique++] = chans[i];
    s->locked->n = unique;
    for (int i = 0; i < unique; i++) lock(&chans[i]->lock, RANK_PRIM);
}

static void unlock_all(Locked *l) {
    gort_chan **chans = l->chans;
    /* nothing of l is read after the last unlock: see the essay */
    for (int i = l->n; i-- > 0;) unlock(&chans[i]->lock);
}

static void unlock_commit(M *m, void *arg) { unlock_all(arg); }

/* All locks. The index of the case that ran, or -EAGAIN. A case that looked ready and was not had
 * only waiters whose wait was over; the attempt has dropped them. */
INLINE int select_under_locks(M *m, Select *s, G **wake) {
    for (int i; (i = choose(m, s->cases, s->n)) >= 0;) {
        gort_case *k = &s->cases[i];
        int r = attempt_locked(k->ch, k->value, k->op == GORT_SEND, wake);
        if (unlikely(r == -EAGAIN)) continue;
        k->result = r;
        return i;
    }
    return -EAGAIN;
}

/* A channel serves its first waiter: several cases of one are queued in a random order. */
static NOINLINE void shuffle(M *m, Sudog *w, int n) {
    for (int i = n - 1; i > 0; i--) {
        int at = (int)((random_next(&m->rng) >> 32) * (uint64_t)(i + 1) >> 32);
        Sudog other = w[at];
        w[at] = w[i];
        w[i] = other;
    }
}

/* All locks. One waiter for each case that has a channel, linked. */
INLINE void queue_all(M *m, Select *s, G *gp, uint32_t ticket) {
    Sudog *w = s->waiters;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        gort_case *k = &s->cases[i];
        if (k->ch == NULL) continue;
        sudog_init(&w[n], gp, k->ch, k->value, k->op == GORT_SEND, true);
        w[n].ticket = ticket;
        w[n++].index = (uint32_t)i;
    }
    if (unlikely(s->locked->n < n)) shuffle(m, w, n);
    for (int i = 0; i < n; i++) {
        chan_enqueue(w[i].c, &w[i]);
        if (i > 0) w[i - 1].link = &w[i];
    }
    if (n > 0) w->allocated = s->n > SMALL;
    gp->waiting = n > 0 ? w : NULL;
}

/* In a section. Takes off all waiters but the winner; channels to be freed go on *dead. */
INLINE void retract(Sudog *first, Sudog *won, gort_chan **dead) {
    for (Sudog *w = first; w; w = w->link) {
        if (w == won) continue;
        gort_chan *c = w->c;
        lock(&c->lock, RANK_PRIM);
        bool last = sudog_give_up(c, w);
        unlock(&c->lock);
        if (last) c->next_dead = *dead, *dead = c;
    }
}

/* Without a channel there is no commit: no lock would hold up a deadline's wake-up until the commit
 * is done with the frame. */
INLINE M *wait_on_all(M *m, Select *s, int *result, gort_chan **dead) {
    G *gp = self(m);
    int ended = 0;
    int reason = s->n == 0 ? WAIT_SELECT_NONE : WAIT_SELECT;
    uint32_t ticket = wait_begin(gp);
    queue_all(m, s, gp, ticket);
    Sudog *first = gp->waiting;
    if (s->locked->n == 0) m = park_until(m, NULL, reason, s->deadline, ticket, &ended);
    else m = park_commit_until(m, unlock_commit, s->locked, reason, s->deadline, ticket, &ended);
    Sudog *won = ended ? NULL : gp->param; /* NULL: the deadline */
    retract(first, won, dead);
    gp->waiting = NULL;
    *result = ended;
    if (won) {
        s->cases[won->index].result = sudog_result(won);
        *result = (int)won->index;
    }
    return m;
}

/* In a section, which it leaves. */
INLINE int select_block(M *m, Select *s) {
    G *wake = NULL;
    gort_chan *dead = NULL;
    int over = 0;
    s->deadline = wait_limit(m, s->deadline);
    lock_all(s);
    int r = select_under_locks(m, s, &wake);
    if (r != -EAGAIN || (over = wait_over(m, s->deadline)) != 0) {
        unlock_all(s->locked);
        if (wake) ready(m, wake);
        if (r == -EAGAIN && s->deadline != TRY) r = over;
    } else {
        m = wait_on_all(m, s, &r, &dead);
    }
    leave(m);
    if (unlikely(dead != NULL)) chan_free_list(dead);
    return r;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* The frames of a select that has to wait, n <= SMALL. In a section, which they leave. Backtraces
 * show them in the place of the public call. */
static RETURNS_APART int block_two(M *m, gort_case *cases,
                                   int64_t deadline) __asm__("gort_select.two");
static int block_two(M *m, gort_case *cases, int64_t deadline) {
    returns_apart(m);
    gort_chan *chans[2];
    Sudog waiters[2];
    Locked locked = {chans, 0};
    Select s = {cases, 2, deadline, waiters, &locked};
    return select_block(m, &s);
}

static RETURNS_APART int block_small(M *m, gort_case *cases, int n,
                                     int64_t deadline) __asm__("gort_select.small");
static int block_small(M *m, gort_case *cases, int n, int64_t deadline) {
    returns_apart(m);
    gort_chan *chans[n + 1]; /* n may be 0, an array not */
    Sudog waiters[n + 1];
    Locked locked = {chans, 0};
    Select s = {cases, n, deadline, waiters, &locked};
    return select_block(m, &s);
}

/* True: there is nothing to wait on, and no memory is needed. */
static bool no_channel(const gort_case *cases, int n) {
    for (int i = 0; i < n; i++)
        if (cases[i].ch) return false;
    return true;
}

static NOINLINE int select_large(gort_case *cases, int n, int64_t deadline) {
    if (in_forked_child()) return -ENOTCONN;
    if (no_channel(cases, n)) return block_small(enter(), cases, 1, deadline);
    Sudog *waiters = quiet_alloc((sizeof(Sudog) + sizeof(gort_chan *)) * (size_t)n);
    if (waiters == NULL) return -ENOMEM;
    Locked locked = {(gort_chan **)(waiters + n), 0};
    Select s = {cases, n, deadline, waiters, &locked};
    M *m = enter();
    int r = select_pass(m, cases, n);
    if (r == -EAGAIN) r = select_block(m, &s);
    else leave(m);
    quiet_free(waiters);
    return r;
}

INLINE int select_two(gort_case *cases, int64_t deadline) {
    M *m = enter_here();
    if (unlikely(m == NULL)) return -ENOTCONN;
    int r = select_pass(m, cases, 2);
    if (r == -EAGAIN) return block_two(m, cases, deadline);
    leave(m);
    return r;
}

INLINE int select_cases(gort_case *cases, int n, int64_t deadline) {
    if (unlikely(!cases_valid(cases, n))) return in_forked_child() ? -ENOTCONN : -EINVAL;
    if (likely(n == 2)) return select_two(cases, deadline);
    if (unlikely(n > SMALL)) return select_large(cases, n, deadline);
    M *m = enter_here();
    if (unlikely(m == NULL)) return -ENOTCONN;
    int r = select_pass(m, cases, n);
    /* with one case, "it does not look ready" is already true of one moment */
    if (r == -EAGAIN && !(deadline == TRY && n <= 1)) return block_small(m, cases, n, deadline);
    leave(m);
    return r;
}

EXPORT int gort_select(gort_case *cases, int n) { return select_cases(cases, n, GORT_FOREVER); }

EXPORT int gort_select_until(gort_case *cases, int n, int64_t deadline) {
    if (deadline == TRY) deadline++; /* a point in the past like any other */
    return select_cases(cases, n, deadline);
}

EXPORT int gort_try_select(gort_case *cases, int n) { return select_cases(cases, n, TRY); }
