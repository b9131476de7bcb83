/* gort_alloc and gort_free: sizes, alignment, who may free what and where, and that memory stays
 * flat. */
#include "../lib/test.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 24, ROUNDS = 3000 / TEST_SCALE, THREADS = 4, LIVE = 64 };

static bool own_memory; /* not malloc's, as under a sanitizer */

static uint64_t used(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.alloc_bytes_used;
}

/* An object knows its size, and is full of it. */
typedef struct Object {
    size_t size;
    unsigned char fill[];
} Object;

static Object *make(size_t size) {
    if (size < sizeof(Object)) size = sizeof(Object);
    Object *o = gort_alloc(size);
    CHECK(o != NULL && (uintptr_t)o % 16 == 0);
    o->size = size;
    memset(o->fill, (int)(size & 255), size - sizeof *o);
    return o;
}

static void drop(Object *o) {
    size_t n = o->size - sizeof *o;
    for (size_t i = 0; i < n; i++)
        CHECKF(o->fill[i] == (o->size & 255), "byte %zu of %zu", i, o->size);
    gort_free(o);
}

static void sizes(void) {
    Object *all[3 * 4200 / 7 + 2];
    int n = 0;
    for (size_t size = 1; size < 4200 * 3; size += 7) all[n++] = make(size);
    for (int i = 0; i < n; i += 2) drop(all[i]);
    for (int i = 1; i < n; i += 2) drop(all[i]);
    void *a = gort_alloc(0), *b = gort_alloc(0);
    CHECK(a != NULL && b != NULL && a != b);
    gort_free(a);
    gort_free(b);
    gort_free(NULL);
    if (!own_memory) return; /* a sanitizer takes such a size for a bug */
    CHECK(gort_alloc((size_t)-1) == NULL);
    CHECK(gort_alloc((size_t)-64) == NULL);
}

static void errno_stays(void) {
    errno = 4711;
    void *p = gort_alloc(100), *q = gort_alloc(100000);
    if (own_memory) CHECK(gort_alloc((size_t)1 << 62) == NULL);
    gort_free(p);
    gort_free(q);
    CHECK_EQ(errno, 4711);
    errno = 0;
}

/* Each worker makes objects and sends them on to the next: freed on whatever P that one is. */
static gort_chan *ring[WORKERS];
static uint32_t sent, dropped;

static void worker(void *arg) {
    intptr_t me = (intptr_t)arg;
    uint64_t seed = (uint64_t)me + 1;
    Object *held[LIVE] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t r = test_random(&seed);
        int k = (int)(r % LIVE);
        if (held[k] != NULL && r & 1024) {
            drop(held[k]);
            held[k] = NULL;
        }
        Object *o = make(r >> 32 & 127 ? r >> 20 & 511 : r >> 20 & 8191), *in = NULL;
        gort_case cases[2] = {gort_on_send(ring[(me + 1) % WORKERS], &o),
                              gort_on_recv(ring[me], &in)};
        if (gort_select(cases, 2) == 0) {
            add(&sent, 1);
        } else {
            drop(in);
            add(&dropped, 1);
            if (held[k] != NULL) drop(held[k]);
            held[k] = o;
        }
    }
    for (int k = 0; k < LIVE; k++)
        if (held[k] != NULL) drop(held[k]);
}

static void drain(void) {
    for (int i = 0; i < WORKERS; i++)
        for (Object *o; gort_chan_try_recv(ring[i], &o) == 0; add(&dropped, 1)) drop(o);
}

static void crossing(void) {
    gort_wg wg = {0};
    for (int i = 0; i < WORKERS; i++) ring[i] = gort_chan_new(sizeof(Object *), 2 * ROUNDS);
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(gort_wg_go(&wg, worker, (void *)(intptr_t)i), 0);
    gort_wg_wait(&wg);
    drain();
    CHECK_EQ(sent, dropped);
    for (int i = 0; i < WORKERS; i++) gort_chan_release(ring[i]);
}

/* Plain threads free what goroutines have made, and the other way round. */
static gort_chan *there, *back;

static void *plain(void *arg) {
    Object *o, *mine;
    while (gort_chan_recv(there, &o) == 0) {
        mine = make(o->size + 1);
        drop(o);
        CHECK_EQ(gort_chan_send(back, &mine), 0);
    }
    return NULL;
}

static void with_threads(void) {
    pthread_t t[THREADS];
    there = gort_chan_new(sizeof(Object *), 8);
    back = gort_chan_new(sizeof(Object *), THREADS);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&t[i], NULL, plain, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        Object *o = make(16 + (size_t)(i % 900)), *in;
        CHECK_EQ(gort_chan_send(there, &o), 0);
        CHECK_EQ(gort_chan_recv(back, &in), 0);
        drop(in);
    }
    gort_chan_close(there);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    gort_chan_release(there);
    gort_chan_release(back);
}

static long in_a_call(void *arg) {
    for (int i = 0; i < 200; i++) drop(make((size_t)i * 5));
    drop(*(Object **)arg);
    *(Object **)arg = make(77);
    return 5;
}

static void elsewhere(void) {
    Object *o = make(300);
    CHECK_EQ(gort_blocking(in_a_call, &o), 5);
    drop(o);
    CHECK_GE(gort_pin(), 0);
    drop(make(50));
    gort_unpin();
    gort_stop_world();
    for (int i = 0; i < 100; i++) drop(make(50));
    gort_start_world();
}

/* Ps that go away give their caches back: no growth however often the number changes. */
static void fill_a_cache(void *arg) {
    Object *o[100];
    for (int i = 0; i < 100; i++) o[i] = make(1000);
    for (int i = 0; i < 100; i++) drop(o[i]);
}

static void procs_come_and_go(void) {
    int before = gort_maxprocs(0);
    uint64_t most = 0;
    for (int i = 0; i < 40; i++) {
        gort_wg wg = {0};
        gort_maxprocs(i % 2 ? 1 : 6);
        for (int k = 0; k < 12; k++) CHECK_EQ(gort_wg_go(&wg, fill_a_cache, NULL), 0);
        gort_wg_wait(&wg);
        if (i < 10 && used() > most) most = used();
    }
    CHECK_LE(used(), most + (4 << 20));
    gort_maxprocs(before);
}

/* One makes, the other frees, for long: nothing piles up. */
static void producer(void *arg) {
    for (int i = 0; i < 200000 / TEST_SCALE; i++) {
        void *p = gort_alloc(128);
        CHECK_EQ(gort_chan_send(arg, &p), 0);
    }
    gort_chan_close(arg);
}

static void stays_flat(void) {
    for (int round = 0; round < 3; round++) {
        uint64_t before = used();
        gort_chan *c = gort_chan_new(sizeof(void *), 100);
        CHECK_EQ(gort_go(producer, c), 0);
        for (void *p; gort_chan_recv(c, &p) == 0;) gort_free(p);
        gort_chan_release(c);
        if (own_memory) CHECK_LE(used(), before + (2 << 20)); /* it made 25 MB */
    }
}

static int body(int argc, char **argv) {
    gort_stats s0, s1;
    gort_stats_read(&s0);
    void *p = gort_alloc(32);
    gort_stats_read(&s1);
    own_memory = s1.allocs > s0.allocs;
    gort_free(p);
    sizes();
    errno_stays();
    elsewhere();
    with_threads();
    sent = dropped = 0;
    crossing();
    procs_come_and_go();
    stays_flat();
    return 0;
}

static Object *kept[1000];
static int keeps(int argc, char **argv) {
    for (int i = 0; i < 1000; i++) kept[i] = make((size_t)i);
    return 0;
}
static int drops(int argc, char **argv) {
    for (int i = 0; i < 500; i++) drop(kept[i]);
    return 0;
}

/* A child of a process in which no runtime runs has a whole heap, whatever other threads did. */
static int enough;
static void *churn(void *arg) {
    while (!get(&enough)) drop(make(64));
    return NULL;
}

static void forking(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            for (int k = 0; k < 200; k++) drop(make(64));
            _exit(7);
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 7);
    }
    set(&enough, 1);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
}

int main(void) {
    gort_stats s;
    drop(make(10)); /* without a runtime */
    CHECK_EQ(gort_main(body, 0, NULL), 0);
    for (int i = 0; i < 20; i++) { /* objects outlive their runtime */
        CHECK_EQ(gort_main(keeps, 0, NULL), 0);
        CHECK_EQ(gort_main(drops, 0, NULL), 0);
        for (int k = 500; k < 1000; k++) drop(kept[k]);
    }
    if (own_memory) forking();
    gort_stats_read(&s);
    CHECK_EQ(s.allocs, s.frees); /* nothing of ours is left, nothing of the runtime's */
    return 0;
}
