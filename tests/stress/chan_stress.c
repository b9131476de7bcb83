/*
 * Channels under everything at once: chan_stress [seconds [seed [ops]]]
 *
 * 64 goroutines and 4 plain threads send, receive and select on a dozen channels of several sizes
 * and capacities, waiting without end, until random deadlines, or not at all, while channels are
 * closed, drained and replaced.
 *
 * Conservation. A value carries its sender, the slot of its channel and a number that counts up for
 * each pair of them; a send that did not happen does not use its number up. Then
 *   - not reordered: each receiver sees rising numbers from each sender on each slot;
 *   - neither lost nor doubled: at the end, for each pair, as many were received as the number
 *     says, and the sums of their hashes agree;
 *   - not torn: the rest of the value is a function of its first word;
 *   - not touched: a receive that failed with -EAGAIN or -ETIMEDOUT left the memory alone, one that
 *     failed with -EPIPE zeroed it.
 */
#include "../lib/test.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    GOROUTINES = 64,
    THREADS = 4,
    WORKERS = GOROUTINES + THREADS,
    SLOTS = 12,
    WORDS = 8,
    BIG = 24
};

static const struct {
    size_t words, capacity;
} shape[SLOTS] = {{1, 0}, {1, 0}, {2, 0}, {3, 0},  {8, 0}, {1, 1},
                  {1, 2}, {2, 3}, {3, 1}, {1, 50}, {8, 7}, {2, 300}};

#define BLANK 0xABABABABABABABABu

typedef struct Value {
    uint64_t w[WORDS];
} Value;

typedef struct Count {
    uint64_t last, n, sum;
} Count;

typedef struct Worker {
    int id;
    uint64_t seed, ops;
    uint64_t sent[SLOTS];
    Count got[WORKERS][SLOTS];
} Worker;

static struct {
    pthread_mutex_t lock;
    gort_chan *c;
} slots[SLOTS];
static Worker *workers[WORKERS + 1]; /* the last is main's, which only drains */
static int live, stopped;
static uint64_t op_limit = UINT64_MAX, closes, expired;

static uint64_t hash(uint64_t x) {
    x ^= x >> 31;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static gort_chan *fetch(int slot) {
    pthread_mutex_lock(&slots[slot].lock);
    gort_chan *c = gort_chan_retain(slots[slot].c);
    pthread_mutex_unlock(&slots[slot].lock);
    return c;
}

static gort_chan *make(int slot) {
    gort_chan *c = gort_chan_new(shape[slot].words * 8, shape[slot].capacity);
    CHECK(c != NULL);
    return c;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void fill(Value *v, Worker *w, int slot) {
    v->w[0] = (uint64_t)w->id << 56 | (uint64_t)slot << 48 | (w->sent[slot] + 1);
    for (int i = 1; i < WORDS; i++) v->w[i] = hash(v->w[0] + (uint64_t)i);
}

static void blank(Value *v) {
    for (int i = 0; i < WORDS; i++) v->w[i] = BLANK;
}

static bool all(const Value *v, size_t words, uint64_t what) {
    for (size_t i = 0; i < words; i++)
        if (v->w[i] != what) return false;
    return true;
}

static void received(Worker *w, const Value *v, int slot) {
    uint64_t first = v->w[0], number = first & 0xFFFFFFFFFFFFu;
    unsigned from = (unsigned)(first >> 56), on = (unsigned)(first >> 48) & 255;
    CHECKF(from < WORKERS && on == (unsigned)slot, "slot %d: a value that nobody sent: %" PRIx64,
           slot, first);
    for (size_t i = 1; i < shape[slot].words; i++)
        CHECKF(v->w[i] == hash(first + i), "slot %d: torn value %" PRIx64 ", word %zu", slot, first,
               i);
    Count *c = &w->got[from][slot];
    CHECKF(number > c->last, "slot %d: %u's number %" PRIu64 " after %" PRIu64, slot, from, number,
           c->last);
    c->last = number;
    c->n++;
    c->sum += hash(first);
}

/* What came of a receive; v was blank before. */
static void account_recv(Worker *w, int r, const Value *v, int slot) {
    if (r == 0) received(w, v, slot);
    else if (r == -EPIPE) CHECK(all(v, shape[slot].words, 0));
    else CHECK(all(v, shape[slot].words, BLANK));
    if (shape[slot].words < WORDS) CHECK(v->w[shape[slot].words] == BLANK);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int64_t some_deadline(uint64_t x) {
    if (x % 16 == 0) return GORT_FOREVER;
    if (x % 16 < 4) return gort_now() - (int64_t)(x % 7);
    return gort_now() + (int64_t)(x >> 8) % (60 * GORT_US);
}

static void one(Worker *w, uint64_t x) {
    int slot = (int)(x % SLOTS), r;
    bool send = x >> 8 & 1;
    unsigned how = (unsigned)(x >> 16) % 8;
    gort_chan *c = fetch(slot);
    Value v;
    if (send) fill(&v, w, slot);
    else blank(&v);
    if (how == 0) r = send ? gort_chan_send(c, &v) : gort_chan_recv(c, &v);
    else if (how < 4)
        r = send ? gort_chan_send_until(c, &v, some_deadline(x >> 24))
                 : gort_chan_recv_until(c, &v, some_deadline(x >> 24));
    else r = send ? gort_chan_try_send(c, &v) : gort_chan_try_recv(c, &v);
    CHECK(r == 0 || r == -EPIPE || (r == -ETIMEDOUT && how > 0 && how < 4) ||
          (r == -EAGAIN && how >= 4));
    if (r == -ETIMEDOUT) __atomic_fetch_add(&expired, 1, __ATOMIC_RELAXED);
    if (!send) account_recv(w, r, &v, slot);
    else if (r == 0) w->sent[slot]++;
    gort_chan_release(c);
}

static void choose(Worker *w, uint64_t x) {
    int n = (x >> 8) % 64 == 0 ? BIG : 1 + (int)((x >> 8) % 5), r;
    gort_case k[BIG];
    Value v[BIG];
    int slot[BIG];
    for (int i = 0; i < n; i++) {
        uint64_t y = test_random(&w->seed) >> 20;
        slot[i] = (int)(y % SLOTS);
        gort_chan *c = (y >> 8) % 16 == 0 ? NULL : fetch(slot[i]);
        bool send = y >> 16 & 1;
        if (send) fill(&v[i], w, slot[i]);
        else blank(&v[i]);
        k[i] = send ? gort_on_send(c, &v[i]) : gort_on_recv(c, &v[i]);
        k[i].result = 1;
    }
    unsigned how = (unsigned)(x >> 16) % 4;
    if (how == 0) r = gort_try_select(k, n);
    else
        r = gort_select_until(k, n,
                              how == 1 ? gort_now() + 100 * GORT_US : some_deadline(x >> 24 | 1));
    CHECK((r >= 0 && r < n) || r == (how == 0 ? -EAGAIN : -ETIMEDOUT));
    for (int i = 0; i < n; i++) {
        if (i != r) CHECK_EQ(k[i].result, 1);
        else CHECK(k[i].result == 0 || k[i].result == -EPIPE);
        if (k[i].op == GORT_RECV) account_recv(w, i == r ? k[i].result : -EAGAIN, &v[i], slot[i]);
        else if (i == r && k[i].result == 0) w->sent[slot[i]]++;
        gort_chan_release(k[i].ch);
    }
}

/* Puts a new channel into the slot, closes the old one and takes what is left in it. */
static void replace(Worker *w, int slot) {
    gort_chan *fresh = make(slot);
    pthread_mutex_lock(&slots[slot].lock);
    gort_chan *old = gort_chan_retain(slots[slot].c);
    bool end = get(&stopped); /* then it stays closed, and whoever still works finds that */
    gort_chan_release(end ? fresh : slots[slot].c);
    if (!end) slots[slot].c = fresh;
    pthread_mutex_unlock(&slots[slot].lock);
    int r = gort_chan_close(old);
    CHECK(r == 0 || r == -EPIPE);
    __atomic_fetch_add(&closes, 1, __ATOMIC_RELAXED);
    for (;;) {
        Value v;
        blank(&v);
        r = gort_chan_recv(old, &v);
        account_recv(w, r, &v, slot);
        if (r == -EPIPE) break;
    }
    gort_chan_release(old);
}

static void work(Worker *w) {
    while (!get(&stopped)) {
        uint64_t x = test_random(&w->seed) >> 8;
        unsigned what = (unsigned)(x % 1024);
        x >>= 10;
        if (what < 1) replace(w, (int)(x % SLOTS));
        else if (what < 24) gort_yield();
        else if (what < 600) one(w, x);
        else choose(w, x);
        if (__atomic_add_fetch(&w->ops, 1, __ATOMIC_RELAXED) >= op_limit / WORKERS) break;
    }
    add(&live, -1);
}

static void goroutine(void *arg) { work(arg); }
static void *thread(void *arg) {
    work(arg);
    return NULL;
}

/* ---- the books ------------------------------------------------------------------------------- */

static uint64_t total_ops(void) {
    uint64_t n = 0;
    for (int i = 0; i < WORKERS; i++) n += __atomic_load_n(&workers[i]->ops, __ATOMIC_RELAXED);
    return n;
}

static uint64_t balance(int from, int slot) {
    uint64_t n = 0, sum = 0, want = 0;
    for (int i = 0; i <= WORKERS; i++) {
        n += workers[i]->got[from][slot].n;
        sum += workers[i]->got[from][slot].sum;
    }
    uint64_t sent = workers[from]->sent[slot];
    for (uint64_t k = 1; k <= sent; k++)
        want += hash((uint64_t)from << 56 | (uint64_t)slot << 48 | k);
    CHECKF(n == sent && sum == want,
           "slot %d: worker %d sent %" PRIu64 ", received were %" PRIu64 "%s", slot, from, sent, n,
           sum == want ? "" : ", and not the same");
    return n;
}

/* Waits for the end; wakes those who wait without a deadline by closing a channel now and then. */
static void watch(int64_t until) {
    uint64_t seen = 0, x = 88172645463325252u;
    int64_t seen_at = gort_now();
    while (get(&live) > 0) {
        gort_sleep(GORT_MS);
        if (gort_now() > until) set(&stopped, 1);
        replace(workers[WORKERS], (int)((test_random(&x) >> 20) % SLOTS));
        if (total_ops() != seen) seen = total_ops(), seen_at = gort_now();
        if (gort_now() - seen_at > 60 * GORT_SEC) {
            gort_dump(2);
            FAILF("nothing has moved for a minute; %d workers are left", get(&live));
        }
    }
}

static int64_t seconds;
static uint64_t seed;

static int main_goroutine(int argc, char **argv) {
    pthread_t t[THREADS];
    for (int i = 0; i <= WORKERS; i++) {
        workers[i] = calloc(1, sizeof(Worker));
        *workers[i] = (Worker){.id = i, .seed = hash(seed + (uint64_t)i) | 1};
    }
    for (int i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&slots[i].lock, NULL);
        slots[i].c = make(i);
    }
    live = WORKERS;
    for (int i = 0; i < GOROUTINES; i++) CHECK_EQ(gort_go(goroutine, workers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, thread, workers[GOROUTINES + i]), 0);
    watch(gort_now() + seconds * GORT_SEC);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    set(&stopped, 1);
    uint64_t values = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        replace(workers[WORKERS], slot);
        gort_chan_release(slots[slot].c);
        for (int from = 0; from < WORKERS; from++) values += balance(from, slot);
    }
    printf("%" PRIu64 " operations, %" PRIu64 " values, %" PRIu64 " expired, %" PRIu64 " closes\n",
           total_ops(), values, expired, closes);
    CHECK_GT(values, 0);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2) setenv("STRESS_SEED", argv[2], 1);
    seed = stress_seed();
    seconds = argc > 1 ? atoll(argv[1]) : stress_seconds();
    if (argc > 3) op_limit = strtoull(argv[3], NULL, 0);
    return gort_main(main_goroutine, argc, argv);
}
