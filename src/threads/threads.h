/*
 * A whole program's threads as goroutines, from inside. On with GORT_THREADS=1.
 *
 * Each thread that the program starts is a goroutine that is one to libc (sched/body.c): its
 * pthread_self, variables, errno and values under keys are its own, and need nothing here. What is
 * left is what libc does by the number of a kernel thread, or with its stack of its own making:
 * begin, join, detach, exit, names, scheduling.
 *
 * A goroutine with a body costs 50 us to make, since libc makes it. So it lives more than once: a
 * Thread is such a goroutine, and between two lives it waits, a spare one (thread.c).
 */
#ifndef THREADS_H
#define THREADS_H

#include "hook/hook_internal.h"

#define PAGE_MASK ((size_t)4095)
#define NAME_BYTES 16 /* with the NUL, as the kernel has it */

/* What a thread is to tell the kernel of itself before it goes on (scheduling.c). */
typedef struct Will {
    bool cpus_set, nice_set, policy_set;
    int nice, policy, priority;
    unsigned char cpus[1024];
} Will;

typedef struct Thread Thread;

/* Signals that wait for a thread, or for the process. */
typedef struct SignalQueue {
    uint64_t set;
    struct Signal *first, *last;
} SignalQueue;

/* signals.h. Where nothing else is said: the thread's own. */
typedef struct ThreadSignals {
    BodySignals *body;
    int32_t cause;    /* atomic: 0, or -EINTR: waits end, there is something to look after */
    uint32_t calls;   /* 1: in a call that waits; what comes is deferred to its end */
    uint32_t handled; /* how often a handler ran */
    bool breaks;      /* one without SA_RESTART has */
    int ended;        /* by a handler: a call that was made as it is. How: signals.c */
    uint64_t sent;    /* to itself, and has not come yet */
    uint64_t refused; /* the kernel has no room for these: a nudge's handler takes them */
    /* sigs.lock: */
    bool listed;
    uint64_t mask;  /* what it blocks, the kept ones included */
    uint64_t waits; /* for these, in sigwait */
    SignalQueue queue;
    Thread *next, *prev;
    uint32_t owed;   /* atomic: the monitor is to wake it */
    uint32_t wakers; /* atomic: who is about to wake it, so that it does not end */
    /* cancel.c: */
    uint32_t cancelled; /* atomic: pthread_cancel was called */
    uint32_t shut;      /* atomic: PTHREAD_CANCEL_DISABLE */
    uint32_t point;     /* atomic: in a call that is a cancellation point */
    uint32_t async;     /* atomic: PTHREAD_CANCEL_ASYNCHRONOUS: every wait is one */
    bool noted;         /* libc knows */
} ThreadSignals;

struct Thread {
    pthread_t id;
    int tid; /* by which locks know it; what gettid says */
    G *gp;
    size_t stack_size; /* that was asked for */
    gort_sem begin;    /* a life is there, or the order to end */
    gort_sem born;     /* id, tid and gp are there */
    gort_sem over;     /* this life has ended, and waits for its joiner */

    ThreadSignals sig;

    /* one life: */
    uint64_t first_mask; /* its creator's, with the next */
    ArchFp fp;
    void *(*fn)(void *);
    void *arg, *result;
    bool left;     /* by pthread_exit or cancellation */
    bool spent;    /* this was the goroutine's last life */
    int *cleared;  /* becomes 0 at its end, and who waits for that wakes; at first `tid`, stays */
    int *refused;  /* to its maker, by `born`: what has become of its will */
    size_t guard;  /* that was asked for */
    int64_t began; /* scheduling.c: `time` and the body's CPU time then */
    int64_t cpu_before;
    /* threads.lock: */
    char name[NAME_BYTES];
    bool named; /* by itself or another thread, not by its maker's name */
    int kernel; /* the kernel thread that is bound to it; 0: none. It writes */
    Will *will; /* NULL: none */
    int64_t cpu_shown;
    uint32_t state;         /* THREAD_... */
    bool detached, awaited; /* somebody joins it */
    Thread *next;           /* in its bucket */
    Thread *spare;          /* next in the list of spare ones */
};
enum { THREAD_SPARE, THREAD_LIVES, THREAD_ENDED };

#define THREAD_BUCKETS 4096
typedef struct Threads {
    bool on;                   /* the program's threads are goroutines */
    void *room;                /* asked for, and none was made so far: for main's stack record */
    bool simulated;            /* and run by a seed */
    uintptr_t core, core_size; /* where libgort.so is */
    size_t stack_size, guard;  /* of a thread that does not say */
    uint64_t first_mask;       /* main's */
    bool masked;               /* one that does not say begins with `mask`, not with its maker's */
    uint64_t mask;
    uint32_t live; /* atomic: lives, and threads that are libc's; from the first on main's, too */
    int process;   /* whose these are: a child of fork has none of its parent's */
    Lock lock;
    /* lock: */
    uint32_t spares;
    Thread *spare;
    Thread *buckets[THREAD_BUCKETS];
} Threads;
extern Threads threads;
extern Thread first_thread; /* main's */

/* The caller is the runtime, which makes threads of its own. */
#define called_by_core() \
    unlikely((uintptr_t)__builtin_return_address(0) - threads.core < threads.core_size)
/* In a hooked function: the program's threads are goroutines, here and now. */
#define as_goroutines() (unlikely(threads.on) && !called_by_core() && !hook_in_child())

/* In a hooked clock (clock.c): it is a simulation's. False: libc's. */
#define simulated() (unlikely(threads.simulated) && !called_by_core() && !hook_in_child())
bool clock_virtual(clockid_t clock, struct timespec *at);

bool threads_begin(void); /* start.c */
/* Likewise; a first thread is to be made. */
#define makes_goroutines() \
    (as_goroutines() || (unlikely(threads.room != NULL) && !called_by_core() && threads_begin()))

/* The program's threads are goroutines, or will be once main begins. Any time, also in a library's
 * constructor. */
bool threads_asked_for(void);
/* The caller's; NULL: a thread of libc's. */
Thread *thread_me(void);
/* Both with threads.lock, between the first two. */
M *threads_lock(void);
void threads_unlock(M *m);
Thread *thread_find(pthread_t id); /* one that lives, or has ended unjoined; NULL: not ours */

Thread *thread_by_tid(int tid); /* likewise, that lives */
/* Threads that are libc's: real.c. */
bool asks_for_real(const pthread_attr_t *attr, void *(*fn)(void *));
bool is_real_name(const char *name);
int real_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
/* names.c: a life has another name, or begins with its maker's, or ends. */
void name_inherited(Thread *t);
void name_shown(Thread *t, const char *name);
bool prctl_binds(int option); /* it changes what a kernel thread has */
/* A life: the word that the kernel would clear at its end. */
void tid_word_is(Thread *t, int *word);
void tid_word_cleared(Thread *t);
/* attributes.c */
void defaults_noted(void);
size_t guard_extra(size_t guard); /* of a stack, beyond the guard that each has */
void guard_change(Thread *t, bool on);
/* scheduling.c: the thread's own. bind: a kernel thread of its own from now on, until it ends;
 * true: it had none. */
bool thread_bind(Thread *t);
Will *will_of(const pthread_attr_t *attr, int *error); /* of one to be made. NULL: none */
int will_done(Thread *t);                              /* 0 or an error number */
void cpu_begins(Thread *t);
bool is_own_clock(const Thread *t, clockid_t clock); /* of its CPU time */
/* syscall(2), with a number that means the kernel's thread. True: *r is its result or -errno. */
bool thread_syscall(long number, long a, long b, long c, long *r);
bool signals_syscall(long number, long a, long b, long c, long *r); /* signals.c: likewise */

/* 0 or an error number; the hooked functions without their tests. */
int life_begin(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg,
               const void *caller);
/* False: not ours. */
bool thread_join(pthread_t id, void **value, int64_t deadline, int *r);
void lives_begin(void);  /* before the first: main's */
void life_counted(void); /* one has ended */
/* main's thread: before any other; its function, and its end by pthread_exit, which is libc's where
 * no thread was made; it is a goroutine now. */
void thread_is_first(void);
int thread_first(int (*fn)(int, char **, char **), int argc, char **argv, char **env);
void thread_first_begins(void);

#endif
