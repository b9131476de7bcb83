/* Preemption that keeps the thread. See preempt.c. */
#ifndef PREEMPT_H
#define PREEMPT_H

#include "runtime.h"

int preempt_install(void);            /* the handler, at every start of a runtime */
void preempt_uninstall(bool awaited); /* awaited: a thread has yet to take the signal, it stays */
void preempt_unmask(void);            /* this thread: the mask of gort_main's caller, less ours */
void preempt_mask(void);
void preempt_unblock(void); /* this thread unblocks the preemption signal, and no other */
/* m's G is in a prologue (split.c); m->locks is 1. May stop the thread, as the signal would. */
void preempt_in_prologue(M *m);
/* Likewise, where a call of libc has returned into the trap (inlibc.c); outside of a section. */
void preempt_after_libc(M *m);
void preempt_mend_call(M *m, void *context); /* any thread, in a handler, before anything else */
/* In a handler: a call that the kernel would make again ends with EINTR, if it may wait. */
void preempt_end_call(void *context);
void preempt_m(M *m); /* asks m's goroutine to yield: flag, and signal if the thread runs */
/* The hook's. sigaction(2) as the program sees it: the runtime's handler stays, the program's is
 * noted and passed what is not ours. keeps: it is about that number. use: libc's own function. */
struct sigaction;
int preempt_sigaction(int signo, const struct sigaction *act, struct sigaction *old);
bool preempt_keeps(int signo);
void preempt_use_sigaction(int (*libc)(int, const struct sigaction *, struct sigaction *));

#endif
