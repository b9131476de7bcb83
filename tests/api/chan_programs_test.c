/* Whole programs out of channels, as Go's own tests have them: the concurrent sieve, power series,
 * a long daisy chain, many consumers, a pipeline with selects; each computes something that is
 * wrong if one value is lost, doubled or out of order. */
#include "../lib/test.h"

#include <stdbool.h>

static int live; /* goroutines of the program under test */

typedef struct Job {
    void (*fn)(struct Job *);
    gort_chan *in, *in2, *out, *out2;
    int64_t a, b;
} Job;

static void job_main(void *arg) {
    Job job = *(Job *)arg;
    job.fn(&job);
    add(&live, -1);
}

static void go(Job job) {
    add(&live, 1);
    CHECK_EQ(gort_go_copy(job_main, &job, sizeof job), 0);
}

/* ---- the sieve: closing from the far end, link by link --------------------------------------- */

static void generate(Job *j) {
    for (int i = 2;; i++)
        if (gort_chan_send(j->out, &i) == -EPIPE) break;
    gort_chan_release(j->out);
}

static void filter(Job *j) {
    int i;
    for (;;) {
        CHECK_EQ(gort_chan_recv(j->in, &i), 0);
        if (i % j->a != 0 && gort_chan_send(j->out, &i) == -EPIPE) break;
    }
    CHECK_EQ(gort_chan_close(j->in), 0);
    gort_chan_release(j->in);
    gort_chan_release(j->out);
}

static void sieve(size_t capacity) {
    enum { PRIMES = 60 };
    gort_chan *c = gort_chan_new(sizeof(int), capacity);
    int p = 0, last = 1;
    go((Job){.fn = generate, .out = gort_chan_retain(c)});
    for (int k = 0; k < PRIMES; k++) {
        CHECK_EQ(gort_chan_recv(c, &p), 0);
        for (int q = last + 1; q <= p; q++) {
            bool prime = true;
            for (int d = 2; d * d <= q; d++) prime = prime && q % d != 0;
            CHECK_EQ(prime, q == p);
        }
        last = p;
        gort_chan *next = gort_chan_new(sizeof(int), capacity);
        /* the filter takes over our reference of c */
        go((Job){.fn = filter, .in = c, .out = gort_chan_retain(next), .a = p});
        c = next;
    }
    CHECK_EQ(p, 281);
    CHECK_EQ(gort_chan_close(c), 0);
    wait_until(get(&live) == 0);
    gort_chan_release(c);
}

/* ---- power series: streams of coefficients, sums and products of streams --------------------- */

/* Coefficients are fractions modulo a prime: exact, and a stream that runs ahead cannot
 * overflow. */
typedef uint64_t Num;
#define PRIME 2147483647u

static Num times(Num a, Num b) { return a * b % PRIME; }
static Num plus(Num a, Num b) { return (a + b) % PRIME; }
static Num whole(int64_t a) { return (Num)((a % (int64_t)PRIME + PRIME) % PRIME); }
static Num fraction(int64_t a, int64_t b) { /* a / b = a * b^(p-2) */
    Num r = whole(a), power = whole(b);
    for (unsigned e = PRIME - 2; e; e >>= 1, power = times(power, power))
        if (e & 1) r = times(r, power);
    return r;
}

static gort_chan *quit;
static gort_chan *streams[4000];
static int nstreams;

static gort_chan *stream(void) {
    int i = add(&nstreams, 1) - 1;
    CHECK_LT(i, 4000);
    gort_chan *c = gort_chan_new(sizeof(Num), 0);
    set(&streams[i], c);
    return c;
}

static bool put(gort_chan *c, Num r) {
    return gort_select_of(gort_on_send(c, &r), gort_on_recv(quit, NULL)) == 0;
}
static bool take(gort_chan *c, Num *r) {
    return gort_select_of(gort_on_recv(quit, NULL), gort_on_recv(c, r)) == 1;
}

static void ps_sum(Job *j) { /* in + in2 */
    for (Num x, y; take(j->in, &x) && take(j->in2, &y) && put(j->out, plus(x, y));) continue;
}
static void ps_scale(Job *j) { /* a * in */
    for (Num x; take(j->in, &x) && put(j->out, times(x, (Num)j->a));) continue;
}
static void ps_integral(Job *j) { /* a + b * the integral of in */
    Num x;
    if (!put(j->out, whole(j->a))) return;
    for (int n = 1; take(j->in, &x) && put(j->out, times(x, fraction(j->b, n))); n++) continue;
}
static void ps_shift(Job *j) { /* x * in */
    Num x = 0;
    while (put(j->out, x) && take(j->in, &x)) continue;
}

/* One stream becomes two that are read at different speeds. */
static void ps_split(Job *j) {
    enum { ROOM = 64 };
    Num held[ROOM];
    int n = 0, at[2] = {0, 0};
    for (;;) {
        gort_case k[4] = {
            gort_on_recv(quit, NULL), gort_on_send(at[0] < n ? j->out : NULL, &held[at[0] % ROOM]),
            gort_on_send(at[1] < n ? j->out2 : NULL, &held[at[1] % ROOM]),
            gort_on_recv(n < ROOM && (at[0] == n || at[1] == n) ? j->in : NULL, &held[n % ROOM])};
        int r = gort_select(k, 4);
        if (r == 0) return;
        if (r == 3) n++;
        else at[r - 1]++;
    }
}

static gort_chan *with(void (*fn)(Job *), gort_chan *in, gort_chan *in2, int64_t a) {
    gort_chan *out = stream();
    go((Job){.fn = fn, .in = in, .in2 = in2, .out = out, .a = a});
    return out;
}
static void split(gort_chan *in, gort_chan **one, gort_chan **two) {
    *one = stream(), *two = stream();
    go((Job){.fn = ps_split, .in = in, .out = *one, .out2 = *two});
}

/* (f + xF)(g + xG) = fg + x(fG + gF + xFG): a product of streams makes further products. */
static void ps_product(Job *j) {
    Num f, g, x;
    gort_chan *f1, *f2, *g1, *g2;
    if (!take(j->in, &f) || !take(j->in2, &g) || !put(j->out, times(f, g))) return;
    split(j->in, &f1, &f2);
    split(j->in2, &g1, &g2);
    gort_chan *fg = with(ps_scale, g1, NULL, (int64_t)f);
    gort_chan *gf = with(ps_scale, f1, NULL, (int64_t)g);
    gort_chan *rest = with(ps_shift, with(ps_product, f2, g2, 0), NULL, 0);
    gort_chan *sum = with(ps_sum, with(ps_sum, fg, gf, 0), rest, 0);
    while (take(sum, &x) && put(j->out, x)) continue;
}

static void expect(gort_chan *c, int terms, Num (*coefficient)(int n)) {
    for (int n = 0; n < terms; n++) {
        Num x;
        CHECK(take(c, &x));
        CHECK_EQ(x, coefficient(n));
    }
}
static Num one(int n) { return n == 0; }
static Num inverse_factorial(int n) {
    Num f = 1;
    for (int i = 2; i <= n; i++) f = times(f, fraction(1, i));
    return f;
}
/* The series y = 1 + b * integral of y: exp(b x), fed with itself. */
static gort_chan *ps_exp(int64_t b) {
    gort_chan *y = stream(), *back, *result;
    split(y, &back, &result);
    go((Job){.fn = ps_integral, .in = back, .out = y, .a = 1, .b = b});
    return result;
}

static void power_series(void) {
    quit = gort_chan_new(0, 0);
    nstreams = 0;
    expect(ps_exp(1), 15, inverse_factorial);
    expect(with(ps_product, ps_exp(1), ps_exp(-1), 0), 9, one);
    /* sin = integral of cos, cos = 1 - integral of sin; sin^2 + cos^2 = 1 */
    gort_chan *sin = stream(), *cos = stream(), *s[4], *c[4];
    split(sin, &s[0], &s[1]);
    split(cos, &c[0], &c[1]);
    go((Job){.fn = ps_integral, .in = c[0], .out = sin, .a = 0, .b = 1});
    go((Job){.fn = ps_integral, .in = s[0], .out = cos, .a = 1, .b = -1});
    split(s[1], &s[2], &s[3]);
    split(c[1], &c[2], &c[3]);
    expect(with(ps_sum, with(ps_product, s[2], s[3], 0), with(ps_product, c[2], c[3], 0), 0), 9,
           one);
    CHECK_EQ(gort_chan_close(quit), 0);
    wait_until(get(&live) == 0);
    for (int i = 0; i < nstreams; i++) gort_chan_release(streams[i]);
    gort_chan_release(quit);
}

/* ---- chain, consumers ------------------------------------------------------------------------ */

static void link_of_chain(Job *j) {
    int64_t v;
    while (gort_chan_recv(j->in, &v) == 0) {
        v++;
        CHECK_EQ(gort_chan_send(j->out, &v), 0);
    }
    CHECK_EQ(gort_chan_close(j->out), 0);
    gort_chan_release(j->in);
    gort_chan_release(j->out);
}

static void daisy_chain(int links, int values) {
    gort_chan *first = gort_chan_new(8, 0), *c = gort_chan_retain(first);
    for (int i = 0; i < links; i++) {
        gort_chan *next = gort_chan_new(8, 0);
        go((Job){.fn = link_of_chain, .in = c, .out = gort_chan_retain(next)});
        c = next;
    }
    for (int64_t i = 0, v; i < values; i++) {
        CHECK_EQ(gort_chan_send(first, &i), 0);
        CHECK_EQ(gort_chan_recv(c, &v), 0);
        CHECK_EQ(v, i + links);
    }
    CHECK_EQ(gort_chan_close(first), 0);
    CHECK_EQ(gort_chan_recv(c, NULL), -EPIPE);
    wait_until(get(&live) == 0);
    gort_chan_release(first);
    gort_chan_release(c);
}

static void squarer(Job *j) {
    int64_t v;
    while (gort_chan_recv(j->in, &v) == 0) {
        v *= v;
        CHECK_EQ(gort_chan_send(j->out, &v), 0);
        if (v % 5 == 0) gort_yield();
    }
}

static void feeder(Job *j) {
    for (int64_t i = 0; i < j->a; i++) CHECK_EQ(gort_chan_send(j->out, &i), 0);
    CHECK_EQ(gort_chan_close(j->out), 0);
}

static void consumers(size_t capacity) {
    enum { WORKERS = 23, N = 3000 };
    gort_chan *in = gort_chan_new(8, capacity), *out = gort_chan_new(8, capacity);
    int64_t sum = 0, want = 0, v;
    for (int i = 0; i < WORKERS; i++) go((Job){.fn = squarer, .in = in, .out = out});
    go((Job){.fn = feeder, .out = in, .a = N});
    for (int64_t i = 0; i < N; i++) {
        CHECK_EQ(gort_chan_recv(out, &v), 0);
        sum += v;
        want += i * i;
    }
    CHECK_EQ(sum, want);
    wait_until(get(&live) == 0);
    CHECK_EQ(gort_chan_len(out), 0);
    gort_chan_release(in);
    gort_chan_release(out);
}

/* ---- several senders, one select: every sender's values arrive in their order ---------------- */

static void counter(Job *j) {
    for (int64_t i = 0; i < j->a; i++) CHECK_EQ(gort_chan_send(j->out, &i), 0);
    CHECK_EQ(gort_chan_close(j->out), 0);
}

static void merge(size_t capacity) {
    enum { SENDERS = 6, N = 1500 };
    gort_case k[SENDERS];
    int64_t next[SENDERS] = {0}, value[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        gort_chan *c = gort_chan_new(8, capacity);
        k[i] = gort_on_recv(c, &value[i]);
        go((Job){.fn = counter, .out = c, .a = N});
    }
    for (int open = SENDERS; open > 0;) {
        int r = gort_select(k, SENDERS);
        CHECK(r >= 0);
        if (k[r].result == -EPIPE) {
            CHECK_EQ(next[r], N);
            k[r].value = k[r].ch, k[r].ch = NULL, open--; /* never ready again */
            continue;
        }
        CHECK_EQ(value[r], next[r]);
        next[r]++;
    }
    wait_until(get(&live) == 0);
    for (int i = 0; i < SENDERS; i++) gort_chan_release(k[i].value);
}

static int main_goroutine(int argc, char **argv) {
    sieve(0);
    sieve(3);
    power_series();
    daisy_chain(2000, 5);
    consumers(0);
    consumers(10);
    merge(0);
    merge(4);
    return 0;
}

int main(int argc, char **argv) { return gort_main(main_goroutine, argc, argv); }
