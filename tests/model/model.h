/*
 * An exhaustive checker of interleavings. It takes the place of atomic.h, so the library's own code
 * is compiled against it: every atomic operation is a point where another thread may go on.
 *
 * Threads are coroutines. A run is a list of choices; after each run the last choice that has an
 * alternative takes it and the run is repeated up to there, until none has one left.
 *
 * Memory is x86's (TSO): a store goes into the thread's buffer, and reaching memory is an action of
 * its own, which may come any time later; a thread sees its own stores; exchanges and full fences empty the buffer first. So
 * a missing store-load fence is seen. Reorderings that only weaker machines do are not.
 *
 * What a thread does next depends on nothing but the values it has read. So the state is: memory,
 * the buffers, and for each thread a hash of what it has read. A state seen before is not
 * followed again.
 */
#ifndef MODEL_H
#define MODEL_H

#include "base.h"
#define ATOMIC_H /* ours instead */

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { MAX_THREADS = 4, BUFFER = 8, MAX_DEPTH = 2000, STACK = 64 << 10 };

typedef struct Thread {
    ucontext_t context;
    void (*fn)(void);
    bool done;
    uint64_t history; /* of the values it has read */
    struct {
        void *at;
        size_t size;
        uint64_t value;
    } buffer[BUFFER];
    int pending;
} Thread;

static Thread threads[MAX_THREADS];
static char stacks[MAX_THREADS][STACK];
static int nthreads;
static Thread *running; /* NULL: setting up, or checking the end */
static ucontext_t checker;

/* What the model gives: its memory, and its beginning and end. */
static void model_reset(void);
static void model_end(void); /* all threads have ended: is it right? */
static uint64_t model_hash(uint64_t h);

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ (v + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u; /* without the sum, 1 and 1 would give 0: no change */
    return h ^ h >> 29;
}
static uint64_t mix_bytes(uint64_t h, const void *at, size_t n) {
    for (const unsigned char *p = at; n-- > 0; p++) h = mix(h, *p);
    return h;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static uint64_t get_word(const void *at, size_t size) {
    uint64_t v = 0;
    memcpy(&v, at, size);
    return v;
}

static void flush_one(Thread *t) {
    memcpy(t->buffer[0].at, &t->buffer[0].value, t->buffer[0].size);
    t->pending--;
    memmove(&t->buffer[0], &t->buffer[1], (size_t)t->pending * sizeof t->buffer[0]);
}
static void flush_all(Thread *t) {
    while (t && t->pending) flush_one(t);
}
static void point(void) {
    if (running) swapcontext(&running->context, &checker);
}
static uint64_t seen(uint64_t v) {
    if (running) running->history = mix(running->history + 1, v);
    return v;
}

static uint64_t m_load(const void *at, size_t size) {
    point();
    if (running)
        for (int i = running->pending; i-- > 0;)
            if (running->buffer[i].at == at) return seen(running->buffer[i].value);
    return seen(get_word(at, size));
}
static void m_store(void *at, size_t size, uint64_t v) {
    point();
    if (running == NULL) {
        memcpy(at, &v, size);
        return;
    }
    if (running->pending == BUFFER) flush_one(running);
    running->buffer[running->pending].at = at;
    running->buffer[running->pending].size = size;
    running->buffer[running->pending++].value = v;
    seen(1);
}
static void m_fence(void) {
    point();
    flush_all(running);
    seen(2);
}
static bool m_cas(void *at, size_t size, void *expect, uint64_t v) {
    point();
    flush_all(running);
    uint64_t found = get_word(at, size);
    bool same = found == get_word(expect, size);
    if (same) memcpy(at, &v, size);
    else memcpy(expect, &found, size);
    seen(found);
    return same;
}
static uint64_t m_xchg(void *at, size_t size, uint64_t v) {
    point();
    flush_all(running);
    uint64_t found = get_word(at, size);
    memcpy(at, &v, size);
    return seen(found);
}
static uint64_t m_add(void *at, size_t size, uint64_t v) {
    point();
    flush_all(running);
    uint64_t sum = get_word(at, size) + v;
    memcpy(at, &sum, size);
    return seen(get_word(at, size));
}

#define WORD(v) ((uint64_t)(uintptr_t)(v))
#define load_rlx(p) ((__typeof__(*(p)))m_load((p), sizeof *(p)))
#define load_acq load_rlx
#define load_seq load_rlx
#define store_rlx(p, v) m_store((p), sizeof *(p), WORD(v))
#define store_rel store_rlx
#define store_seq(p, v) (store_rlx(p, v), m_fence())
#define xchg_seq(p, v) ((__typeof__(*(p)))m_xchg((p), sizeof *(p), WORD(v)))
#define xchg_acq xchg_seq
#define xchg_rel xchg_seq
#define cas_acq_rel(p, e, v) m_cas((p), sizeof *(p), (e), WORD(v))
#define cas_rel cas_acq_rel
#define cas_acq cas_acq_rel
#define cas_seq cas_acq_rel
#define add_seq(p, v) ({ __typeof__(*(p)) sum_ = (__typeof__(*(p)))m_add((p), sizeof *(p), (uint64_t)(int64_t)(v)); sum_; })
#define sub_seq(p, v) add_seq(p, -(int64_t)(v))
#define add_rlx add_seq
#define sub_rlx sub_seq
#define fence_full() m_fence()
#define fence_compiler() ((void)0)
#define bump(p, n) store_rlx((p), load_rlx(p) + (n))

/* ---- the search ------------------------------------------------------------------------------- */

static struct {
    int chosen, n;
} choices[MAX_DEPTH];
static int depth, replay;
static uint64_t runs, states, *visited, visited_size = 1 << 24;
static char trail[MAX_DEPTH]; /* 1..: that thread went on; a..: its oldest store arrived */

static void thread_body(void) {
    running->fn();
    running->done = true;
    for (;;) swapcontext(&running->context, &checker);
}

static void go_on(Thread *t) {
    running = t;
    swapcontext(&checker, &t->context);
    running = NULL;
}

static void spawn(void (*fn)(void)) {
    Thread *t = &threads[nthreads];
    memset(t, 0, sizeof *t);
    t->fn = fn;
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = stacks[nthreads++];
    t->context.uc_stack.ss_size = STACK;
    makecontext(&t->context, thread_body, 0);
    go_on(t); /* up to its first operation */
}

static _Noreturn void wrong(const char *why) {
    printf("wrong: %s\nafter run %llu: ", why, (unsigned long long)runs);
    for (int i = 0; i < depth; i++) putchar(trail[i]);
    printf("\n");
    exit(1);
}
#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) wrong(#cond);                                                                 \
    } while (0)

static bool seen_before(void) {
    uint64_t h = model_hash(88172645463325252u);
    for (int i = 0; i < nthreads; i++) {
        h = mix(mix(h, threads[i].history), threads[i].done);
        for (int k = 0; k < threads[i].pending; k++)
            h = mix(mix(h, WORD(threads[i].buffer[k].at)), threads[i].buffer[k].value);
        h = mix(h, 77);
    }
    if (h == 0) h = 1;
    for (uint64_t i = h % visited_size;; i = (i + 1) % visited_size) {
        if (visited[i] == h) return true;
        if (visited[i]) continue;
        visited[i] = h;
        if (++states > visited_size / 2) {
            printf("too many states\n");
            exit(2);
        }
        return false;
    }
}

/* The k-th thing that can happen now; how many there are when k is -1. */
static int act(int k) {
    int n = 0;
    for (int i = 0; i < nthreads; i++) {
        if (!threads[i].done && n++ == k) {
            trail[depth] = (char)('1' + i);
            go_on(&threads[i]);
            return n;
        }
        if (threads[i].pending && n++ == k) {
            trail[depth] = (char)('a' + i);
            flush_one(&threads[i]);
            return n;
        }
    }
    return n;
}

static void one_run(void) {
    nthreads = 0;
    model_reset();
    for (depth = 0;; depth++) {
        int n = act(-1);
        if (n == 0) {
            model_end();
            return;
        }
        if (depth == MAX_DEPTH) wrong("no end");
        if (depth >= replay) {
            if (seen_before()) return;
            choices[depth].chosen = 0;
            choices[depth].n = n;
        }
        act(choices[depth].chosen);
    }
}

static int model_main(const char *name) {
    visited = calloc(visited_size, sizeof *visited);
    if (visited == NULL) return 2;
    do {
        one_run();
        runs++;
        while (depth > 0 && choices[depth - 1].chosen + 1 == choices[depth - 1].n) depth--;
        if (depth > 0) choices[depth - 1].chosen++;
        replay = depth;
    } while (depth > 0);
    printf("%s: %llu states, %llu runs, nothing wrong\n", name, (unsigned long long)states, (unsigned long long)runs);
    return 0;
}

#endif
