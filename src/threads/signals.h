/* Signals of threads that are goroutines: sigmask.c, signals.c, sigwait.c, cancel.c. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include "threads/threads.h"

#define SIGBIT(signo) ((uint64_t)1 << ((signo)-1))
#define SIGCANCEL 32 /* glibc's, with the next: they are in no mask */
#define SIGSETXID 33
/* Open in a call of libc's that may wait: setuid(2) and its like wait, with locks of libc's, until
 * each thread has taken the second. */
#define LIBCS_SIGNALS (SIGBIT(SIGCANCEL) | SIGBIT(SIGSETXID))
#define LOWEST(set) (__builtin_ctzll(set) + 1)

/* One that waits, from a pool: signals come where there is no malloc. */
typedef struct Signal {
    struct Signal *next;
    bool shared; /* it came to the process */
    siginfo_t info;
} Signal;

typedef struct Sigs {
    uint32_t lock;    /* taken with all signals blocked: handlers take it, too */
    uint64_t kept;    /* constant: never blocked in the kernel: the runtime's own, and libc's */
    int preempts;     /* constant: the one of them that preempts */
    int catcher;      /* atomic: the number of its kernel thread */
    uint64_t fetches; /* atomic: what it waits for */
    uint32_t rounds;  /* atomic: of it */
    uint64_t catches; /* atomic: what that blocks at least */
    /* lock: */
    Thread *first, *last;   /* that live: main first */
    uint32_t open[NSIG];    /* how many of them do not block it */
    uint32_t awaited[NSIG]; /* how many wait for it in sigwait */
    uint64_t closed;        /* blocked by all; atomic, read without the lock */
    uint64_t waited;        /* with awaited > 0 */
    SignalQueue process;    /* came, and nobody wanted it */
} Sigs;
extern Sigs sigs;

/* ---- sigmask.c ------------------------------------------------------------------------------- */

/* Anywhere, in handlers too; calls nothing that waits. Returns the mask to go back to. */
uint64_t sigs_lock(void);
void sigs_unlock(uint64_t mask);
#define ALL_SIGNALS (~(uint64_t)0)
/* The kernel's mask of the calling kernel thread. Returns the former. */
uint64_t kernel_mask(uint64_t mask);
INLINE uint64_t kernel_part(uint64_t mask) { return mask & ~sigs.kept; }
/* sigs.lock: t blocks these from here on. True: a signal is blocked by all now, and the caller
 * calls masks_settle when it has no lock. */
bool mask_note_locked(Thread *t, uint64_t mask);
void masks_settle(void);
/* The caller's thread, with what it lets through delivered. */
void mask_set(Thread *t, uint64_t mask);
uint64_t mask_exchange(Thread *t, const sigset_t *set); /* likewise; the former */

/* ---- signals.c ------------------------------------------------------------------------------- */

/* The caller's. NULL: no thread of ours, or one that begins, and has not said so yet
 * (signals_ready): the runtime may read the clock meanwhile, which another preloaded library may
 * stand before. */
Thread *signals_me(void);
void signals_start(void);      /* before main is a thread */
void signals_ready(Thread *t); /* t itself, once: it blocks everything */
/* sigs.lock: the first in q that is in the set; 0: none. */
int signal_take_locked(SignalQueue *q, uint64_t set, siginfo_t *info);
/* sigs.lock. shared: it came to the process. False: no room. */
bool signal_add_locked(SignalQueue *q, const siginfo_t *info, bool shared);
/* sigs.lock: t's cause, as its signals are now. True: it is to look after them (thread_wake). */
bool cause_locked(Thread *t);
/* t has something to look after. m: the caller's section; NULL: it has none, a handler perhaps. */
void thread_wake(Thread *t, M *m);
/* A signal to the process, taken off the kernel: gives it to a thread. Anywhere. */
void signal_route(const siginfo_t *info);
/* As it is handed over: true: a thread has sent it to itself, which is for that thread. */
bool signal_unmark(siginfo_t *info);
/* On the caller's stack, outside: handlers run; cancellation may unwind. */
void signals_deliver(Thread *t);
/* What t has got for the process and does not take: to others. */
void signals_give_back(Thread *t);
/* Before a life: nothing of the last one is left. */
void signals_clear(Thread *t);
/* t's life begins with this mask, and ends. */
void signals_begin(Thread *t, uint64_t mask);
void signals_end(Thread *t);

/* ---- sigwait.c ------------------------------------------------------------------------------- */

bool catcher_here(void);
void catcher_start(void);
void catcher_settle(uint64_t set);
void catcher_cancel(void); /* marks it: it goes on */
void catcher_nudge(void);  /* the sets have changed */

/* ---- timers.c -------------------------------------------------------------------------------- */

/* It is by a timer for one thread: *t: which; NULL: it is nobody's. */
bool timer_thread(const siginfo_t *info, Thread **t);
/* sigs.lock. */
bool timer_thread_locked(const siginfo_t *info, Thread **t);
/* One of this timer waits there already. */
bool timer_overruns_locked(SignalQueue *q, const siginfo_t *info);
void timer_taken(const siginfo_t *info); /* any signal: its thread's handler or sigwait has it */
void timers_end_locked(Thread *t);

/* ---- cancel.c -------------------------------------------------------------------------------- */

/* sigs' attention: t has been cancelled, may be, and libc does not know yet. */
bool cancel_due(Thread *t);
void cancel_raise(void);     /* all signals blocked: libc gets to know when they are not */
void cancel_act(Thread *t);  /* a point */
void cancel_tell(Thread *t); /* libc gets to know now; may not return */
void cancel_begin(Thread *t);
bool cancel_was_noted(Thread *t);

#endif
