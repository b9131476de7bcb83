/*
 * What a trace is told as: the events of the scheduler, after trace_write.c has found out which
 * goroutine runs where. Three forms: Chrome's JSON (trace_write.c), Perfetto's own packets
 * (trace_perfetto.c), and rows for the timeline of the live page (trace_timeline.c). All calls come
 * in the order of time.
 */
#ifndef TRACE_FORM_H
#define TRACE_FORM_H

#include "base/print.h"
#include "sched/trace.h"

typedef struct Task {
    uint64_t id;    /* 0: free */
    uint64_t since; /* start of its slice */
    uint64_t call;  /* start of its blocking call; 0: in none */
    uint64_t on;    /* the thread of that call */
    uint64_t flow;  /* the arrow that ends at its next slice; 0: none */
    uint64_t fn;
    uint64_t name_id;  /* Perfetto: of its interned name; timeline: 1 once told; 0: none yet */
    uint64_t woken;    /* timeline: when it was made ready for its slice; 0: it was not */
    uint64_t waker;    /* timeline: by which goroutine, */
    uint32_t region;   /* the innermost that is open, in w->regions; 0: none */
    bool has_track;    /* Perfetto: for its regions */
    uint16_t p;        /* where it runs; NO_P: it does not */
    uint16_t woken_on; /* timeline: and on which P */
    char name[TRACE_TEXT];
} Task;

/* A region that is open, or a free place. */
typedef struct OpenRegion {
    uint32_t outer; /* the one around it, the next free place; 0: none */
    char name[TRACE_TEXT];
} OpenRegion;

/* JSON: a slice of the scheduler's own, on a track where no goroutine runs. */
typedef struct Scheduling {
    bool open;
    uint64_t until; /* ns: it ends then, or where the next slice of the track begins */
} Scheduling;

typedef struct TraceForm TraceForm;
typedef struct TraceWriter {
    const TraceForm *form;
    void *more; /* the form's */
    Out out;
    TraceSource *source;
    uint64_t now; /* ticks of the current event */
    uint64_t flows, stopped;
    uint64_t seen[MAX_PROCS / 64];
    uint64_t running[MAX_PROCS]; /* goroutine on each P */
    Task *tasks;
    uint64_t capacity, used;
    OpenRegion *regions; /* [0] is none */
    uint32_t nregions, free_region;
    Scheduling scheduling[MAX_PROCS + 1]; /* JSON: of each P; the last: of the runtime */
    uint64_t kinds[EV_KINDS];
    bool comma;
    char buf[32 << 10];
} TraceWriter;

struct TraceForm {
    bool (*begin)(TraceWriter *w);                              /* false: no memory */
    void (*runs)(TraceWriter *w, Task *k, const TraceEvent *e); /* k->flow ends here */
    void (*leaves)(TraceWriter *w, Task *k, const char *end);   /* k->p, at w->now */
    void (*calls)(TraceWriter *w, Task *k, const TraceEvent *e);
    void (*returns)(TraceWriter *w, Task *k, const char *end);
    void (*readied)(TraceWriter *w, Task *k, const TraceEvent *e); /* k->flow begins here */
    void (*created)(TraceWriter *w, Task *k, const TraceEvent *e);
    /* One begins (e->x) or ends. They nest, each ends, at the latest with the goroutine or the
     * trace, and none ends that has not begun. */
    void (*region)(TraceWriter *w, Task *k, const TraceEvent *e);
    void (*instant)(TraceWriter *w, const TraceEvent *e, const char *name, const char *key,
                    uint64_t v);
    void (*world)(TraceWriter *w, const TraceEvent *e);
    void (*finish)(TraceWriter *w);
    void (*free)(TraceWriter *w);
};
extern const TraceForm json_form, perfetto_form, timeline_form;

/* The sums of a whole trace. NULL: no more. */
typedef struct TraceSum {
    const char *name;
    int kind;
} TraceSum;
extern const TraceSum trace_sums[];

/* As trace_write_out (trace_buf.h), of a flight recorder that is on and goes on: of full chunks the
 * newest, `most` bytes. */
int trace_write_live(int fd, uint32_t session, int64_t keep_ns, const TraceForm *form,
                     uint64_t most);

/* The name, or that of its function; NULL: it has none. */
const char *task_name(const Task *k);

#endif
