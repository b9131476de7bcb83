/* The collector finds everything that goroutines hold: on parked and running stacks, in registers,
 * in arguments of those that have not run, in channels, timers, contexts and small objects; and
 * frees what nobody holds. Objects count themselves when they are finalized. */
#define GC_THREADS 1 /* plain threads are made known by the collector's own pthread_create */
#include <gc.h>
#include "../lib/test.h"
#include <pthread.h>
#include <stdbool.h>

typedef struct Box {
    uint64_t magic, id;
    uint32_t run;
    struct Box *next;
    char fill[72];
} Box;

#define MAGIC 0x0b0e0b0e0b0e0b0eULL
enum { PARKED = 200, DROPPED = 2000 };

enum { IDS = DROPPED + 1000, RUNS = 3 };
static uint32_t finalized[RUNS][IDS]; /* by run and id: how often */
static uint32_t run;
static uint32_t total;

static void on_final(void *object, void *data) {
    Box *b = object;
    if (b->magic != MAGIC) FAILF("a box without its magic was finalized");
    add(&finalized[b->run][b->id], 1);
    add(&total, 1);
}

__attribute__((noinline)) static Box *box(uint64_t id) {
    Box *b = GC_MALLOC(sizeof *b);
    CHECK(b != NULL);
    b->magic = MAGIC;
    b->id = id;
    b->run = run;
    memset(b->fill, (int)id, sizeof b->fill);
    GC_REGISTER_FINALIZER_NO_ORDER(b, on_final, NULL, NULL, NULL);
    return b;
}

__attribute__((noinline)) static void check_box(Box *b, uint64_t id) {
    CHECK(b != NULL);
    CHECK_EQ(b->magic, MAGIC);
    CHECK_EQ(b->id, id);
    CHECK_EQ(get(&finalized[b->run][id]), 0);
    for (size_t i = 0; i < sizeof b->fill; i++) CHECK_EQ((unsigned char)b->fill[i], id & 255);
}

/* Overwrites what earlier calls left below on this stack. */
__attribute__((noinline)) static void sweep_stack(void) {
    volatile char waste[16 << 10];
    for (size_t i = 0; i < sizeof waste; i++) waste[i] = 0;
}

/* Garbage of the same size, so that a freed box would be given out again. */
static void collect(void) {
    sweep_stack();
    for (int i = 0; i < 3; i++) {
        GC_gcollect();
        for (int k = 0; k < 2000; k++) memset(GC_MALLOC(sizeof(Box)), 0xee, sizeof(Box));
    }
}

/* ---- parked ---------------------------------------------------------------------------------- */

static gort_chan *gate, *told;

static void parked(void *arg) {
    uint64_t id = (uint64_t)(uintptr_t)arg;
    Box *b = box(id);
    gort_chan_send(told, NULL);
    gort_chan_recv(gate, NULL); /* b is on this stack, or in a saved register, and nowhere else */
    check_box(b, id);
    gort_chan_send(told, NULL);
}

static void stacks(void) {
    gate = gort_chan_new(0, 0);
    told = gort_chan_new(0, PARKED);
    gort_attr big = {.name = "big", .stack_size = 1 << 20};
    for (uintptr_t i = 0; i < PARKED; i++)
        CHECK_EQ(i % 5 ? gort_go(parked, (void *)(i + 1))
                       : gort_go_with(&big, parked, (void *)(i + 1)),
                 0);
    for (int i = 0; i < PARKED; i++) gort_chan_recv(told, NULL);
    collect();
    gort_chan_close(gate);
    for (int i = 0; i < PARKED; i++) gort_chan_recv(told, NULL);
    gort_chan_release(gate);
    gort_chan_release(told);
}

/* ---- elsewhere ------------------------------------------------------------------------------- */

enum {
    RUN = 300,
    IN_CALL = 301,
    ARG = 310,
    COPY = 311,
    SMALL_CHAN = 320,
    LARGE_CHAN = 321,
    TIMER = 330,
    VALUE = 331,
    OBJECT = 332,
    BIG_OBJECT = 333
};

static int spinning, enough, done;

static void spins(void *arg) { /* without a call: stopped by signal only, b perhaps in a register */
    Box *b = box(RUN);
    add(&spinning, 1);
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {}
    check_box(b, RUN);
    add(&done, 1);
}

static long waits_in_kernel(void *arg) {
    Box *b = box(IN_CALL);
    add(&spinning, 1);
    struct timespec nap = {0, 200000};
    while (!get(&enough)) nanosleep(&nap, NULL);
    check_box(b, IN_CALL);
    return 0;
}
static void calls(void *arg) {
    gort_blocking(waits_in_kernel, NULL);
    add(&done, 1);
}

static void running(void) {
    bool alone = test_procs() == 1;
    if (!alone) CHECK_EQ(gort_go(spins, NULL), 0);
    CHECK_EQ(gort_go(calls, NULL), 0);
    wait_until(get(&spinning) == (alone ? 1 : 2));
    collect();
    set(&enough, 1);
    wait_until(get(&done) == (alone ? 1 : 2));
}

static void takes_arg(void *arg) {
    check_box(arg, ARG);
    add(&done, 1);
}
typedef struct Pair {
    uint64_t number;
    Box *box;
} Pair;
static void takes_copy(void *arg) {
    check_box(((Pair *)arg)->box, COPY);
    add(&done, 1);
}
static void on_timer(void *arg) {
    check_box(arg, TIMER);
    add(&done, 1);
}

__attribute__((noinline)) static void fill(gort_chan *small, gort_chan *large, gort_ctx **ctx,
                                           void ***object, void ***big, gort_timer **timer) {
    Box *b = box(SMALL_CHAN);
    CHECK_EQ(gort_chan_send(small, &b), 0);
    Box *many[100] = {box(LARGE_CHAN)};
    CHECK_EQ(gort_chan_send(large, many), 0);
    *ctx = gort_ctx_with_value(NULL, &done, box(VALUE));
    *object = gort_alloc(64);
    (*object)[3] = box(OBJECT);
    *big = gort_alloc(100000);
    memset(*big, 0, 100000);
    (*big)[7000] = box(BIG_OBJECT);
    *timer = gort_timer_new(3600 * GORT_SEC, on_timer, box(TIMER));
}

__attribute__((noinline)) static void start_two(void) {
    Pair pair = {1, box(COPY)};
    CHECK_EQ(gort_go(takes_arg, box(ARG)), 0);
    CHECK_EQ(gort_go_copy(takes_copy, &pair, sizeof pair), 0);
}

static void objects(void) {
    gort_chan *small = gort_chan_new(sizeof(Box *), 4),
              *large = gort_chan_new(100 * sizeof(Box *), 30);
    gort_ctx *ctx;
    gort_timer *timer;
    void **object, **big;
    Box *b, *many[100];
    set(&done, 0);
    gort_stop_world(); /* so that the two have not run when the collection comes */
    start_two();
    gort_start_world();
    fill(small, large, &ctx, &object, &big, &timer);
    collect();
    CHECK_EQ(gort_chan_recv(small, &b), 0);
    check_box(b, SMALL_CHAN);
    CHECK_EQ(gort_chan_recv(large, many), 0);
    check_box(many[0], LARGE_CHAN);
    check_box(gort_ctx_value(ctx, &done), VALUE);
    check_box(object[3], OBJECT);
    check_box(big[7000], BIG_OBJECT);
    CHECK_EQ(gort_timer_reset(timer, 0), 1);
    wait_until(get(&done) == 3);
    gort_timer_free(timer);
    gort_ctx_release(ctx);
    gort_chan_release(small);
    gort_chan_release(large);
    gort_free(object);
    gort_free(big);
}

/* ---- garbage --------------------------------------------------------------------------------- */

static void drops(void *arg) {
    uint64_t first = 1000 + 10 * (uint64_t)(uintptr_t)arg;
    Box *list = NULL;
    for (uint64_t i = 0; i < 10; i++) {
        Box *b = box(first + i);
        b->next = list;
        list = b;
        gort_yield();
    }
    for (uint64_t i = 10; i-- > 0; list = list->next) check_box(list, first + i);
}

static void nobody_holds(void) {
    gort_wg wg = {0};
    uint32_t before = get(&total);
    for (uintptr_t i = 0; i < DROPPED / 10; i++) CHECK_EQ(gort_wg_go(&wg, drops, (void *)i), 0);
    gort_wg_wait(&wg);
    for (int i = 0; i < 50 && get(&total) - before < DROPPED * 9 / 10; i++) collect();
    /* conservative: a few may be taken for used */
    CHECK_GE(get(&total) - before, DROPPED * 9 / 10);
    for (int i = 0; i < IDS; i++) CHECK_LE(finalized[run][i], 1);
}

/* ---- plain threads --------------------------------------------------------------------------- */

static gort_chan *to_thread;
static void *plain(void *arg) {
    Box *mine = box(400), *b;
    CHECK_EQ(gort_chan_recv(to_thread, &b), 0);
    check_box(b, 401);
    CHECK_EQ(gort_chan_recv(to_thread, &b), 0); /* blocks the thread, while others collect */
    check_box(b, 402);
    collect();
    check_box(mine, 400);
    return NULL;
}

static void threads(void) {
    pthread_t t;
    to_thread = gort_chan_new(sizeof(Box *), 0);
    CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
    Box *b = box(401);
    CHECK_EQ(gort_chan_send(to_thread, &b), 0);
    collect();
    b = box(402);
    CHECK_EQ(gort_chan_send(to_thread, &b), 0);
    pthread_join(t, NULL);
    gort_chan_release(to_thread);
}

static int body(int argc, char **argv) {
    set(&spinning, 0), set(&enough, 0), set(&done, 0);
    stacks();
    running();
    objects();
    nobody_holds();
    threads();
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) GC_INIT(); /* else gort_main does it */
    for (run = 0; run < RUNS; run++) {
        CHECK_EQ(gort_main(body, argc, argv), 0);
        collect(); /* and without a runtime */
    }
    return 0;
}
