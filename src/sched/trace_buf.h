/*
 * Buffers of the tracer, for recording (trace.c), sessions (trace_session.c), trace_read.c.
 *
 * A record is one word, and for some kinds a few more behind it:
 *
 *     bits  0-5   kind
 *     bits  6-11  x
 *     bits 12-31  ticks since the record before it; if they do not fit, EV_CLOCK comes first
 *     bits 32-63  the lower half of the goroutine's id, or the figure the event is about
 *
 * What seldom changes (the P, the upper half of ids, the thread) has records of its own. The head
 * of a chunk says all of it, so that a chunk can be read without those before it.
 */
#ifndef TRACE_BUF_H
#define TRACE_BUF_H

#include "os/ownfd.h"
#include "sched/trace.h"

#define CHUNK 4096 /* words of a chunk, its head included */
#define LONGEST 16 /* words that an event takes at most, with the records before it */
#define TICK_BITS 20
#define SHORT 2048     /* ticks, about a microsecond: intervals below it count as short */
#define IN_MEMORY 8192 /* chunks (256 MB) that are spilled to memory; further ones to the disk */

typedef struct TraceChunk {
    uint32_t buffer; /* index of the buffer, for the reader */
    uint32_t words;  /* in use, the head included; 0 until the chunk is full */
    uint64_t stamp;  /* the reading before the first record */
    uint32_t high;   /* upper half of the ids */
    uint32_t thread; /* id of the M */
    uint32_t p;
    uint32_t number; /* among those of its buffer: later ones have higher numbers */
    uint64_t word[CHUNK - 4];
} TraceChunk;
_Static_assert(sizeof(TraceChunk) == CHUNK * 8, "a chunk is a whole number of pages");

typedef struct TraceBuf {
    /* The owner's; the stopper reads `at` and `session`. */
    uint64_t *at;    /* atomic: where the next record goes */
    uint64_t *limit; /* an event that begins here or later needs a new chunk */
    uint64_t last;   /* the last reading of the clock */
    P *p;            /* as last recorded */
    uint32_t high;
    uint32_t session; /* atomic: the session its records belong to */
    uint8_t kind;     /* of the last event */
    uint32_t quick;   /* short intervals between readings, in a row */
    uint32_t busy;    /* atomic: a chunk is being finished */
    uint32_t index;   /* of this buffer, for the reader */
    uint32_t thread;  /* id of the M that last wrote */
    uint32_t number;  /* atomic: of the chunk; odd while one gives way to the next */
    uint64_t used;    /* 1: the chunk is begun; 0: what it holds is spilled */
    uint64_t dropped;
    M *owner;
    struct TraceBuf *all;
    TraceChunk chunk;
} TraceBuf;

/* Where the flight recorder puts full chunks of all threads: a ring in the order of their ends. The
 * oldest is forgotten when it is older than what is to be kept, or where there is no more room;
 * till then the ring grows. */
typedef struct FlightSlot {
    int64_t when;  /* ns: the chunk came */
    uint64_t last; /* the reading of its last record */
    uint32_t next;
} FlightSlot;
typedef struct FlightRing {
    Lock lock;
    uint32_t size; /* places there are; 0: no memory, chunks are lost */
    uint32_t held; /* places in use, the first ones; [newest].next is the oldest */
    uint32_t newest;
    int64_t keep;       /* ns */
    uint64_t forgotten; /* all records later than that are there */
    uint64_t gone;      /* atomic: how many chunks are forgotten */
    bool short_of;      /* chunks were forgotten before their time */
    FlightSlot *slot;
    TraceChunk *chunk;
} FlightRing;

enum { IDLE, STARTING, ON, STOPPING }; /* STOPPING: with the thread's id above these bits */
#define STATE_BITS 2
#define STATE_MASK 3u

extern struct Tracing {
    uint32_t state;   /* atomic: a trace into a file */
    uint32_t session; /* number of the last one */
    bool flight;      /* the session is the flight recorder's */
    uint32_t buffers; /* atomic: how many there are */
    TraceBuf *all;    /* atomic, push only */
    TraceBuf *shared; /* shared_lock: threads without an M */
    Lock shared_lock;
    FlightRing ring; /* behind shared_lock, which is held while ring.lock is taken */
    bool ticks;
    bool named;                   /* the file has a name: it is written whatever ends the program */
    const struct TraceForm *form; /* what it is told as */
    OwnFd file;                   /* what is written */
    OwnFd spill[2];               /* memory, disk */
    bool lost;        /* atomic: the program has closed one of them, and events were lost */
    uint64_t spilled; /* atomic: chunks handed out in the spill files */
    uint64_t limit;   /* so many are recorded; then the trace is full */
    bool full;        /* atomic: recording has ended by that */
    uint64_t tick0;
    int64_t ns0;
    char flight_path[64];
} tracing;

/* The spill file that chunk n is in, and its place there. */
INLINE int spill_of(uint64_t n, uint64_t *place) {
    *place = n < IN_MEMORY ? n : n - IN_MEMORY;
    return n < IN_MEMORY ? 0 : 1;
}

uint64_t trace_stamp(void);
/* Around a write of the tracer's own. A file that would grow past the process's limit is an answer,
 * -EFBIG, and no SIGXFSZ that ends the program. begin returns the signal mask. */
uint64_t trace_quiet_begin(void);
void trace_quiet_end(uint64_t mask, long result);
/* A goroutine that was there before the trace began: its function, status and name. */
void trace_put_existing(M *m, G *gp);
/* Writes what the buffers and the spill files hold of a session, in the tracing's form. keep_ns:
 * only the last so many ns; 0: all. No thread records any more. 0, -errno. Allocates with mmap
 * only. *held: the ns that are written. */
int trace_write_out(int fd, uint32_t session, bool flight, int64_t keep_ns, int64_t *held);

#endif
