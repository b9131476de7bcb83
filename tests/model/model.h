/*
 * An exhaustive checker of interleavings. It takes the place of atomic.h, so the library's own code
 * is compiled against it: every atomic operation is a point where another thread may go on.
 *
 * Threads are coroutines, switched by the library's own arch_switch. A run is a list of choices;
 * after each run the last choice that has an alternative takes it and the run is repeated up to
 * there, until none has one left.
 *
 * Memory is x86's (TSO): a store goes into the thread's buffer, and reaching memory is an action of
 * its own, which may come any time later; exchanges and full fences empty the buffer first. So a
 * missing store-load fence is seen. Reorderings that only weaker machines do are not. A thread sees
 * its own stores, also by plain loads: while it runs, its buffer lies over memory. Plain stores
 * reach memory at once, which is no matter for what a lock guards; the few plain words that others
 * look at without one (m->locks) are named by mc_watch(), and stores to them are seen at the next
 * point and buffered as well.
 *
 * MODEL_WEAK is ARM's side of it, as far as the pairs need it: a read-modify-write is no fence. It
 * reads and writes in one step as far as its own place is concerned, which nobody else may write
 * until then; but its store waits in the buffer like any other, while later loads go on. So do
 * those of the seq_cst kind, but that a later seq_cst operation waits for them. A full fence alone
 * empties the buffer. Where two threads' buffers wait for each other the order they stand for is
 * impossible, and the run is dropped. With MODEL_WEAK=2 stores arrive in any order, but for a
 * release, which comes after all before it. Loads are done in their order, on either machine: that
 * an acquire is missing is not seen.
 *
 * Threads wait by mc_wait(): while what they wait for is not so, they are no choice. Where nothing
 * can happen any more and somebody still waits, that is a deadlock, and wrong. A lock that is held
 * is such a wait (lock_slow below), so nothing spins. Chance is mc_pick(): each number is tried.
 *
 * The state is all memory: what the model names in model_hash(), the buffers, and the stacks from
 * where they are in use, registers included, since a switch saves them there. A state seen before
 * is not followed again.
 *
 * A store that goes into the buffer is no point, since nobody sees it yet; that it arrives is one.
 * (But for membarrier, which makes those arrive that are there: MODEL_BARRIER.)
 *
 * A place that only one thread ever uses, or that nobody writes, is no point: what comes between
 * makes no difference. Which these are is found out: a run that sees a second thread come to a
 * place marks it, and all begins anew with it marked.
 */
#ifndef MODEL_H
#define MODEL_H

#include "base/base.h"
#define ATOMIC_H /* ours instead */
#include "arch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef MODEL_WEAK
#define MODEL_WEAK 0
#endif
#ifndef MODEL_BUFFER
#define MODEL_BUFFER (MODEL_WEAK ? 4 : 8)
#endif
enum {
    MC_THREADS = 5,
    MC_BUFFER = MODEL_BUFFER,
    MC_DEPTH = 4000,
    MC_STACK = 32 << 10,
    MC_STACKS = 10,
    MC_WATCHED = 12
};

typedef struct McThread {
    void *sp;
    void (*fn)(void);
    bool done, daemon;     /* daemon: it may wait for ever */
    bool (*until)(void *); /* it waits for this */
    void *arg;
    int options, option; /* of mc_pick() */
    int op;              /* what it does next: MC_..., and with what */
    void *at;
    size_t size;
    uint64_t expect, value, found;
    struct {
        void *at;
        size_t size;
        uint64_t value, under; /* while it runs: what memory holds */
        uint8_t kind;          /* MC_SEQ, MC_REL, and MC_HOLDS: the store of a read-modify-write */
    } buffer[MC_BUFFER + MC_WATCHED];
    int pending;
} McThread;

static McThread mc_threads[MC_THREADS];
static int mc_count;
static McThread *mc_running; /* NULL: setting up, or checking the end */
static void *mc_checker;     /* its context while a thread runs */

/* What the model gives: its memory, and its beginning and end. */
static void model_reset(void);
static void model_end(void); /* all threads have ended: is it right? */
static uint64_t model_hash(uint64_t h);
#ifndef MODEL_AFTER
#define MODEL_AFTER 1 /* a release is followed by a point: plain accesses behind it may come late */
#endif
#ifndef MODEL_BARRIER
#define MODEL_BARRIER 0 /* there is a membarrier: it matters when a store went into the buffer */
#endif
#ifdef MODEL_RESUMES
static void model_resumes(int i); /* thread i goes on: its thread-locals */
#else
#define model_resumes(i) ((void)0)
#endif

static uint64_t mix(uint64_t h, uint64_t v) {
    /* without the sum, 1 and 1 would give 0: no change */
    h = (h ^ (v + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
    return h ^ h >> 29;
}
static uint64_t mix_bytes(uint64_t h, const void *at, size_t n) {
    const char *p = at;
    uint64_t v;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&v, p, 8);
        h = mix(h, v);
    }
    for (; n > 0; p++, n--) h = mix(h, (unsigned char)*p);
    return h;
}
#define WORD(v) ((uint64_t)(uintptr_t)(v))
#define MIX(h, x) mix_bytes((h), &(x), sizeof(x))

static _Noreturn void wrong(const char *why);
#define MUST(cond)                 \
    do {                           \
        if (!(cond)) wrong(#cond); \
    } while (0)

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct {
    char *lo, *hi, *low_water;
    char *begin; /* the state is what lies below */
    /* where the context is found while no thread is on it; NULL: nowhere, then it is dead */
    void **saved;
} mc_stacks[MC_STACKS];
static int mc_nstacks;
static char mc_memory[MC_STACKS][MC_STACK] ALIGNED(64);

/* A stack more, whose context is kept in *saved while nobody runs on it. Its end. */
static char *mc_stack(void **saved) {
    int i = mc_nstacks++;
    if (i == MC_STACKS) wrong("too many stacks");
    char *lo = mc_memory[i], *hi = lo + MC_STACK;
    /* the last run's */
    if (mc_stacks[i].low_water)
        memset(mc_stacks[i].low_water, 0, (size_t)(hi - mc_stacks[i].low_water));
    mc_stacks[i].lo = lo, mc_stacks[i].hi = mc_stacks[i].low_water = mc_stacks[i].begin = hi,
    mc_stacks[i].saved = saved;
    return hi;
}

/* Above are the frames of those who have called with the checker's registers. */
static void mc_stack_begins(void *at) {
    for (int i = 0; i < mc_nstacks; i++)
        if ((char *)at >= mc_stacks[i].lo && (char *)at < mc_stacks[i].hi) mc_stacks[i].begin = at;
}

static void mc_note_sp(char *sp) {
    for (int i = 0; i < mc_nstacks; i++) {
        if (sp < mc_stacks[i].lo || sp >= mc_stacks[i].hi) continue;
        if (sp < mc_stacks[i].lo + 3072) wrong("a stack of the checker's is too small");
        if (sp - 2048 < mc_stacks[i].low_water) mc_stacks[i].low_water = sp - 2048;
    }
}

static uint64_t mc_hash_stacks(uint64_t h) {
    for (int i = 0; i < mc_nstacks; i++) {
        char *lo = mc_stacks[i].lo, *hi = mc_stacks[i].hi, *sp = NULL;
        if (mc_stacks[i].saved) sp = *mc_stacks[i].saved;
        for (int k = 0; k < mc_count; k++)
            if (!mc_threads[k].done && (char *)mc_threads[k].sp >= lo &&
                (char *)mc_threads[k].sp < hi)
                sp = mc_threads[k].sp;
        h = mix(h, WORD(sp));
        if (sp >= lo && sp < mc_stacks[i].begin)
            h = mix_bytes(h, sp, (size_t)(mc_stacks[i].begin - sp));
    }
    return h;
}

/* What a thread may do. They are done on the checker's stack, as far as anybody else can see them:
 * what they would leave behind below the thread's frames would be different states that are
 * none. */
enum {
    MC_NOTHING,
    MC_LOAD,
    MC_STORE,
    MC_FENCE,
    MC_CAS,
    MC_XCHG,
    MC_ADD,
    MC_OR,
    MC_AND,
    MC_SEQ = 16,
    MC_REL = 32,
    MC_HOLDS = 64
};

/* ---- memory ---------------------------------------------------------------------------------- */

static struct {
    void *at;
    uint8_t readers, writers;
} mc_places[4096];
static bool mc_anew; /* a place turned out to be shared */

static uint64_t mc_word(const void *at, size_t size) {
    uint64_t v = 0;
    memcpy(&v, at, size);
    return v;
}

static bool mc_several(uint8_t threads) { return (threads & (threads - 1)) != 0; }

/* Somebody else uses this place too, and it is written. */
static bool mc_shared(const void *at, bool write) {
    size_t i = (size_t)(WORD(at) * 0x9E3779B97F4A7C15u >> 52);
    while (mc_places[i].at && mc_places[i].at != at) i = (i + 1) % 4096;
    uint8_t me = (uint8_t)(1u << (mc_running - mc_threads));
    bool before = mc_places[i].writers && mc_several(mc_places[i].readers | mc_places[i].writers);
    mc_places[i].at = (void *)at;
    if (write) mc_places[i].writers |= me;
    else mc_places[i].readers |= me;
    if (!before && mc_places[i].writers && mc_several(mc_places[i].readers | mc_places[i].writers))
        mc_anew = true;
    return before;
}

/* Plain words that others look at: what they held when their thread went on. */
static struct {
    void *at;
    size_t size;
    uint64_t was;
} mc_watched[MC_WATCHED];
static int mc_nwatched;

static void mc_watch_word(void *at, size_t size) {
    mc_watched[mc_nwatched].at = at;
    mc_watched[mc_nwatched++].size = size;
}
#define mc_watch(p) mc_watch_word((p), sizeof *(p))

static void mc_drop(McThread *t, int i) {
    t->pending--;
    memmove(&t->buffer[i], &t->buffer[i + 1], (size_t)(t->pending - i) * sizeof t->buffer[0]);
}
static void mc_arrives(McThread *t, int i) { /* t does not run */
    memcpy(t->buffer[i].at, &t->buffer[i].value, t->buffer[i].size);
    mc_drop(t, i);
}

/* Another thread is between the load and the store of a read-modify-write there. */
static bool mc_held(const McThread *t, const void *at) {
    for (int k = 0; MODEL_WEAK && k < mc_count; k++)
        for (int i = 0; &mc_threads[k] != t && i < mc_threads[k].pending; i++)
            if (mc_threads[k].buffer[i].at == at && (mc_threads[k].buffer[i].kind & MC_HOLDS))
                return true;
    return false;
}

/* Can t's i-th store arrive next? */
static bool mc_may_arrive(const McThread *t, int i) {
    if (mc_held(t, t->buffer[i].at)) return false;
    if (i == 0) return true;
    if (MODEL_WEAK < 2 || t->buffer[i].kind) return false;
    for (int k = 0; k < i; k++)
        if (t->buffer[k].at == t->buffer[i].at) return false;
    return true;
}

/* How many of its stores have to be in memory before t does op: all for a fence; for the seq_cst
 * kind, up to the last such. */
static int mc_before(const McThread *t, int op) {
    if (!MODEL_WEAK) return (op & 15) >= MC_FENCE ? t->pending : 0;
    if ((op & 15) == MC_FENCE) return t->pending;
    int n = 0;
    for (int i = 0; (op & MC_SEQ) && i < t->pending; i++)
        if (t->buffer[i].kind & MC_SEQ) n = i + 1;
    int full = t->pending - MC_BUFFER + 1;
    return (op & 15) >= MC_STORE && n < full ? full : n;
}
/* What t finds at its place. */
static uint64_t mc_sees(const McThread *t) {
    for (int i = t->pending; i-- > 0;)
        if (t->buffer[i].at == t->at) return t->buffer[i].value;
    return mc_word(t->at, t->size);
}
static bool mc_op_is_possible(const McThread *t) {
    if (!MODEL_WEAK) return true;
    for (int i = mc_before(t, t->op); i-- > 0;)
        if (mc_held(t, t->buffer[i].at)) return false;
    /* it fails, and writes nothing */
    if ((t->op & 15) == MC_CAS && mc_sees(t) != t->expect) return true;
    return (t->op & 15) <= MC_FENCE || !mc_held(t, t->at);
}

/* The running thread's store of what is in memory already, which held `under`. */
static void mc_buffer(void *at, size_t size, uint64_t under, int kind) {
    McThread *t = mc_running;
    if (t->pending == MC_BUFFER && !MODEL_WEAK) mc_drop(t, 0); /* the oldest arrives */
    if (t->pending == (int)count_of(t->buffer)) wrong("the checker's store buffer is too small");
    t->buffer[t->pending].kind = (uint8_t)kind;
    t->buffer[t->pending].at = at;
    t->buffer[t->pending].size = size;
    t->buffer[t->pending].under = under;
    t->buffer[t->pending++].value = mc_word(at, size);
}

/* Stores of the running thread that nobody has told us of. */
static void mc_catch_plain(void) {
    for (int i = 0; i < mc_nwatched; i++) {
        uint64_t now = mc_word(mc_watched[i].at, mc_watched[i].size);
        if (now != mc_watched[i].was)
            mc_buffer(mc_watched[i].at, mc_watched[i].size, mc_watched[i].was, 0);
        mc_watched[i].was = now;
    }
    McThread *t = mc_running;
    for (int i = t->pending; i-- > 0;) { /* a plain store to a place with one in the buffer */
        bool last = true;
        for (int k = i + 1; k < t->pending; k++) last = last && t->buffer[k].at != t->buffer[i].at;
        if (last && mc_word(t->buffer[i].at, t->buffer[i].size) != t->buffer[i].value)
            mc_buffer(t->buffer[i].at, t->buffer[i].size, t->buffer[i].value, 0);
    }
}

static void mc_look_at_watched(void) {
    for (int i = 0; i < mc_nwatched; i++)
        mc_watched[i].was = mc_word(mc_watched[i].at, mc_watched[i].size);
}
static bool mc_stored_plainly(void) {
    for (int i = 0; i < mc_nwatched; i++)
        if (mc_watched[i].was != mc_word(mc_watched[i].at, mc_watched[i].size)) return true;
    return false;
}

static void mc_hide(McThread *t) {
    for (int i = t->pending; i-- > 0;)
        memcpy(t->buffer[i].at, &t->buffer[i].under, t->buffer[i].size);
}
static void mc_show(McThread *t) {
    for (int i = 0; i < t->pending; i++) {
        t->buffer[i].under = mc_word(t->buffer[i].at, t->buffer[i].size);
        memcpy(t->buffer[i].at, &t->buffer[i].value, t->buffer[i].size);
    }
    mc_look_at_watched();
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t mc_changed_to(int op, uint64_t found, uint64_t v) {
    return op == MC_ADD ? found + v : op == MC_OR ? found | v : op == MC_AND ? found & v : v;
}

static void mc_put(void *at, size_t size, uint64_t v) {
    memcpy(at, &v, size);
    for (int i = 0; i < mc_nwatched; i++)
        if (mc_watched[i].at == at) mc_watched[i].was = mc_word(at, size);
}

/* The thread's operation, while its buffer lies over memory. What it found. */
static uint64_t mc_do(int kind, void *at, size_t size, uint64_t expect, uint64_t v, bool shared) {
    int op = kind & 15;
    /* what is nobody else's takes no room, and need not be in order */
    bool waits = mc_running && (shared || !MODEL_WEAK);
    /* it is in memory */
    for (int n = waits ? mc_before(mc_running, kind) : 0; n > 0; n--) mc_drop(mc_running, 0);
    if (op == MC_NOTHING || op == MC_FENCE) return 0;
    uint64_t found = mc_word(at, size);
    if (op == MC_LOAD || (op == MC_CAS && found != expect)) return found;
    mc_put(at, size, mc_changed_to(op, found, v));
    if (shared && op == MC_STORE) mc_buffer(at, size, found, MODEL_WEAK ? kind & ~15 : 0);
    else if (shared && MODEL_WEAK) mc_buffer(at, size, found, (kind & ~15) | MC_REL | MC_HOLDS);
    return found;
}

/* Another thread may go on here; then op is done. */
static __attribute__((noinline)) uint64_t mc_point(int op, void *at, size_t size, uint64_t expect,
                                                   uint64_t v) {
    McThread *t = mc_running;
    t->op = op, t->at = at, t->size = size, t->expect = expect, t->value = v;
    arch_switch(&t->sp, mc_checker);
    return mc_running->found;
}

/* A condition of a debug build looks on, and is no step. */
static int mc_quiet;
#undef check
#define check(cond)                                                \
    do {                                                           \
        mc_quiet++;                                                \
        bool holds_ = (cond);                                      \
        mc_quiet--;                                                \
        if (!holds_) wrong(__FILE__ ": invariant broken: " #cond); \
    } while (0)

/* Nobody would notice: no point. */
static __attribute__((noinline)) bool mc_private(int op, const void *at) {
    if (mc_running == NULL || mc_quiet) return true;
    if (at && mc_shared(at, (op & 15) != MC_LOAD)) return false;
    if (MODEL_WEAK && (op & 15) != MC_FENCE) return mc_before(mc_running, op & MC_SEQ) == 0;
    return !((op & 15) >= MC_FENCE && (mc_running->pending || mc_stored_plainly()));
}

/* What the checker has left below the thread's frames, where the next one may have a gap. */
static __attribute__((noinline)) void mc_wipe(void) {
    volatile uint64_t below[32];
    /* who still has a pointer there is in for nonsense */
    for (size_t i = 0; i < count_of(below); i++) below[i] = 0x5555555555555555u;
}

static __attribute__((noinline)) uint64_t mc_op(int op, const void *at, size_t size,
                                                uint64_t expect, uint64_t v) {
    bool private = mc_private(op, at);
    bool buffered =
        !private && (op & 15) == MC_STORE && !MODEL_BARRIER && mc_running->pending < MC_BUFFER / 2;
    if (buffered) mc_catch_plain(); /* in their order */
    uint64_t found = private || buffered ? mc_do(op, (void *)at, size, expect, v, buffered) : 0;
    mc_wipe();
    return private || buffered ? found : mc_point(op, (void *)at, size, expect, v);
}
static __attribute__((noinline)) void mc_after(const void *at) {
    if (!MODEL_AFTER) return;
    bool shared = mc_running && mc_shared(at, true);
    mc_wipe();
    if (shared) mc_point(MC_NOTHING, NULL, 0, 0, 0);
}
static bool mc_cas(int op, void *at, size_t size, void *expect, uint64_t v) {
    uint64_t wanted = mc_word(expect, size), found = mc_op(op, at, size, wanted, v);
    if (found == wanted) return true;
    memcpy(expect, &found, size);
    return false;
}

#define mc_on(op, p, v)                                                                        \
    ({                                                                                         \
        __typeof__(*(p)) found_ = (__typeof__(*(p)))mc_op((op), (p), sizeof *(p), 0, WORD(v)); \
        found_;                                                                                \
    })
#define load_rlx(p) mc_on(MC_LOAD, p, 0)
#define load_acq load_rlx
#define load_seq(p) mc_on(MC_LOAD | MC_SEQ, p, 0)
#define store_rlx(p, v) ((void)mc_on(MC_STORE, p, v))
/* what comes next may come when others have seen it */
#define store_rel(p, v)                       \
    ({                                        \
        (void)mc_on(MC_STORE | MC_REL, p, v); \
        mc_after(p);                          \
    })
#if MODEL_WEAK
#define store_seq(p, v) ((void)mc_on(MC_STORE | MC_SEQ | MC_REL, p, v))
#define fence_after_rmw() fence_full()
#else
#define store_seq(p, v) (store_rlx(p, v), fence_full())
#define fence_after_rmw() ((void)0)
#endif
#define xchg_seq(p, v) mc_on(MC_XCHG | MC_SEQ, p, v)
#define xchg_acq(p, v) mc_on(MC_XCHG, p, v)
#define xchg_rel xchg_acq
#define cas_acq_rel(p, e, v) mc_cas(MC_CAS, (p), sizeof *(p), (e), WORD(v))
#define cas_rel cas_acq_rel
#define cas_acq cas_acq_rel
#define cas_seq(p, e, v) mc_cas(MC_CAS | MC_SEQ, (p), sizeof *(p), (e), WORD(v))
#define mc_add(op, p, v, sign)                                          \
    ({                                                                  \
        __typeof__(*(p)) sum_ = mc_on(op, p, sign(int64_t)(v)) sign(v); \
        sum_;                                                           \
    })
#define add_seq(p, v) mc_add(MC_ADD | MC_SEQ, p, v, +)
#define sub_seq(p, v) mc_add(MC_ADD | MC_SEQ, p, v, -)
#define add_rlx(p, v) mc_add(MC_ADD, p, v, +)
#define sub_rlx(p, v) mc_add(MC_ADD, p, v, -)
#define or_acq(p, v) mc_on(MC_OR, p, v)
#define or_seq(p, v) mc_on(MC_OR | MC_SEQ, p, v)
#define and_seq(p, v) mc_on(MC_AND | MC_SEQ, p, v)
#define fence_full() ((void)mc_op(MC_FENCE, NULL, 0, 0, 0))
#define fence_stores() fence_full()
#define fence_compiler() \
    (MODEL_BARRIER && mc_running && !mc_quiet ? (void)mc_point(MC_NOTHING, NULL, 0, 0, 0) : (void)0)
#define add_own(p, n) store_rlx((p), *(p) + (n))
#define sub_own_rel(p, n) store_rel((p), *(p) - (n))
#define bump(p, n) ((void)(*(p) += (n))) /* counters, which decide nothing */

/* ---- waiting and chance ---------------------------------------------------------------------- */

/* The running thread waits until what `until` says; that looks at memory, and changes nothing.
 * Places that are else written by one thread only have to be named first, by mc_looks_at(). */
static __attribute__((noinline)) void mc_looks_at(const void *at) {
    mc_shared(at, false);
    mc_wipe();
}
static void mc_wait(bool (*until)(void *), void *arg) {
    mc_running->until = until;
    mc_running->arg = arg;
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    mc_running->until = NULL;
}

/* 0 to n - 1: each of them, one after the other. */
static int mc_pick(int n) {
    mc_running->options = n;
    mc_point(MC_NOTHING, NULL, 0, 0, 0);
    mc_running->options = 0;
    return mc_running->option;
}

static bool mc_is_free(void *word) { return *(uint32_t *)word == 0 && !mc_held(NULL, word); }

struct Lock;
void lock_slow(struct Lock *l) {
    mc_wait(mc_is_free, l);
    mc_put(l, 4, 1); /* nobody comes between: there is no point */
}

/* The kernel's side of a futex: who sleeps is woken, not by the change of the word. Nobody is woken
 * without reason, and where time passes (mc_time_passes) a deadline may pass any time. */
static bool mc_time_passes;
static void *mc_asleep[MC_THREADS];
static bool mc_woken(void *slot) { return *(void **)slot == NULL; }

int os_futex_wait(uint32_t *word, uint32_t value, int64_t deadline) {
    fence_full();
    if (load_rlx(word) != value) return 0;
    void **slot = &mc_asleep[mc_running - mc_threads];
    *slot = word;
    if (deadline == GORT_FOREVER || !mc_time_passes) mc_wait(mc_woken, slot);
    else mc_point(MC_FENCE, NULL, 0, 0, 0);
    if (*slot == NULL) return 0;
    *slot = NULL;
    return -ETIMEDOUT;
}
void os_futex_wake(uint32_t *word, int count) {
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    for (int i = 0; i < MC_THREADS; i++)
        if (mc_asleep[i] == word) mc_asleep[i] = NULL;
}

/* What the others have stored is in memory. */
static void mc_others_arrive(void) {
    for (int i = 0; i < MC_THREADS; i++)
        if (&mc_threads[i] != mc_running)
            while (mc_threads[i].pending) mc_arrives(&mc_threads[i], 0);
    mc_look_at_watched(); /* these were not our stores */
}

/* Every CPU that runs a thread of ours passes a full barrier. */
int os_membarrier(void) {
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    mc_others_arrive();
    return 0;
}

/* ---- the search ------------------------------------------------------------------------------ */

static struct { int chosen, n; } mc_choices[MC_DEPTH];
static int mc_depth, mc_replay;
static uint64_t mc_runs, mc_states, *mc_visited, mc_visited_size = 1 << 24, mc_used;
static uint64_t mc_generation; /* states of an earlier one are others */
static const char *mc_name = "";
static char mc_trail[MC_DEPTH]; /* 1..: that thread went on; a..: its oldest store arrived */

/* First on a stack: what the checker had in the registers is no part of the state. (Elsewhere it
 * is only more states.) */
INLINE void mc_forget_registers(void) {
#ifdef __x86_64__
    __asm__ volatile("xorl %%ebx, %%ebx; xorl %%r12d, %%r12d; xorl %%r13d, %%r13d; xorl %%r14d, "
                     "%%r14d; xorl %%r15d, %%r15d" ::
                         : "rbx", "r12", "r13", "r14", "r15", "cc");
#endif
}

static __attribute__((noinline)) void mc_begin(McThread *t) {
    mc_stack_begins(__builtin_frame_address(0));
    mc_point(MC_NOTHING, NULL, 0, 0, 0);
    t->fn();
    mc_point(MC_FENCE, NULL, 0, 0, 0);
    mc_running->done = true;
    for (;;) mc_point(MC_NOTHING, NULL, 0, 0, 0);
}
static void mc_thread_body(void *thread) {
    mc_forget_registers();
    mc_begin(thread);
}

/* the number of the run that is told, by MODEL_RUN=n in the environment; from 1 */
static uint64_t mc_told;
static void mc_tell(McThread *t) {
    static const char *const names[] = {"goes on",  "load", "store", "fence", "cas",
                                        "exchange", "add",  "or",    "and"};
    fprintf(stderr, "%d %-8s %p %#llx -> %#llx\n", (int)(t - mc_threads) + 1, names[t->op & 15],
            t->at, (unsigned long long)t->value, (unsigned long long)t->found);
}

/* t does what it had come to, and goes on to its next point. */
static __attribute__((noinline)) void mc_go_on(McThread *t) {
    mc_running = t;
    model_resumes((int)(t - mc_threads));
    mc_show(t);
    t->found = mc_do(t->op, t->at, t->size, t->expect, t->value, true);
    if (mc_runs + 1 == mc_told) mc_tell(t);
    arch_switch(&mc_checker, t->sp);
    mc_catch_plain();
    mc_hide(t);
    mc_running = NULL;
    mc_note_sp(t->sp);
}

/* A thread more; *saved: its context while it runs on another stack (NULL: it never does). */
static void mc_spawn_on(void (*fn)(void), void **saved) {
    McThread *t = &mc_threads[mc_count++];
    memset(t, 0, sizeof *t);
    t->fn = fn;
    t->sp = arch_first_frame(mc_stack(saved), mc_thread_body, t);
    mc_asleep[t - mc_threads] = NULL;
    mc_go_on(t); /* up to its beginning */
}
static void mc_spawn(void (*fn)(void)) { mc_spawn_on(fn, NULL); }

/* Before the search begins: the thread alone, up to where `so` or to where it waits. */
static bool mc_can_go_on(McThread *t);
static void mc_advance(int i, bool (*so)(void)) {
    McThread *t = &mc_threads[i];
    while (mc_can_go_on(t) && !(so && so())) {
        mc_go_on(t);
        while (t->pending) mc_arrives(t, 0);
    }
}

static _Noreturn void wrong(const char *why) {
    printf("wrong: %s\n%s, run %llu: ", why, mc_name, (unsigned long long)mc_runs + 1);
    for (int i = 0; i < mc_depth; i++) putchar(mc_trail[i]);
    printf("\n");
    fflush(stdout);
    _Exit(1);
}

/* A mutant may well jump anywhere. */
static void mc_crashed(int signo) { wrong("it crashed"); }

static bool mc_seen_before(void) {
    uint64_t h = mc_hash_stacks(model_hash(mix(88172645463325252u, mc_generation)));
    for (int i = 0; i < mc_count; i++) {
        McThread *t = &mc_threads[i];
        h = mix(mix(mix(mix(h, t->done), WORD(t->until)), WORD(t->arg)), WORD(mc_asleep[i]));
        /* the stack need not know them */
        h = mix(mix(mix(mix(h, (uint64_t)t->op), WORD(t->at)), t->expect), t->value);
        for (int k = 0; k < t->pending; k++)
            h = mix(mix(mix(h, WORD(t->buffer[k].at)), t->buffer[k].value), t->buffer[k].kind);
        h = mix(h, 77 + (uint64_t)t->options);
    }
    if (h == 0) h = 1;
    for (uint64_t i = h % mc_visited_size;; i = (i + 1) % mc_visited_size) {
        if (mc_visited[i] == h) return true;
        if (mc_visited[i]) continue;
        mc_visited[i] = h;
        mc_states++;
        if (++mc_used > mc_visited_size / 4 * 3) {
            printf("%s: too many states\n", mc_name);
            exit(2);
        }
        return false;
    }
}

static bool mc_can_go_on(McThread *t) {
    return !t->done && (t->until == NULL || t->until(t->arg)) && mc_op_is_possible(t);
}

/* The k-th thing that can happen now; how many there are when k is -1. */
static int mc_act(int k) {
    int n = 0;
    for (int i = 0; i < mc_count; i++) {
        McThread *t = &mc_threads[i];
        for (int option = 0; mc_can_go_on(t) && option < (t->options ? t->options : 1); option++) {
            if (n++ != k) continue;
            mc_trail[mc_depth] = (char)('1' + i);
            t->option = option;
            mc_go_on(t);
            return n;
        }
        for (int j = 0; j < t->pending; j++) {
            if (!mc_may_arrive(t, j) || n++ != k) continue;
            mc_trail[mc_depth] = (char)('a' + i);
            mc_arrives(t, j);
            return n;
        }
    }
    return n;
}

/* Stores that wait for each other: no machine comes here. */
static bool mc_impossible(void) {
    for (int i = 0; i < mc_count; i++)
        if (mc_threads[i].pending) return true;
    return false;
}

static void mc_one_run(void) {
    mc_count = mc_nstacks = mc_nwatched = 0;
    mc_depth = 0;
    model_reset();
    for (;; mc_depth++) {
        if (mc_depth < mc_replay) {
            mc_act(mc_choices[mc_depth].chosen);
            continue;
        }
        int n = mc_act(-1);
        if (n == 0) {
            if (mc_impossible()) return;
            for (int i = 0; i < mc_count; i++)
                if (!mc_threads[i].done && !mc_threads[i].daemon) wrong("a thread waits for ever");
            model_end();
            return;
        }
        if (mc_depth == MC_DEPTH - 1) wrong("no end");
        if (mc_seen_before()) return;
        mc_choices[mc_depth].chosen = 0;
        mc_choices[mc_depth].n = n;
        mc_act(0);
        if (mc_anew) return;
    }
}

/* The next run: after the last choice that has an alternative. False: there is none. */
static bool mc_next_run(void) {
    if (mc_anew) {
        mc_anew = false;
        mc_depth = mc_replay = 0;
        mc_states = 0;
        mc_generation++;
        return true;
    }
    while (mc_depth > 0 && mc_choices[mc_depth - 1].chosen + 1 == mc_choices[mc_depth - 1].n)
        mc_depth--;
    if (mc_depth > 0) mc_choices[mc_depth - 1].chosen++;
    mc_replay = mc_depth;
    return mc_depth > 0;
}

/* A name that the library's code has and a model never comes to. */
_Noreturn __attribute__((used)) void never_called(void) { wrong("called, and should not be"); }
#define UNUSED_HERE(name) __asm__(".globl " #name "\n.set " #name ", never_called")
#ifndef MODEL_FORKS
UNUSED_HERE(fork_gate_wait); /* every section asks for it */
#endif

/* All of one model. */
static int model_main(const char *name) {
    mc_name = name;
    if (mc_visited == NULL) mc_visited = calloc(mc_visited_size, sizeof *mc_visited);
    if (mc_visited == NULL) return 2;
    if (getenv("MODEL_RUN")) mc_told = strtoull(getenv("MODEL_RUN"), NULL, 0);
    /* the thread's own may be what is broken */
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&other, NULL);
    struct sigaction sa = {.sa_handler = mc_crashed, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);
    memset(mc_places, 0, sizeof mc_places);
    if (mc_used > mc_visited_size / 8) { /* the scenes before were large: room for this one */
        memset(mc_visited, 0, mc_visited_size * sizeof *mc_visited);
        mc_used = 0;
    }
    mc_runs = mc_states = 0;
    mc_generation++;
    mc_depth = mc_replay = 0;
    do {
        mc_one_run();
        mc_runs++;
    } while (mc_next_run());
    printf("%s: %llu states, %llu runs, nothing wrong\n", name, (unsigned long long)mc_states,
           (unsigned long long)mc_runs);
    fflush(stdout);
    return 0;
}

#endif
