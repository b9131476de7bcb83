/* A context in use ends whatever waits: every kind of call, on goroutines and plain threads, before
 * and during the wait; and what it does not end. */
#include "../lib/test.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static gort_chan *full, *empty;
static gort_mutex mu;
static gort_rwmutex rw;
static gort_sem sem;
static gort_cond cond;
static gort_wg wg;
static int pair[2], listener;

static int w_send(void) { return gort_chan_send(full, &(int){1}); }
static int w_recv(void) { return gort_chan_recv(empty, NULL); }
static int w_nil(void) { return gort_chan_recv(NULL, NULL); }
static int w_recv_until(void) {
    return gort_chan_recv_until(empty, NULL, gort_now() + GORT_SEC * 3600);
}
static int w_select(void) {
    return gort_select_of(gort_on_recv(empty, NULL), gort_on_send(full, &(int){1}));
}
static int w_select_none(void) { return gort_select(NULL, 0); }
static int w_select_until(void) {
    return gort_select_until_of(GORT_FOREVER, gort_on_recv(empty, NULL));
}
static int w_select_large(void) {
    gort_case cases[40];
    for (int i = 0; i < 40; i++) cases[i] = gort_on_recv(empty, NULL);
    return gort_select(cases, 40);
}
static int w_sleep(void) { return gort_sleep(3600 * GORT_SEC); }
static int w_sleep_until(void) { return gort_sleep_until(GORT_FOREVER); }
static int w_mutex(void) { return gort_mutex_lock_until(&mu, GORT_FOREVER); }
static int w_rlock(void) { return gort_rwmutex_rlock_until(&rw, GORT_FOREVER); }
static int w_wlock(void) { return gort_rwmutex_lock_until(&rw, gort_now() + 3600 * GORT_SEC); }
static int w_sem(void) { return gort_sem_acquire_until(&sem, 1, GORT_FOREVER); }
static int w_cond(void) {
    static gort_mutex own;
    gort_mutex_lock(&own);
    int r = gort_cond_wait_until(&cond, &own, GORT_FOREVER);
    CHECK(gort_mutex_try_lock(&own) == -EBUSY);
    gort_mutex_unlock(&own);
    return r;
}
static int w_wg(void) { return gort_wg_wait_until(&wg, GORT_FOREVER); }
static int w_read(void) {
    char c;
    return (int)gort_read(pair[0], &c, 1);
}
static int w_recv_fd(void) {
    char c;
    return (int)gort_recv(pair[0], &c, 1, 0);
}
static int w_read_full(void) {
    char c[8];
    return (int)gort_read_full(pair[0], c, sizeof c);
}
static int w_poll(void) {
    struct pollfd p = {.fd = pair[0], .events = POLLIN};
    return gort_poll(&p, 1, -1);
}
static int w_poll_until(void) {
    struct pollfd p = {.fd = pair[0], .events = POLLIN};
    return gort_poll_until(&p, 1, gort_now() + 3600 * GORT_SEC);
}
static int w_accept(void) { return gort_accept(listener, NULL, NULL); }

static const struct {
    const char *name;
    int (*wait)(void);
} waits[] = {
    {"send", w_send},
    {"recv", w_recv},
    {"nil", w_nil},
    {"recv_until", w_recv_until},
    {"select", w_select},
    {"select of none", w_select_none},
    {"select_until", w_select_until},
    {"large select", w_select_large},
    {"sleep", w_sleep},
    {"sleep_until", w_sleep_until},
    {"mutex", w_mutex},
    {"rlock", w_rlock},
    {"wlock", w_wlock},
    {"sem", w_sem},
    {"cond", w_cond},
    {"wg", w_wg},
    {"read", w_read},
    {"recv of a socket", w_recv_fd},
    {"read_full", w_read_full},
    {"poll", w_poll},
    {"poll_until", w_poll_until},
    {"accept", w_accept},
};
enum { WAITS = sizeof waits / sizeof *waits };

typedef struct Trial {
    int (*wait)(void);
    gort_ctx *ctx;
    int result, again;
    uint32_t begun, done; /* atomic */
} Trial;

static void tries(void *arg) {
    Trial *t = arg;
    CHECK(gort_ctx_use(t->ctx) == NULL);
    __atomic_store_n(&t->begun, 1, __ATOMIC_SEQ_CST);
    t->result = t->wait();
    t->again = t->wait(); /* done by now: one attempt */
    CHECK(gort_ctx_use(NULL) == t->ctx);
    __atomic_store_n(&t->done, 1, __ATOMIC_SEQ_CST);
}

static void *tries_thread(void *arg) {
    tries(arg);
    return NULL;
}

#define waits_for(word) wait_until(__atomic_load_n(&(word), __ATOMIC_SEQ_CST) != 0)

static void ends_by(int i, bool thread, int how, int expected) {
    Trial t = {.wait = waits[i].wait};
    t.ctx = how == 2 ? gort_ctx_with_timeout(NULL, 2 * GORT_MS) : gort_ctx_new(NULL);
    pthread_t other;
    if (thread) CHECK(pthread_create(&other, NULL, tries_thread, &t) == 0);
    else CHECK_EQ(gort_go(tries, &t), 0);
    waits_for(t.begun);
    if (how == 1) gort_sleep(GORT_MS); /* most wait by then; either order is right */
    if (how != 2) gort_ctx_cancel_cause(t.ctx, how == 0 ? -ECANCELED : -EXDEV);
    waits_for(t.done);
    if (thread) pthread_join(other, NULL);
    if (t.result != expected || t.again != expected)
        FAILF("%s, %s, way %d: %d and %d, not %d", waits[i].name, thread ? "thread" : "goroutine",
              how, t.result, t.again, expected);
    CHECK_EQ(gort_ctx_err(t.ctx), expected);
    CHECK_EQ(gort_ctx_cause(t.ctx), how == 1 ? -EXDEV : expected);
    gort_ctx_release(t.ctx);
}

static void every_wait(void) {
    full = gort_chan_new(sizeof(int), 0);
    empty = gort_chan_new(0, 0);
    gort_mutex_lock(&mu);
    gort_rwmutex_lock(&rw);
    gort_wg_add(&wg, 1);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    listener = gort_listen("127.0.0.1:0", 0);
    CHECK(listener >= 0);
    for (int i = 0; i < WAITS; i++)
        for (int how = 0; how < 3; how++) {
            ends_by(i, false, how, how == 2 ? -ETIMEDOUT : -ECANCELED);
            ends_by(i, true, how, how == 2 ? -ETIMEDOUT : -ECANCELED);
        }
    /* nobody is left in a queue */
    gort_mutex_unlock(&mu);
    CHECK_EQ(gort_mutex_try_lock(&mu), 0);
    gort_mutex_unlock(&mu);
    gort_rwmutex_unlock(&rw);
    CHECK_EQ(gort_rwmutex_try_lock(&rw), 0);
    gort_rwmutex_unlock(&rw);
    gort_sem_release(&sem, 1);
    CHECK_EQ(gort_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(gort_chan_try_send(full, &(int){1}), -EAGAIN);
    CHECK_EQ(gort_write(pair[1], "x", 1), 1);
    char c;
    CHECK_EQ(gort_read(pair[0], &c, 1), 1);
    gort_wg_done(&wg);
    gort_chan_release(full);
    gort_chan_release(empty);
    close(pair[0]), close(pair[1]), gort_close(listener);
}

/* What need not wait goes ahead, in a context that is done. */
static void goes_ahead(void) {
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    int v = 0;
    CHECK(gort_ctx_use(ctx) == NULL);
    gort_ctx_cancel(ctx);
    CHECK_EQ(gort_chan_send(c, &(int){7}), 0);
    CHECK_EQ(gort_chan_send(c, &(int){7}), -ECANCELED);
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    CHECK_EQ(v, 7);
    CHECK_EQ(gort_select_of(gort_on_send(c, &v)), 0);
    CHECK_EQ(gort_try_select_of(gort_on_send(c, &v)), -EAGAIN);
    CHECK_EQ(gort_chan_try_send(c, &v), -EAGAIN);
    CHECK_EQ(gort_chan_recv(gort_ctx_done(ctx), NULL), -EPIPE); /* as ever */
    CHECK_EQ(gort_mutex_lock_until(&mu, GORT_FOREVER), 0);
    gort_mutex_unlock(&mu);
    CHECK_EQ(gort_sleep(0), 0);
    CHECK_EQ(gort_sleep(GORT_SEC), -ECANCELED);
    struct addrinfo *found = NULL;
    CHECK_EQ(gort_getaddrinfo("127.0.0.1", "80", NULL, &found), -ECANCELED);
    CHECK_EQ(gort_dial("127.0.0.1:9", GORT_FOREVER) < 0, 1);
    CHECK(gort_ctx_use(NULL) == ctx);
    CHECK_EQ(gort_getaddrinfo("127.0.0.1", "80", NULL, &found), 0);
    freeaddrinfo(found);
    gort_ctx_release(ctx);
    gort_chan_release(c);
}

/* To look once is no wait. */
static void looks(gort_ctx *done) {
    int p[2];
    CHECK(pipe(p) == 0);
    struct pollfd f[2] = {{.fd = p[0], .events = POLLIN}, {.fd = p[1], .events = POLLOUT}};
    gort_ctx_use(done);
    CHECK_EQ(gort_poll(f, 1, 0), 0);
    CHECK_EQ(gort_poll(f, 2, 0), 1);
    CHECK_EQ(gort_poll(NULL, 0, 0), 0);
    CHECK_EQ(gort_poll(f, 1, 1), gort_ctx_err(done));
    CHECK_EQ(gort_poll_until(f, 1, 0), gort_ctx_err(done));
    gort_ctx_use(NULL);
    close(p[0]), close(p[1]);
}
static void *looks_there(void *done) {
    looks(done);
    return NULL;
}
static void looks_once(void) {
    for (int i = 0; i < 2; i++) {
        pthread_t other;
        gort_ctx *done = i == 0 ? gort_ctx_with_timeout(NULL, 0) : gort_ctx_new(NULL);
        gort_ctx_cancel(done);
        looks(done);
        CHECK(pthread_create(&other, NULL, looks_there, done) == 0);
        pthread_join(other, NULL);
        gort_ctx_release(done);
    }
}

/* Calls without a result are not ended. */
static uint32_t locked;
static void locks(void *ctx) {
    gort_ctx_use(ctx);
    gort_mutex_lock(&mu);
    __atomic_store_n(&locked, 1, __ATOMIC_SEQ_CST);
    gort_mutex_unlock(&mu);
}
static void not_ended(void) {
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_mutex_lock(&mu);
    CHECK_EQ(gort_go(locks, ctx), 0);
    gort_ctx_cancel(ctx);
    for (int i = 0; i < 100; i++) gort_yield();
    CHECK_EQ(__atomic_load_n(&locked, __ATOMIC_SEQ_CST), 0);
    gort_mutex_unlock(&mu);
    waits_for(locked);
    gort_ctx_release(ctx);
}

/* A use holds a reference, ends with its goroutine, and nests as the program likes. */
static void exits(void *ctx) {
    gort_ctx_use(ctx);
    gort_exit();
}
static void returns(void *ctx) { gort_ctx_use(ctx); }
static void recvs(void *arg) { CHECK_EQ(gort_chan_recv(arg, NULL), 0); }
static void lifetimes(void) {
    gort_ctx *a = gort_ctx_new(NULL), *b = gort_ctx_new(a);
    CHECK_EQ(gort_ctx_deadline(a), GORT_FOREVER);
    CHECK_EQ(gort_ctx_deadline(NULL), GORT_FOREVER);
    CHECK(gort_ctx_use(a) == NULL);
    CHECK(gort_ctx_use(b) == a);
    CHECK(gort_ctx_use(b) == b);
    gort_chan *c = gort_chan_new(0, 0);
    CHECK_EQ(gort_go(recvs, c), 0); /* not inherited */
    CHECK_EQ(gort_chan_send(c, NULL), 0);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(gort_go(exits, a), 0);
        CHECK_EQ(gort_go(returns, b), 0);
    }
    wait_until(gort_count() == 1);
    gort_ctx_release(a); /* cancels what is in use below it */
    CHECK_EQ(gort_chan_recv(c, NULL), -ECANCELED);
    gort_ctx_release(b);
    CHECK_EQ(gort_chan_recv(c, NULL), -ECANCELED); /* alive by the use alone */
    CHECK(gort_ctx_used() == b);
    gort_ctx_use(NULL);
    gort_chan_release(c);
}

/* The functions of a group. */
static int fails(gort_ctx *ctx, void *arg) { return -EDOM; }
static int waits_here(gort_ctx *ctx, void *arg) {
    int r = gort_sleep(3600 * GORT_SEC);
    return r == -ECANCELED ? 0 : -EXDEV;
}
static void groups(void) {
    gort_group *g = gort_group_new(NULL, 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_group_go(g, waits_here, NULL), 0);
    CHECK_EQ(gort_group_go(g, fails, NULL), 0);
    CHECK_EQ(gort_group_wait(g), -EDOM);
}

static uint32_t afters;
static void after(void *arg) { __atomic_fetch_add(&afters, 1, __ATOMIC_SEQ_CST); }
static void afterwards(void) {
    gort_ctx *a = gort_ctx_new(NULL), *b = gort_ctx_with_timeout(a, 3600 * GORT_SEC);
    CHECK(gort_ctx_deadline(b) < GORT_FOREVER);
    CHECK_EQ(gort_ctx_after(b, after, NULL), 0);
    CHECK_EQ(gort_ctx_after(b, NULL, NULL), -EINVAL);
    for (int i = 0; i < 100; i++) gort_yield();
    CHECK_EQ(afters, 0);
    gort_ctx_cancel(a);
    wait_until(__atomic_load_n(&afters, __ATOMIC_SEQ_CST) == 1);
    CHECK_EQ(gort_ctx_after(b, after, NULL), 0);
    wait_until(__atomic_load_n(&afters, __ATOMIC_SEQ_CST) == 2);
    gort_ctx_release(b);
    gort_ctx_release(a);
}

/* The wake-up, the deadline and the cancellation at once: exactly one of them counts. */
static gort_chan *raced;
static uint32_t got, ended;
static void races(void *arg) {
    gort_ctx_use(arg);
    uint64_t rng = gort_id() * 0x9E3779B97F4A7C15;
    for (;;) {
        rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
        int v, r;
        if (rng % 4 == 0) r = gort_chan_recv(raced, &v);
        else if (rng % 4 == 1)
            r = gort_chan_recv_until(raced, &v, gort_now() + (int64_t)(rng % 20000));
        else if (rng % 4 == 2) r = gort_select_of(gort_on_recv(raced, &v));
        else r = gort_sleep((int64_t)(rng % 20000)) == 0 ? -ETIMEDOUT : -ECANCELED;
        if (r == 0) __atomic_fetch_add(&got, 1, __ATOMIC_SEQ_CST);
        else if (r == -ECANCELED) break;
        else CHECK_EQ(r, -ETIMEDOUT);
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
}
static void race_once(void) {
    enum { N = 8 };
    gort_ctx *ctx = gort_ctx_new(NULL);
    raced = gort_chan_new(sizeof(int), 0);
    got = ended = 0;
    uint32_t sent = 0;
    for (int i = 0; i < N; i++) CHECK_EQ(gort_go(races, ctx), 0);
    for (int i = 0; i < 50; i++)
        sent += gort_chan_send_until(raced, &i, gort_now() + 20 * GORT_US) == 0;
    gort_ctx_cancel(ctx);
    wait_until(__atomic_load_n(&ended, __ATOMIC_SEQ_CST) == N);
    CHECK_EQ(got, sent);
    gort_ctx_release(ctx);
    gort_chan_release(raced);
}

static int body(int argc, char **argv) {
    every_wait();
    goes_ahead();
    looks_once();
    not_ended();
    lifetimes();
    groups();
    afterwards();
    for (int i = 0; i < 300 / TEST_SCALE; i++) race_once();
    return 0;
}

/* The end of a runtime undoes the uses of those that never run again. */
static void stays(void *ctx) {
    gort_ctx_use(ctx);
    gort_chan_recv(gort_ctx_value(ctx, &mu), NULL);
    FAILF("went on after the end");
}
static int leaves(int argc, char **argv) {
    for (int i = 0; i < 50; i++) gort_go(stays, (gort_ctx *)argv);
    for (int i = 0; i < 200; i++) gort_yield();
    return 0;
}

/* Nobody's reference is lost where the goroutine of an `after` never runs. (ASan sees it.) */
static int leaves_after(int argc, char **argv) {
    return gort_ctx_after((gort_ctx *)argv, after, NULL);
}

int main(int argc, char **argv) {
    CHECK_EQ(gort_main(body, argc, argv), 0);
    gort_chan *c = gort_chan_new(0, 0);
    gort_ctx *ctx = gort_ctx_with_value(NULL, &mu, c);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_main(leaves, 0, (char **)ctx), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_main(leaves_after, 0, (char **)ctx), 0);
    CHECK_EQ(gort_ctx_after(ctx, after, NULL), -ENOTCONN);
    gort_ctx_cancel(ctx);
    CHECK(gort_ctx_use(ctx) == NULL && gort_ctx_used() == ctx);
    CHECK_EQ(gort_chan_recv(c, NULL), -ECANCELED);
    CHECK(gort_ctx_use(NULL) == ctx && gort_ctx_used() == NULL);
    gort_ctx_release(ctx);
    gort_chan_release(c);
    return 0;
}
