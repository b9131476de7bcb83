/*
 * Recording a trace: an event becomes a word in a buffer.
 *
 * Each M writes into a buffer of its own, so an event takes no lock, no locked instruction and no
 * cache line of another thread. In a file trace the M writes a full chunk (32 KB) to a nameless
 * spill file: the first 256 MB into memory, which takes a third of the time, the rest into the page
 * cache of a disk. The JSON is made when the trace stops (trace_write.c). The flight recorder puts
 * a full chunk into a ring that all threads share (flight_keep), written out only on demand. It
 * holds as much as the setting wants, at most tracemax: a busy thread takes what an idle one has
 * not used, and what is forgotten is forgotten for all from the same moment on.
 *
 * Only the owner writes a buffer, and publishes how far by a release store of `at`. So stopping
 * needs no hand-shake with the writer of an event: the stopper clears trace_on and reads each
 * buffer up to `at`; a record that is finished later lies beyond. Nor does the next session: an
 * owner whose buffer is of another session than trace_on begins the buffer anew, and the reader
 * skips buffers of other sessions. Only the end of a chunk, where memory is reused, is a Dekker
 * pair: the owner sets busy, fence, reads trace_on; the stopper clears trace_on, fence, and waits
 * while a buffer is busy. Otherwise a chunk could go into the next session's file, or the flight
 * recorder's ring turn while it is read.
 *
 * Time stamps are processor ticks where these run steadily, scaled by two readings of the clock at
 * the start and at the stop; elsewhere the clock itself. A reading costs more than all the rest, so
 * events of one moment share it: a goroutine leaves and the next one starts; one is created and is
 * ready; the poller returns and a list becomes ready.
 *
 * One stamp is a guess: after 64 short intervals in a row a READY takes the reading of its slice's
 * beginning, marked by x = 1. The reader sees how long the slice was; if it was long, which is
 * rare, it shows the time as uncertain. Only where the readied goroutine last ran on this M: then
 * its BLOCK is in this buffer too, and the records are in order.
 *
 * Threads without an M, which may start a trace, share a buffer under a lock.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "base/print.h"
#include "sched/trace_buf.h"
#include "base/upstairs.h"
#include "mem/split/split.h"
#include "sched/describe.h"
#include "mem/stack.h"
#include "ticks.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

uint32_t trace_on;

struct Tracing tracing;
#define t tracing

INLINE uint64_t stamp(void) { return likely(t.ticks) ? arch_ticks() : (uint64_t)os_now(); }
uint64_t trace_stamp(void) { return stamp(); }

static TraceBuf *new_buf(M *owner) {
    TraceBuf *b = os_map(sizeof *b, false);
    if (b == NULL) return NULL;
    b->owner = owner;
    b->index = add_rlx(&t.buffers, 1) - 1;
    TraceBuf *head = load_rlx(&t.all);
    do b->all = head;
    while (!cas_rel(&t.all, &head, b)); /* pairs with the stopper's acquire of t.all */
    return b;
}

static TraceBuf *find_buf(M *m) {
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all)
        if (b->owner == m) return b; /* M records are reused, with their buffers */
    return new_buf(m);
}

INLINE uint32_t p_of(const P *p) { return p ? p->id : NO_P; }

static void begin_chunk(TraceBuf *b) {
    TraceChunk *c = &b->chunk;
    store_rel(&b->number, b->number + 1); /* pairs with copy_chunk: the chunk is in the ring */
    fence_stores();                       /* pairs with copy_chunk: before it is written over */
    c->buffer = b->index;
    c->words = 0;
    c->stamp = b->last;
    c->high = b->high;
    c->thread = b->thread;
    c->p = p_of(b->p);
    c->number = b->number;
    b->limit = c->word + count_of(c->word) - LONGEST;
    store_rel(&b->at, c->word);
    b->used = 1;
    store_rel(&b->number, b->number + 1); /* pairs with copy_chunk: it is begun */
}

#define OF_THE_LIMIT (1ULL << (SIGXFSZ - 1))
uint64_t trace_quiet_begin(void) {
    uint64_t quiet = OF_THE_LIMIT, mask = 0;
    sys6(SYS_rt_sigprocmask, SIG_BLOCK, &quiet, &mask, sizeof mask, 0, 0);
    return mask;
}
void trace_quiet_end(uint64_t mask, long result) {
    uint64_t quiet = OF_THE_LIMIT;
    struct timespec none = {0, 0};
    if (result == -EFBIG && !(mask & quiet)) /* it waits for this thread */
        sys6(SYS_rt_sigtimedwait, &quiet, NULL, &none, sizeof quiet, 0, 0);
    sys6(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask, 0, 0);
}

/* Called by call_with_room: fstat(2) needs more room than a compact stack has. */
static NOINLINE long spill_chunk(void *arg) {
    TraceBuf *b = arg;
    uint64_t place;
    int which = spill_of(add_rlx(&t.spilled, 1) - 1, &place), fd = own_fd_number(&t.spill[which]);
    if (fd < 0) store_rlx(&t.lost, true);
    uint64_t mask = trace_quiet_begin();
    long r = fd < 0 ? fd
                    : os_sys(SYS_pwrite64, fd, (long)&b->chunk, sizeof(TraceChunk),
                             (long)(place * sizeof(TraceChunk)), 0, 0);
    trace_quiet_end(mask, r);
    if (r != (long)sizeof(TraceChunk)) b->dropped++;
    b->used = 0;
    return 0;
}

/* The place for a chunk that ends now: a fresh one while the oldest is young, else the oldest's. */
static uint32_t flight_place(FlightRing *f, int64_t now) {
    uint32_t oldest = f->held ? f->slot[f->newest].next : 0, place = oldest;
    bool young = f->held == 0 || now - f->slot[oldest].when <= f->keep;
    if (young && f->held < f->size) {
        place = f->held++;
        f->slot[place].next = place == 0 ? 0 : oldest;
        if (place) f->slot[f->newest].next = place;
    } else {
        if (young) f->short_of = true;
        if (f->slot[oldest].last > f->forgotten) f->forgotten = f->slot[oldest].last;
        store_rel(&f->gone, f->gone + 1); /* after `forgotten` */
        fence_stores();                   /* pairs with copy_ring: before it is written over */
    }
    f->newest = place;
    return place;
}

/* As spill_chunk, for the flight recorder. */
static NOINLINE long flight_keep(void *arg) {
    TraceBuf *b = arg;
    FlightRing *f = &t.ring;
    int64_t now = os_now();
    lock(&f->lock, RANK_LEAF);
    if (f->size == 0) {
        b->dropped++;
        if (b->last > f->forgotten) f->forgotten = b->last;
    } else {
        uint32_t place = flight_place(f, now);
        f->slot[place].when = now;
        f->slot[place].last = b->last;
        memcpy(&f->chunk[place], &b->chunk, sizeof b->chunk);
    }
    unlock(&f->lock);
    b->used = 0;
    return 0;
}

/* Recording ends; what the buffers hold is still part of the trace. Called by call_with_room. */
static NOINLINE long trace_is_full(void *arg) {
    and_seq(&trace_on, TRACE_PROFILE);
    if (!xchg_seq(&t.full, true))
        print_fd(2, "gort: the trace is full (%lu MB, GORT_DEBUG=tracemax): recording has ended\n",
                 t.limit * sizeof(TraceChunk) >> 20);
    return 0;
}

/* The owner's side of the Dekker pair. False: the session is over. */
static bool next_chunk(TraceBuf *b, M *m) {
    store_rlx(&b->busy, 1);
    fence_full(); /* pairs with switch_off */
    bool on = trace_session() == b->session;
    if (on && !t.flight && load_rlx(&t.spilled) >= t.limit) {
        call_with_room(m, trace_is_full, NULL);
    } else if (on) {
        b->chunk.words = (uint32_t)(b->at - (uint64_t *)&b->chunk);
        call_with_room(m, t.flight ? flight_keep : spill_chunk, b);
        begin_chunk(b);
    }
    store_rel(&b->busy, 0); /* pairs with switch_off: what it reads is complete */
    return on && b->at < b->limit;
}

INLINE uint64_t word_of(int kind, int x, uint64_t dt, uint64_t g) {
    return (uint64_t)kind | (uint64_t)(x & 63) << 6 | dt << 12 | g << 32;
}

/* m's buffer, for the first event of a session, or of a thread. */
static TraceBuf *open_buf(M *m, uint32_t session, int kind) {
    TraceBuf *b = m == NULL ? t.shared : m->trace;
    if (b == NULL) b = find_buf(m);
    if (m) m->trace = b;
    else t.shared = b;
    if (b == NULL) return NULL;
    if (b->session != session) {
        b->last = t.tick0 + (kind != EV_EXISTS); /* behind the names, which another thread puts */
        b->high = 0;
        b->p = m ? m->p : NULL;
        b->used = b->dropped = 0;
        b->thread = m ? m->id : 0;
        begin_chunk(b);
        store_rel(&b->session, session); /* pairs with the reader: `at` is this session's */
        bool ran = kind != EV_START && kind != EV_RESUME && kind != EV_EXISTS &&
                   kind != EV_SYSEXIT;     /* it was in a call, and its P may be another thread's */
        if (ran && m && m->p && m->curg) { /* as the trace began */
            trace_put_existing(m, m->curg);
            trace_put_resume(m, m->curg);
        }
    }
    return b;
}

/* Makes room for an event, and writes what it presupposes. NULL: the session is over. */
static NOINLINE uint64_t *prepare(TraceBuf *b, M *m, uint64_t g, uint64_t now) {
    if (b->at >= b->limit && !next_chunk(b, m)) return NULL;
    uint64_t *at = b->at;
    if (m && b->thread != m->id) {
        b->thread = m->id;
        *at++ = word_of(EV_THREAD, 0, 0, m->id);
    }
    if (b->p != (m ? m->p : NULL)) {
        b->p = m ? m->p : NULL;
        *at++ = word_of(EV_PROC, 0, 0, p_of(b->p));
    }
    if (g >> 32 != b->high) {
        b->high = (uint32_t)(g >> 32);
        *at++ = word_of(EV_HIGH, 0, 0, b->high);
    }
    if ((now - b->last) >> TICK_BITS) {
        b->last = now;
        b->quick = 0;
        *at++ = word_of(EV_CLOCK, 0, 0, 0);
        *at++ = now;
    }
    return at;
}

/* One word, and n further ones from `more`. `again`: at the moment of the event before. */
INLINE void put(TraceBuf *b, M *m, int kind, uint64_t g, int x, bool again, const void *more,
                size_t n) {
    uint64_t now = again ? b->last : stamp();
    uint64_t *at = b->at;
    if (unlikely(b->p != (m ? m->p : NULL) || g >> 32 != b->high || (now - b->last) >> TICK_BITS ||
                 at >= b->limit || (m && b->thread != m->id))) {
        at = prepare(b, m, g, now);
        if (at == NULL) return;
    }
    *at++ = word_of(kind, x, now - b->last, g);
    if (!again) b->quick = now - b->last < SHORT ? b->quick + 1 : 0;
    b->last = now;
    b->kind = (uint8_t)kind;
    if (n) memcpy(at, more, n * 8);
    store_rel(&b->at, at + n); /* pairs with the reader's acquire */
}

/* Called by call_with_room: a mapping and an event before the event. */
typedef struct Opening {
    M *m;
    uint32_t session;
    int kind;
} Opening;
static NOINLINE long open_with_room(void *arg) {
    Opening *o = arg;
    return (long)open_buf(o->m, o->session, o->kind);
}

/* The buffer of m (not NULL); NULL: no session, or no memory. */
INLINE TraceBuf *buf_of(M *m, int kind) {
    TraceBuf *b = m->trace;
    uint32_t session = trace_session();
    if (likely(b != NULL && b->session == session)) return b;
    if (session == 0) return NULL;
    return (TraceBuf *)call_with_room(m, open_with_room, &(Opening){m, session, kind});
}

static NOINLINE void put_shared(int kind, uint64_t g, int x, const void *more, size_t n) {
    lock(&t.shared_lock, RANK_LEAF);
    uint32_t session = trace_session();
    TraceBuf *b = t.shared;
    if (session && (b == NULL || b->session != session)) b = open_buf(NULL, session, kind);
    if (session && b) put(b, NULL, kind, g, x, kind == EV_EXISTS || kind == EV_NAME, more, n);
    unlock(&t.shared_lock);
}

void trace_put(M *m, int kind, uint64_t g, int x) {
    TraceBuf *b = buf_of(m, kind);
    if (likely(b != NULL)) put(b, m, kind, g, x, false, NULL, 0);
}

void trace_put_block(M *m, G *gp, int reason) {
    if (load_rlx(&trace_on) & TRACE_PROFILE) gp->since = os_now(); /* exact, not coarse */
    trace_put(m, EV_BLOCK, gp->id, reason);
}

/* A READY is of the same moment as the event before: of the goroutine's creation, or, on g0, of the
 * poller's or timer's that readies it. */
INLINE bool same_moment(const TraceBuf *b, const M *m) {
    return b->kind == EV_CREATE || b->kind == EV_NAME ||
           (m->curg == NULL && (b->kind == EV_POLL || b->kind == EV_TIMER || b->kind == EV_READY));
}

void trace_put_ready(M *m, G *gp) {
    if (unlikely(load_rlx(&trace_on) & TRACE_PROFILE))
        upstairs.waited(m, gp, (uintptr_t)__builtin_return_address(0));
    TraceBuf *b = buf_of(m, EV_READY);
    if (unlikely(b == NULL)) return;
    bool same = same_moment(b, m), guess = !same && b->quick >= 64 && gp->m == m;
    put(b, m, EV_READY, gp->id, guess, same || guess, NULL, 0);
}

void trace_put_resume(M *m, G *gp) {
    TraceBuf *b = buf_of(m, EV_RESUME);
    if (b)
        put(b, m, EV_RESUME, gp->id, 0, b->kind == EV_SYSEXIT || b->at == b->chunk.word, NULL, 0);
}

static void put_more(M *m, int kind, uint64_t g, int x, bool again, const void *more, size_t n) {
    if (m == NULL) {
        put_shared(kind, g, x, more, n);
        return;
    }
    TraceBuf *b = buf_of(m, kind);
    if (b) put(b, m, kind, g, x, again, more, n);
}

static void put_name(M *m, G *gp, const char *name) {
    _Static_assert(STACK_NAME == TRACE_TEXT, "a name is copied whole");
    put_more(m, EV_NAME, gp->id, 0, m != NULL, name, TRACE_TEXT / 8);
}

void trace_put_name(M *m, G *gp) { put_name(m, gp, gp->stack->name); }

/* By gp's maker, before gp may run: its memory is the caller's. */
void trace_put_create(M *m, G *gp) {
    uint64_t more[2] = {g_entry_new(gp), gp->parent};
    put_more(m, EV_CREATE, gp->id, 0, false, more, 2);
    if (gp->flags & GF_NAMED) put_name(m, gp, gp->stack->name);
}

/* At the moment of the beginning, before any event about gp: its first slices have its name. gp may
 * end at any moment, and its stack be given back. */
void trace_put_existing(M *m, G *gp) {
    uint64_t more[1] = {g_entry(gp)};
    char name[TRACE_TEXT];
    put_more(m, EV_EXISTS, gp->id, (int)load_acq(&gp->status), true, more, 1);
    if (!(gp->flags & GF_NAMED) || gp->stack == NULL) return;
    if (read_memory((uintptr_t)gp->stack->name, name, sizeof name)) put_name(m, gp, name);
}

/* A goroutine that was being made as the trace began may have been missed by the list of those that
 * exist: it had looked whether there is a trace, and had no status yet. So the first turn of each
 * that has been as it is since then tells its name, once more for most. (One that ran already:
 * open_buf.) */
#define MISSED (20 * GORT_MS)
void trace_put_start(M *m, G *gp, bool direct) {
    if (unlikely(gp->since < t.ns0 + MISSED) && trace_session() != 0) trace_put_existing(m, gp);
    TraceBuf *b = buf_of(m, EV_START);
    if (likely(b != NULL)) put(b, m, EV_START, gp->id, 0, direct, NULL, 0);
}

void trace_put_region(M *m, G *gp, const char *text, int begins) {
    char name[TRACE_TEXT];
    copy_name(name, sizeof name, text);
    put_more(m, EV_REGION, gp->id, begins, false, name, TRACE_TEXT / 8);
}
