/* Plain threads share every sync object, with no runtime, and once more while one runs. */
#include "../lib/test.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 400 };

typedef struct Shared {
    gort_mutex m;
    gort_rwmutex rw;
    gort_sem sem;
    gort_cond cond;
    gort_wg all;
    gort_once once;
    gort_pool *pool;
    gort_ctx *ctx;
    int once_calls, inside, readers;
    int64_t out;
    long by_mutex, by_writer;  /* plain, guarded */
    long timeouts, locks;      /* atomic */
    int tokens, taken, closed; /* m */
} Shared;

static void once_fn(void *arg) { add((int *)arg, 1); }
static void *make(void *arg) { return calloc(1, 64); }

static void use_mutex(Shared *s, uint64_t *rng) {
    int r = 0;
    if (test_random(rng) % 2) gort_mutex_lock(&s->m);
    else r = gort_mutex_lock_until(&s->m, gort_now() + (int64_t)(*rng % 100) * GORT_US);
    if (r < 0) {
        CHECK_EQ(r, -ETIMEDOUT);
        add(&s->timeouts, 1);
        return;
    }
    CHECK_EQ(add(&s->inside, 1), 1);
    s->by_mutex++;
    CHECK_EQ(add(&s->inside, -1), 0);
    gort_mutex_unlock(&s->m);
    add(&s->locks, 1);
}

static void use_rwmutex(Shared *s, uint64_t *rng) {
    int64_t deadline = gort_now() + (int64_t)(test_random(rng) % 200) * GORT_US;
    if (*rng % 4 == 0) {
        if (gort_rwmutex_lock_until(&s->rw, deadline) < 0) return;
        CHECK_EQ(get(&s->readers), 0);
        s->by_writer++;
        gort_rwmutex_unlock(&s->rw);
    } else {
        if (gort_rwmutex_rlock_until(&s->rw, deadline) < 0) return;
        add(&s->readers, 1);
        add(&s->readers, -1);
        gort_rwmutex_runlock(&s->rw);
    }
}

static void use_sem(Shared *s, uint64_t *rng) {
    int64_t n = (int64_t)(test_random(rng) % 3) + 1;
    int r = 0;
    if (*rng % 2) gort_sem_acquire(&s->sem, n);
    else r = gort_sem_acquire_until(&s->sem, n, gort_now() + 50 * GORT_US);
    if (r < 0) return;
    CHECK_LE(add(&s->out, n), 4);
    add(&s->out, -n);
    gort_sem_release(&s->sem, n);
}

static void *worker(void *arg) {
    Shared *s = arg;
    uint64_t rng = (uint64_t)(uintptr_t)&rng;
    for (int i = 0; i < ROUNDS; i++) {
        use_mutex(s, &rng);
        use_rwmutex(s, &rng);
        use_sem(s, &rng);
        gort_once_do(&s->once, once_fn, &s->once_calls);
        CHECK_EQ(get(&s->once_calls), 1);
        void *object = gort_pool_get(s->pool);
        CHECK(object != NULL);
        gort_pool_put(s->pool, object);
    }
    gort_wg_done(&s->all);
    CHECK_EQ(gort_chan_recv(gort_ctx_done(s->ctx), NULL), -EPIPE);
    CHECK_EQ(gort_ctx_err(s->ctx), -ECANCELED);
    return NULL;
}

/* Takes tokens until the box is closed and empty. */
static void *taker(void *arg) {
    Shared *s = arg;
    gort_mutex_lock(&s->m);
    for (;;) {
        while (s->tokens == 0 && !s->closed)
            if (s->taken % 2) gort_cond_wait(&s->cond, &s->m);
            else gort_cond_wait_until(&s->cond, &s->m, gort_now() + 100 * GORT_US);
        if (s->tokens == 0) break;
        s->tokens--;
        s->taken++;
    }
    gort_mutex_unlock(&s->m);
    return NULL;
}

static void together(void) {
    Shared s = {.pool = gort_pool_new(make, free, NULL), .ctx = gort_ctx_new(NULL)};
    pthread_t t[THREADS];
    gort_sem_release(&s.sem, 4);
    gort_wg_add(&s.all, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&t[i], NULL, worker, &s), 0);
    gort_wg_wait(&s.all);
    gort_ctx_cancel(s.ctx);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    CHECK_EQ(s.by_mutex, s.locks);
    CHECK_EQ(s.locks + s.timeouts, THREADS * ROUNDS);
    CHECK(AT_REST(s.m) == 0 && s.rw.readers_ == 0 && AT_REST(s.rw.w_) == 0 && s.sem.permits_ == 4);
    gort_ctx_release(s.ctx);

    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&t[i], NULL, taker, &s), 0);
    for (int i = 0; i < ROUNDS; i++) {
        gort_mutex_lock(&s.m);
        s.tokens++;
        gort_cond_signal(&s.cond);
        gort_mutex_unlock(&s.m);
    }
    gort_mutex_lock(&s.m);
    s.closed = 1;
    gort_mutex_unlock(&s.m);
    gort_cond_broadcast(&s.cond);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    CHECK_EQ(s.taken, ROUNDS);
    gort_pool_free(s.pool);
}

static int body(int argc, char **argv) {
    together(); /* the main goroutine and plain threads */
    return 0;
}

int main(int argc, char **argv) {
    together();
    CHECK_EQ(gort_main(body, argc, argv), 0);
    together();
    return 0;
}
