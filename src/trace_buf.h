/*
 * Buffers of the tracer, shared by recording (trace.c) and reading (trace_read.c).
 */
#ifndef TRACE_BUF_H
#define TRACE_BUF_H

#include "trace.h"

#define SPILL 2048         /* events in a chunk of the spill file; the first is its head */
#define KEPT (SPILL * 4)   /* events a buffer of the flight recorder holds */

enum { OFF, TO_FILE, FLIGHT };
enum { IDLE, STARTING, ON, STOPPING };

typedef struct TraceBuf {
    uint32_t busy;       /* atomic: an event is being written */
    uint32_t index;      /* of this buffer, for the reader */
    uint64_t n;          /* events in it; flight: ever written */
    uint64_t dropped;
    M *owner;
    struct TraceBuf *all;
    TraceEvent ev[KEPT];
} TraceBuf;

extern struct Tracing {
    uint32_t state;      /* atomic */
    uint32_t buffers;    /* atomic: how many there are */
    TraceBuf *all;       /* atomic, push only */
    TraceBuf *shared;    /* shared_lock: threads without an M */
    Lock shared_lock;
    bool fences;         /* no membarrier: every event pays for a fence */
    bool ticks;
    int file, spill;
    uint64_t spilled;    /* atomic: chunks handed out in the spill file */
    uint64_t tick0;
    int64_t ns0;
    char flight_path[64];
} tracing;

uint64_t trace_stamp(void);
/* Writes what the buffers and the spill file hold as JSON. keep_ns: only the last so many; 0: all.
 * Nobody records any more. 0, -errno. Allocates with mmap only. */
int trace_write_out(int fd, bool flight, int64_t keep_ns);

#endif
