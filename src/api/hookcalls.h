/* What libgort-hook.so (src/hook/) needs of the core. Not for programs: the two are built together,
 * and the hook refuses a core of another shape. */
#ifndef HOOKCALLS_H
#define HOOKCALLS_H

#include "api/hookio.h"
#include "sched/body.h"
#include "sched/netpoll.h"
#include "sched/outside.h"
#include "sched/preempt.h"
#include "sched/sched.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <sys/syscall.h>

/* How a number that the runtime knows is closed: with the runtime's locks; behind its back, in a
 * handler that may have interrupted it; or in a child, whose descriptors are its own. */
enum { CLOSE_NOW, CLOSE_BEHIND, CLOSE_CHILD };

typedef struct HookCore {
    size_t size, size_m, size_g; /* of this struct, M and G: equal on both sides */

    /* The hook's one test: tls_runner's distance from the thread pointer, equal in all threads. */
    long tls_runner;
    long tls_vforks;                /* likewise: not 0 in a child of vfork */
    bool (*in_child)(void);         /* fork.c */
    bool (*in_sharing_child)(void); /* one that shares the parent's memory */
    void (*vfork_begin)(void), (*vfork_end)(void);
    uint32_t (*life)(void); /* the running runtime's number; 0: none */

    M *(*enter)(void);
    void (*leave)(M *m);
    /* Also in a signal handler: never switches. NULL: the handler has interrupted the runtime. */
    M *(*enter_anywhere)(void);
    void (*leave_anywhere)(M *m);
    void (*owe)(void);     /* after a NULL: the monitor calls pay */
    void (*lock)(Lock *l); /* RANK_PRIM */
    void (*unlock)(Lock *l);
    /* No context in use ends these two: a pthread's wait keeps libc's meaning. */
    M *(*park_until)(M *m, Lock *l, int reason, int64_t deadline, uint32_t ticket, bool *timed_out);
    int (*sleep_until)(int64_t deadline); /* -EINTR: a signal came (body.h) */
    void (*ready)(M *m, G *gp);
    bool (*yield)(void);           /* false: no goroutine wants to run */
    void (*signal_wait)(int more); /* of threads that wait for a signal: no deadlock */
    void (*sim_point)(void);       /* others may run first */
    int64_t (*sim_elapsed)(void);  /* virtual time since the beginning */
    long (*guarded)(long (*fn)(void *), void *arg); /* goexit.h */
    void (*jumped)(void);                           /* likewise */
    void (*hooks_unwound)(G *gp);                   /* exit_hooks_unwound */

    /* On a goroutine, before any other call into gort: between the two it comes back to this thread
     * (preferred.c). True: this call began it, and has to end it. */
    bool (*stay_begin)(void);
    void (*stay_end)(void);

    /* Once, when the hook is loaded. retakes: set now and when a runtime begins, to whether the
     * monitor takes the P of an unannounced call that sleeps; notes: for desc_note(); tell_sim:
     * likewise, whether the runtime is a simulation; mutex_of: upstairs.h. */
    void (*attach)(bool *retakes, DescNote *notes, void (*pay)(M *m),
                   void (*tell_sim)(bool simulated), const void *(*mutex_of)(G *gp, int *holder));
    /* Likewise. end: the current goroutine ends and has values (Stack.values); lost: the values of
     * a goroutine that was stopped for good; forked: in a child, those of its maker. */
    void (*attach_values)(void (*end)(void), void (*lost)(void *values),
                          void (*forked)(void *values));
    /* preempt.c: the program's handler for the signal that preempts. */
    __typeof__(preempt_sigaction) *sigaction;
    __typeof__(preempt_keeps) *keeps_signal;
    __typeof__(preempt_use_sigaction) *use_sigaction;
    bool in_valgrind;
    const uint32_t *taken; /* threads that sleep in such a call now, without their P */
    const uint32_t *looks; /* how often the monitor has looked */

    /* Descriptors. forget: the number is another file from now on. may_close: CLOSE_... of the
     * calling thread, for gort_close, replace and shut (close.h). owe_number: after a CLOSE_BEHIND
     * of one of the table, the monitor wakes its waiters. */
    void (*forget)(int fd);
    int (*may_close)(void);
    void (*owe_number)(int fd);
    int (*replace)(int from, int fd, int flags);
    int (*shut)(int fd);
    uint32_t (*life_awaited)(int fd); /* netpoll.h */
    Chunk *const *descs;              /* for desc_known() */

    /* Calls that wait: hookio.h, and poll.c's. */
    __typeof__(hook_move) *move;
    __typeof__(hook_accept) *accept;
    __typeof__(hook_connect) *connect;
    __typeof__(hook_read_other) *read_other;
    __typeof__(hook_read_terminal) *read_terminal;
    __typeof__(hook_in_background) *in_background;
    __typeof__(hook_cause) *cause;
    __typeof__(read_memory) *read_memory;
    __typeof__(hook_read_resume) *read_resume;
    __typeof__(hook_write_other) *write_other;
    __typeof__(hook_own) *own;
    __typeof__(hook_own_wait) *own_wait;
    __typeof__(hook_own_close) *own_close;
    __typeof__(hook_epoll) *epoll;
    int (*poll)(struct pollfd *fds, unsigned long n, int64_t deadline);

    const char *(*env)(const char *variable); /* env_get */
    /* gp is a thread to libc (body.c): its number; and it holds no robust mutex any more. */
    int (*body_tid)(G *gp);
    int (*body_anew)(G *gp);
    void (*body_over)(G *gp);
    /* Signals of goroutines that are threads: body.h. */
    __typeof__(body_attach) *body_attach;
    __typeof__(body_signals) *body_signals;
    __typeof__(body_interrupt) *body_interrupt;
    __typeof__(body_nudge) *body_nudge;
    __typeof__(body_alone) *body_alone;
    M **all_ms; /* M.all */
    void (*barrier_everywhere)(void);
    __typeof__(preempt_end_call) *end_call;
    uintptr_t (*context_sp)(void *context);
    long (*context_result)(void *context);
    __typeof__(body_sigaction) *raw_sigaction;
    void (*m_is_ours)(void); /* the calling thread is the runtime's */
    __typeof__(body_cpu) *body_cpu;
    void (*rename)(M *m, G *gp, const char *name); /* in a section. In place of the one it has */
    const char *(*function_at)(const void *pc);
    /* main's thread becomes goroutine 1 of a runtime that begins, and goes on (body_lead). fn: the
     * program's main. 0 or an error: nothing is different. */
    int (*lead)(void *room, char *lo, int (*fn)(int, char **), int argc, char **argv);
} HookCore;

/* A plain system call, noted for the monitor, which ends it with -EINTR where it sleeps
 * (hook/optimistic.c). The note is the stack pointer, by which the handler knows the call. An outer
 * note is of a call that a signal handler of the program's has interrupted. */
#define hot_call(m, nr, a, b, c, d)                                                  \
    ({                                                                               \
        uintptr_t outer_ = load_rlx(&(m)->hot_sp);                                   \
        ARCH_STORE_SP((m)->hot_sp);                                                  \
        long r_ = arch_sys6((nr), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0); \
        store_rlx(&(m)->hot_sp, outer_);                                             \
        r_;                                                                          \
    })

const HookCore *gort_hook_core(void);
int hook_lead(void *room, char *lo, int (*fn)(int, char **), int argc, char **argv); /* init.c */
void hook_begin(void); /* a runtime begins, with its settings known */
/* In a child of fork: the values of the goroutine that forked become the thread's. */
void hook_forked(void);

/* The runtime's table has something about the number, or about an earlier file of it that was
 * closed behind its back. Exact for a number that only the caller uses, else a hint. */
INLINE bool desc_known(Chunk *const *descs, int fd) {
    uint32_t i = (uint32_t)fd / CHUNK;
    if (unlikely(i >= CHUNKS)) return false;
    Chunk *c = load_acq(&descs[i]); /* pairs with the CAS in chunk_make */
    if (c == NULL) return false;
    Desc *d = &c->desc[fd % CHUNK];
    uintptr_t waits = (uintptr_t)load_rlx(&d->q[DIR_READ].head) |
                      (uintptr_t)load_rlx(&d->q[DIR_WRITE].head) |
                      (uintptr_t)load_rlx(&d->threads.head);
    return (waits | load_rlx(&d->registered) | load_rlx(&d->mode[DIR_READ]) |
            load_rlx(&d->mode[DIR_WRITE])) != 0;
}

#endif
