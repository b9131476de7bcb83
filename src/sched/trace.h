/*
 * The execution tracer: every decision of the scheduler is an event.
 *
 * Off, an event costs one load of a read-mostly word and a branch that is never taken. On, it is
 * eight bytes into a buffer of the M's own (trace.c), and mostly a reading of the processor's
 * clock. In sections only: a preemption handler never comes into the middle of an event.
 */
#ifndef TRACE_H
#define TRACE_H

#include "base/probe.h"
#include "runtime.h"

enum {
    EV_NONE,
    EV_CREATE,  /* g; arg: its function; y: the goroutine that started it */
    EV_NAME,    /* g; text: its name */
    EV_EXISTS,  /* g was there when the trace began; arg: its function; x: status */
    EV_START,   /* g is put on p */
    EV_BLOCK,   /* g leaves p; x: reason */
    EV_YIELD,   /* g leaves p for the tail of the global queue */
    EV_PREEMPT, /* g leaves p, asked to */
    EV_END,     /* g has ended */
    EV_READY,   /* g becomes runnable; y: the goroutine that made it so; x = 1: time is a guess */
    EV_SYSCALL, /* g enters a blocking call on thread y */
    EV_SYSEXIT, /* the call has returned; RESUME or READY and START follow */
    EV_RESUME,  /* g runs on p again without having been queued */
    EV_HANDOFF, /* p (y) was taken from a thread in a blocking call */
    EV_STEAL,   /* y goroutines were taken from another P */
    EV_POLL,    /* the poller made y goroutines ready */
    EV_TIMER,   /* a timer's function is run */
    EV_WORLD,   /* x = 1: the world is stopped; 0: runs again */
    EV_REGION,  /* g; text; x = 1: begins; 0: ends */
    EV_KINDS,
    /* In a buffer only, for the reader: */
    EV_CLOCK = EV_KINDS, /* the next word is a reading far from the one before */
    EV_PROC,             /* the P of this thread from now on */
    EV_HIGH,             /* the upper half of the ids from now on */
    EV_THREAD            /* the thread this buffer belongs to from now on */
};

/* An event as the reader hands it out. */
#define NO_P 0xffff
#define TRACE_TEXT 32
typedef struct TraceEvent {
    uint64_t when; /* ticks of arch_ticks(), turned into ns by the writer */
    uint64_t g;
    uint64_t arg;
    uint64_t y;
    uint16_t p;
    uint8_t kind;
    uint8_t x;
    char text[TRACE_TEXT];
} TraceEvent;

/* Atomic: the number of the session, or 0; and a bit for block profiles (blockprof.c). */
extern uint32_t trace_on;
#define TRACE_PROFILE 0x80000000u
INLINE uint32_t trace_session(void) { return load_rlx(&trace_on) & ~TRACE_PROFILE; }

NOINLINE void trace_put(M *m, int kind, uint64_t g, int x);
NOINLINE void trace_put_start(M *m, G *gp, bool direct);
NOINLINE void trace_put_block(M *m, G *gp, int reason);
NOINLINE void trace_put_create(M *m, G *gp);
void trace_put_name(M *m, G *gp); /* it has another one */
NOINLINE void trace_put_ready(M *m, G *gp);
NOINLINE void trace_put_resume(M *m, G *gp);
NOINLINE void trace_put_region(M *m, G *gp, const char *text, int begins);

#define TRACE_(...)                                          \
    do {                                                     \
        if (unlikely(load_rlx(&trace_on) != 0)) __VA_ARGS__; \
    } while (0)
#define TRACE1_(name, a, ...) \
    do {                      \
        PROBE1(name, a);      \
        TRACE_(__VA_ARGS__);  \
    } while (0)
#define TRACE2_(name, a, b, ...) \
    do {                         \
        PROBE2(name, a, b);      \
        TRACE_(__VA_ARGS__);     \
    } while (0)
/* With a name each is a USDT probe too (probe.h), with the arguments that follow the name. */
#define trace_create(m, gp) TRACE2_(create, (gp)->id, (gp)->fn, trace_put_create((m), (gp)))
#define trace_start(m, gp) TRACE1_(start, (gp)->id, trace_put_start((m), (gp), false))
/* Right behind the event by which another goroutine left m: at the same moment. */
#define trace_start_direct(m, gp) TRACE1_(start, (gp)->id, trace_put_start((m), (gp), true))
#define trace_block(m, gp, reason) \
    TRACE2_(block, (gp)->id, (reason), trace_put_block((m), (gp), (reason)))
#define trace_ready(m, gp) TRACE1_(ready, (gp)->id, trace_put_ready((m), (gp)))
#define trace_yield(m, gp) TRACE1_(yield, (gp)->id, trace_put((m), EV_YIELD, (gp)->id, 0))
#define trace_end(m, gp) TRACE1_(end, (gp)->id, trace_put((m), EV_END, (gp)->id, 0))
#define trace_preempt(m, gp) TRACE1_(preempt, (gp)->id, trace_put((m), EV_PREEMPT, (gp)->id, 0))
#define trace_syscall(m, gp) \
    TRACE1_(syscall_enter, (gp)->id, trace_put((m), EV_SYSCALL, (gp)->id, 0))
#define trace_sysexit(m, gp) \
    TRACE1_(syscall_exit, (gp)->id, trace_put((m), EV_SYSEXIT, (gp)->id, 0))
#define trace_resume(m, gp) TRACE_(trace_put_resume((m), (gp)))
#define trace_handoff(m, pp) TRACE1_(handoff, (pp)->id, trace_put((m), EV_HANDOFF, (pp)->id, 0))
#define trace_steal(m, victim, n) \
    TRACE2_(steal, (victim)->id, (n), trace_put((m), EV_STEAL, (n), 0))
#define trace_poll(m, n) TRACE1_(poll, (n), trace_put((m), EV_POLL, (n), 0))
#define trace_timer(m) TRACE_(trace_put((m), EV_TIMER, 0, 0))
#define trace_stw(m, on) TRACE1_(stop_world, (on), trace_put((m), EV_WORLD, 0, (on)))
#define trace_region(m, gp, text, on) TRACE_(trace_put_region((m), (gp), (text), (on)))

/* ---- for the writer -------------------------------------------------------------------------- */

typedef struct TraceSource {
    const TraceEvent *(*next)(struct TraceSource *s); /* in the order of time; NULL: no more */
    double ns_per_tick;
    uint64_t first_tick, last_tick; /* the last: now */
    uint64_t dropped;
    uint64_t most; /* bytes of the file */
    const struct TraceForm *form;
    bool flight;
} TraceSource;

/* Into fd, in the source's form: 0, -errno (trace_write.c). */
int trace_write(int fd, TraceSource *s);

#endif
