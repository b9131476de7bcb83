/* Timers: a 4-ary heap per P. See timer.c. */
#ifndef TIMER_H
#define TIMER_H

#include "runtime.h"

/* Called on an M with a P, in a section, with no lock held; may ready(), go_start() or send without
 * blocking, must not park. `seq`: as the timer had it when it fired. */
typedef void timer_fn(M *m, void *arg, uint32_t seq);

/* May live on a stack: see timer.c. All fields belong to the heap while armed. */
struct Timer {
    int64_t when;
    timer_fn *fn;
    void *arg;
    uint32_t seq;
    uint32_t slot;   /* heap.lock: its slot; UINT32_MAX: it is in the chain */
    Timer *next;     /* heap.lock: the next of the chain */
    TimerHeap *heap; /* atomic; changes under the lock of the heap it names; NULL: not armed */
    /* called when the runtime has ended and t is off its heap; NULL: t goes with its stack */
    void (*forget)(Timer *t);
};

/* Arms t on the heap of m's P (of the first P where m has none). 0; -ENOTCONN: no runtime. Never
 * fails for want of memory. In a section; takes RANK_TIMERS. */
int timer_add(M *m, Timer *t);
/* True: t was armed and is not any more. False: it has fired (its function runs or has run). */
bool timer_del(Timer *t);

/* Arms t on a heap of the caller's, which is prepared. h->lock. True: it is the earliest. */
bool timer_insert(TimerHeap *h, Timer *t);

/* ---- for the scheduler ---- */
/* Takes the earliest due timer off h: its function and arguments. False: none is due. */
bool timer_take(TimerHeap *h, int64_t now, timer_fn **fn, void **arg, uint32_t *seq);
bool timers_prepare(TimerHeap *h); /* before h's first timer, once; false: no memory */
int64_t timers_first(void);        /* earliest of all heaps; GORT_FOREVER */
void timers_move(TimerHeap *to, TimerHeap *from);
void timers_clear(TimerHeap *h); /* the runtime has ended: forgets all timers of h */

#endif
