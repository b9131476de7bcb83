/* What lower floors ask of upper ones: one table. A room calls its own floor and those below it
 * (docs/TOUR.md; tests/script/floors.sh). Where it needs what only a room above has, that room
 * enters a function here: its floor does so in a constructor (debug/floor.c, api/floor.c), before a
 * program can call us. A caller asks whether the function is there: a program may lack a floor. */
#ifndef UPSTAIRS_H
#define UPSTAIRS_H

#include "runtime.h"

/* What the monitor does beside its own work (sysmon.c). All on its thread. */
typedef struct MonitorClient {
    void (*begin)(int64_t now);      /* a runtime begins; may be NULL */
    void (*look)(M *m, int64_t now); /* in every round */
    int64_t (*due)(int64_t now);     /* before a deep sleep: when to look again at the latest */
} MonitorClient;

/* What the floor inspect does for a runtime. The first five: the thread of gort_main, in order. */
typedef struct Inspection {
    void (*begin)(void);   /* before there is any thread of the runtime */
    void (*opened)(void);  /* work is taken */
    void (*started)(void); /* goroutine 1 is queued */
    void (*stopped)(void); /* after opened: no goroutine runs any more */
    void (*end)(void);     /* after begin, also where the start failed */
    void (*fatal)(void);   /* the process ends by a signal or a fatal error; any state */
} Inspection;

enum { MONITOR_CLIENTS = 5 }; /* and a NULL */

typedef struct Upstairs {
    /* mem: fn(arg) on a stack with room for large frames (split.c); NULL: every stack has */
    long (*with_room)(M *m, long (*fn)(void *), void *arg);
    /* sched: an exception, or a forced unwinding, passes a guarded call of gp's (goexit.h) */
    void (*unwound)(G *gp);
    /* sched: a goroutine was asked to give way and is in a prologue (preempt.c) */
    void (*in_prologue)(M *m);
    /* sync: the functions of goroutines that call the program's (goexit.h) */
    gort_fn *wg_member, *group_member;
    /* sync: a deadline that needs no runtime is to come (clock.c) */
    bool (*clock_armed)(void);
    /* sync: in a child that may use gort: forgets the parent's other threads (forkgate.c) */
    void (*fork_child)(void);
    /* sched: such a child, made by _Fork or a bare clone, makes its first call (forkgate.c) */
    void (*bare_child)(void);
    /* sync: gp, which will never run again, waits: takes it off the object it waits for */
    void (*undo_wait)(G *gp);
    /* sync: gp, which uses a context, ends (ctx.c). In a section */
    void (*use_ends)(G *gp);
    /* debug: the process ends: every goroutine, from the frame that returns to `from`; the trace */
    void (*last_words)(uintptr_t from);
    /* debug: m's goroutine holds p beyond its slice, and others wait (stall.c) */
    void (*overrun)(P *p, M *m, int64_t now);
    /* inspect: NULL where it is not linked (libgort-lean.a) */
    const Inspection *inspection;
    /* inspect: gp is made ready while a profile of waits is taken, or a trace (blockprof.c) */
    void (*waited)(M *m, G *gp, uintptr_t pc);
    /* hook: the mutex of the program's that gp waits for, and the number of the thread that holds
     * it; NULL: it waits for another thing. Nothing moves (deadlock.c) */
    const void *(*mutex_of)(G *gp, int *holder);
    /* api: a child of fork, before it is one: the hook's values go to the thread */
    void (*forked)(void);
    /* gc: memory that a collector looks into; its threads; a thread of ours begins and ends */
    void *(*collect_alloc)(size_t size);
    bool (*collect_free)(void *at);
    int (*collect_threads)(void);
    void (*collect_thread_begin)(M *m), (*collect_thread_end)(M *m);
    const MonitorClient *clients[MONITOR_CLIENTS]; /* in order; the first NULL ends them */
} Upstairs;
extern Upstairs upstairs;

extern bool body_leads;          /* body_lead has: the program's threads are goroutines */
extern bool collect_on;          /* set by the first gort_main of a program with the collector */
extern uint32_t collect_stopped; /* atomic: a collection has stopped the threads */

/* Adds a client. In a constructor. */
INLINE void monitor_serves(const MonitorClient *client) {
    for (int i = 0; i < MONITOR_CLIENTS; i++)
        if (upstairs.clients[i] == NULL) {
            upstairs.clients[i] = client;
            return;
        }
    __builtin_trap();
}

#endif
