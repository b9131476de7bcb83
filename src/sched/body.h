/* Goroutines that are threads to libc: gort_attr.thread. See body.c. */
#ifndef BODY_H
#define BODY_H

#include "mem/stack.h"

typedef struct Body Body;

/* The home of a goroutine with a body: soft, and never found. It keeps the goroutine off the short
 * ways, so that it comes and goes through g0 only, where execute (sched.c) knows it. */
extern M body_home;

/* In a section of gp's thread, or with gp in hand. */
INLINE bool has_body(const G *gp) { return gp->stack && gp->stack->custom == STACK_BODY; }
/* gp's home while no thread is bound to it. */
INLINE M *home_anywhere(const G *gp) { return has_body(gp) ? &body_home : NULL; }

/* A stack with a body on it for one goroutine; what the kernel says in *error, or -ENOTSUP, if
 * NULL. The program's context: it calls libc. */
Stack *body_take(size_t size, int *error);
void body_untake(Stack *s);   /* its goroutine does not begin */
void *body_context(Stack *s); /* where it begins */
/* The calling thread, in its program's context: the kernel thread goes on in host(), which does not
 * return, as another thread to libc; *first is a stack for one goroutine, which is the caller's
 * thread to libc. Returns only an error. */
int body_lead(size_t size, void (*host)(void), Stack **first);
/* On g0: the thread takes gp's thread pointer on, and its own again. */
void body_wear(M *m, G *gp);
void body_doff(M *m, G *gp);
int body_tid(G *gp);   /* its number, by which locks know it */
void body_over(G *gp); /* gp itself, which goes on: robust mutexes that it holds have no owner */
NORETURN void body_exit(G *gp); /* gp's function is left: as if it had returned */
/* In a section. The goroutine is gone: libc ends the thread. lost: by the end of a runtime. */
void body_release(Stack *s, bool lost);
void bodies_settle(void); /* the runtime has ended: libc has ended its threads, as far as it can */
void bodies_forget(void); /* a child that may use gort: it has none of the parent's */

#endif
