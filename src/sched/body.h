/* Goroutines that are threads to libc: gort_attr.thread. See body.c. */
#ifndef BODY_H
#define BODY_H

#include "mem/stack.h"

#include <signal.h>

typedef struct Body Body;
#define BODY_TIDS (1 << 23) /* numbers of bodies begin here; of threads they end before 2^22 */

/* The home of a goroutine with a body: soft, and never found. It keeps the goroutine off the short
 * ways, so that it comes and goes through g0 only, where execute (sched.c) knows it. */
extern M body_home;

/* In a section of gp's thread, or with gp in hand. */
INLINE bool has_body(const G *gp) { return gp->stack && gp->stack->custom == STACK_BODY; }
/* gp's home while no thread is bound to it. */
INLINE M *home_anywhere(const G *gp) { return has_body(gp) ? &body_home : NULL; }

/* What signals ask of a goroutine with a body, where a whole program's threads are such
 * (threads/signals.c); else all of it is 0. */
typedef struct BodySignals {
    /* own thread, or gp in hand: the mask of the kernel thread that wears it, with SIGKILL's bit;
     * 0: whatever that one has */
    uint64_t mask;
    M *worn;            /* atomic: by this one, a hint while it is not; see body_wear */
    uint32_t attention; /* atomic: it is to look after its signals */
    bool alone;         /* own thread: to the hook it is a thread that runs no goroutine */
} BodySignals;

/* With what signals do, above. In a handler of the preemption signal. m's goroutine is outside of
 * the runtime, or not: true: the signals that now wait for the thread come at the handler's end. */
typedef bool body_nudged_fn(M *m, void *context, bool outside);
/* A section of m's goroutine has ended, with ATTN_SIGNAL. */
typedef void body_attends_fn(M *m);
/* In its handler, on a kernel thread that runs nothing of the program's: one of the program's, for
 * any thread. */
typedef void body_passed_fn(const siginfo_t *info);
extern body_nudged_fn *body_nudged;
extern body_attends_fn *body_attends;
extern body_passed_fn *body_passed;
void body_attach(body_nudged_fn *nudged, body_attends_fn *attends, body_passed_fn *passed);
/* gp itself: from now on *cause, where it is not 0, ends its waits (ender.h). */
BodySignals *body_signals(G *gp, const int32_t *cause, uint64_t mask);
/* A handler, also for the signals that libc keeps for itself. Returns the former; NULL: refused. */
typedef void body_handler(int, siginfo_t *, void *);
body_handler *body_sigaction(int signo, body_handler *handler);
void body_interrupt(M *m, G *gp); /* in a section of m: *cause is set, and gp's wait ends */
void body_nudge(M *m);            /* anywhere: m's thread takes the preemption signal, and looks */
void body_alone(G *gp, bool yes); /* gp itself */

/* A stack with a body on it for one goroutine; what the kernel says in *error, or -ENOTSUP, if
 * NULL. The program's context: it calls libc. */
Stack *body_take(size_t size, int *error);
void body_untake(Stack *s);   /* its goroutine does not begin */
void *body_context(Stack *s); /* where it begins */
/* main's thread, in the program's context. It goes on as a goroutine, with 0: of a runtime that
 * host() starts, which does not return, with *stack for goroutine 1. The record of that stack is
 * in `room` (BODY_ROOM bytes, aligned as a cache line), above the caller's frames; the stack ends
 * at lo. An error: nothing is different. */
int body_lead(void *room, char *lo, void (*host)(void), Stack **stack);
NORETURN void body_lead_back(Stack *s, int error); /* host(): body_lead is to return the error */
#define BODY_ROOM 1024
void body_forked(char *was); /* in a child of fork: was: the thread pointer of the forker's M */
/* On g0: the thread takes gp's thread pointer on, and its own again. */
void body_wear(M *m, G *gp);
void body_doff(M *m, G *gp);
/* gp's CPU time in ns, counted since the first call with NULL. */
int64_t body_cpu(G *gp);
int body_tid(G *gp);   /* its number, by which locks know it */
int body_anew(G *gp);  /* gp itself, which goes on as another thread: the number of that */
void body_over(G *gp); /* gp itself, which goes on: robust mutexes that it holds have no owner */
NORETURN void body_exit(G *gp); /* gp's function is left: as if it had returned */
/* In a section. The goroutine is gone: libc ends the thread. lost: by the end of a runtime. */
void body_release(Stack *s, bool lost);
void bodies_settle(void); /* the runtime has ended: libc has ended its threads, as far as it can */
void bodies_forget(void); /* a child that may use gort: it has none of the parent's */

#endif
