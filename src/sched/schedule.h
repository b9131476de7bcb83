/* The scheduling loop as threads see it, and what its rooms share. See sched.c and find.c. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "runtime.h"

void schedule_loop(M *m);              /* on g0, until the M is to end */
G *find_runnable(M *m);                /* on g0 with a P; NULL: the P is gone */
Stack *stack_get_with_room(M *m);      /* stack_get, from a compact stack, too */
void unlock_and_wake(M *m, void *arg); /* a commit: sched.lock, with a G queued under it */
void goroutine_entry(void *arg);
void goroutine_goes_on(void);   /* body.c: behind the first switch to a stack that has frames */
void goroutine_with_body(void); /* body.c: its function, and its end, which saves the context */
void end_with_body(void **save);
NORETURN void leave_for_good(M *m, commit_fn *commit, void *arg); /* the G ends here */
M *switch_to_g0(M *m, G *gp, commit_fn *commit, void *arg, Lock *l);
void tsan_visit(void *fiber); /* what happened there, happened before */
void go_abandon(M *m, G *gp); /* the runtime has ended: gives record and stack back */
bool work_waits(P *p);        /* a hint: there is work for this P */
int64_t run_timers(M *m, TimerHeap *h, bool *ran);

#endif
