/*
 * The three things everything is about, and the place they live in.
 *
 *   G   a goroutine: 128 bytes, type-stable memory (g.c). It has a stack only from the moment it
 *       first runs until it ends (stack.c).
 *   M   a thread. Its own stack is the scheduling stack, g0. Runs Gs only while it holds a P.
 *       A plain thread that calls in gets an M too, one that never holds a P, and a pseudo-G to
 *       block on.
 *   P   the right to run: a local queue, a LIFO slot, timers and caches.
 *
 * Fields stand in groups under their guard.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "base/lock.h"
#include "os/os.h"

typedef struct G G;
typedef struct M M;
typedef struct P P;
typedef struct Stack Stack;
typedef struct Timer Timer;
typedef struct Segment Segment;

#define SLICE (10 * GORT_MS)
#ifndef RING
#define RING 256 /* 4 in tests/model */
#endif
#define MAX_PROCS 1024
#define STACK_CACHE 64 /* stacks and Gs that a P keeps for itself */

/*
 * Status of a G: who owns its stack, and which queue it is on.
 */
enum {
    G_IDLE = 0,     /* just allocated; its creator owns it */
    G_RUNNABLE = 1, /* on exactly one queue (or in the hands of its taker) */
    G_RUNNING = 2,  /* the M g->m runs it, and owns its stack */
    G_SYSCALL = 3,  /* as running, but announced in a blocking call: the P may be gone */
    G_WAITING = 4,  /* on no run queue; its waker knows it */
    G_DEAD = 6      /* on a free list */
};

/* Why a G waits: Go's words, in describe.c. */
enum {
    WAIT_NONE,
    WAIT_CHAN_RECV,
    WAIT_CHAN_SEND,
    WAIT_CHAN_RECV_NIL,
    WAIT_CHAN_SEND_NIL,
    WAIT_SELECT,
    WAIT_SELECT_NONE,
    WAIT_SLEEP,
    WAIT_MUTEX,
    WAIT_RWMUTEX_R,
    WAIT_RWMUTEX_W,
    WAIT_WG,
    WAIT_COND,
    WAIT_SEMA,
    WAIT_IO,
    WAIT_SYSCALL,
    WAIT_FILE,
    WAIT_STOP_WORLD,
    WAIT_REASONS
};

enum {
    GF_THREAD = 1,     /* the pseudo-G of a plain thread: woken by futex, never queued */
    GF_NAMED = 2,      /* its stack record holds a name */
    GF_SYSTEM = 4,     /* the runtime's own; not counted */
    GF_CREDIT = 8,     /* holds the promise of a default stack (stack.h) */
    GF_PARCEL = 16,    /* has not run: arg points into a parcel (g.h) */
    GF_SOFT = 32,      /* home is a preference: the thread runs others meanwhile (preferred.c) */
    GF_SOFT_HELD = 64, /* likewise, while a preempted G is bound to its thread (preempt.c) */
    GF_COMPACT = 128   /* its stack is, or will be, a compact one (compact_stack.h) */
};

/* What keeps a goroutine from the short ways (fastpath.h). */
enum {
    ODD_CALL = 1, /* in an announced blocking call */
    ODD_USES = 2  /* a context is in use (ender.h) */
};

/* What may end the waits of a goroutine, or of a plain thread: a context in use (ender.h). */
typedef struct Ender {
    uint64_t wait;        /* atomic: ticket << 32 | ENDER_... */
    const int32_t *cause; /* atomic: 0, or the error that waits end with */
    G *gp;
    uint32_t kept; /* atomic: commits that have yet to look at it */
    bool linked;   /* ctx.c's, with what follows: */
    gort_ctx *ctx;
    struct Ender *next, *prev;
} Ender;

struct G {
    /* What a switch, a park and a ready touch: one cache line. */
    void *sp;            /* saved context while not running; NULL: it has not run yet */
    G *schedlink;        /* the queue it is on; free list */
    uint32_t status;     /* atomic */
    int err;             /* errno while it does not run */
    M *m;                /* the M that runs it */
    M *home;             /* atomic: it may be resumed on this M only (bound.c); NULL: anywhere */
    void *param;         /* left by its waker */
    uint32_t ticket;     /* atomic: the wait word, see wait_begin() in sched.h */
    uint8_t reason;      /* WAIT_..., valid while waiting */
    uint8_t flags;       /* GF_... */
    uint16_t lock_depth; /* gort_lock_thread nesting */
    int64_t since;       /* coarse time of the last change of status */

    gort_fn *fn;
    void *arg;
    uint64_t id;  /* 0: a pseudo-G, or free */
    Stack *stack; /* while it has one */
    uint32_t odd; /* own thread: ODD_... */
    union {
        uint32_t parent; /* low bits of the creator's id */
        uint32_t futex;  /* GF_THREAD: 1 once it was made ready */
    };
    /* its first Sudog (chan.h), or its Sleeper with the lowest bit set (sema.h) */
    void *waiting;
    /* return address of the call that started it; without one, 1 behind a function's */
    uintptr_t created_at;
    void *spare;
} ALIGNED(CACHE_LINE);
_Static_assert(sizeof(G) == 128, "two cache lines, and a parked goroutine must fit in 4.6 KB");

/* A singly linked list of Gs through schedlink. */
typedef struct GList {
    G *head, *tail;
    uint32_t count;
} GList;

INLINE void glist_push(GList *l, G *gp) {
    gp->schedlink = NULL;
    if (l->tail) l->tail->schedlink = gp;
    else l->head = gp;
    l->tail = gp;
    l->count++;
}
INLINE G *glist_pop(GList *l) {
    G *gp = l->head;
    if (gp == NULL) return NULL;
    l->head = gp->schedlink;
    if (l->head == NULL) l->tail = NULL;
    l->count--;
    return gp;
}
/* gp at the end, then the first off: it is not gp, since the list is not empty. */
INLINE G *glist_exchange(GList *l, G *gp) {
    G *first = l->head;
    gp->schedlink = NULL;
    l->tail->schedlink = gp;
    l->tail = gp;
    l->head = first->schedlink;
    return first;
}
/* gp, which stands behind `before`; NULL: first. */
INLINE void glist_remove(GList *l, G *before, G *gp) {
    *(before ? &before->schedlink : &l->head) = gp->schedlink;
    if (l->tail == gp) l->tail = before;
    l->count--;
}
INLINE void glist_push_head(GList *l, G *gp) {
    gp->schedlink = l->head;
    l->head = gp;
    if (l->tail == NULL) l->tail = gp;
    l->count++;
}
INLINE void glist_append(GList *l, GList *other) {
    if (other->head == NULL) return;
    if (l->tail) l->tail->schedlink = other->head;
    else l->head = other->head;
    l->tail = other->tail;
    l->count += other->count;
    *other = (GList){0};
}
INLINE void glist_prepend(GList *l, GList *other) {
    if (other->head == NULL) return;
    other->tail->schedlink = l->head;
    if (l->tail == NULL) l->tail = other->tail;
    l->head = other->head;
    l->count += other->count;
    *other = (GList){0};
}

/* Batches that did not fit into a local queue, oldest first (globalq.c). */
#define SPILLS 64
typedef struct Spilled {
    uint32_t count; /* Gs in all of them */
    uint32_t first, n;
    uint32_t turn; /* odd: the FIFO's */
    int32_t debt;  /* above 0: the oldest batch is next */
    GList batch[SPILLS];
    int64_t since[SPILLS]; /* coarse time */
} Spilled;

/* M's attention word: 0 on the fast path. */
enum {
    ATTN_PREEMPT = 1,  /* the monitor wants curg to yield */
    ATTN_PENDING = 2,  /* the monitor is about to take the P: clear it by CAS to keep it */
    ATTN_TAKEN = 4,    /* the P is gone (retake.c) */
    ATTN_EXIT = 8,     /* the runtime this M belongs to has ended: leave for good */
    ATTN_SIM = 16,     /* always, in a simulation: every call takes the slow way (sim.c) */
    ATTN_SECTION = 32, /* a plain thread's: clear it when the section ends (init.c) */
    ATTN_CHILD = 64,   /* a child of vfork has this M's thread-locals (fork.c) */
    ATTN_FORK = 128,   /* perhaps another thread forks: no section until it has (forkgate.c) */
    ATTN_SIGNAL = 256  /* its goroutine is to look after signals (body.c) */
};

/* Runs after a parking G has left its stack; see park(). */
typedef void commit_fn(M *m, void *arg);

/* What C++ keeps for each thread of the exceptions that are thrown or handled there (its ABI's
 * words). */
typedef struct Handling {
    void *caught;
    uint32_t uncaught;
} Handling;

struct M {
    /* The protocols of preempt.c, and what a section and a switch touch. */
    uint32_t locks;  /* own thread only, plain: > 0 in a section, on g0, pinned, in the handler */
    uint32_t attn;   /* atomic: ATTN_... */
    void *unlocking; /* own thread writes, plain: the mutex it is about to free (mutex.c) */
    P *p;            /* own thread in a section, or a giver while this M waits on its note */
    G *curg;         /* the running G, or a plain thread's pseudo-G; NULL on g0 */
    void *g0sp;      /* saved context of g0 while a G runs */
    Lock *unlock;    /* to be unlocked by what runs next on this M */
    commit_fn *commit;
    /* own thread writes, atomic: the stack pointer in a call of the hook's that is made as it is
     * (sysmon.c) */
    uintptr_t hot_sp;
    /* The rest is the own thread's unless said otherwise. */
    int *errno_at;
    Handling *handling; /* NULL: a program without C++ */
    void *left_at;      /* where the goroutine that waits goes on in the program (arch.h) */
    void *commit_arg;
    uint32_t pins; /* gort_pin nesting */
    /* atomic: sections at this depth know no G: a plain thread asleep, a call under way (init.c) */
    uint32_t rest;
    bool plain;      /* a plain thread's */
    bool spinning;   /* counted in sched.spinning */
    bool pooled;     /* sched.lock: it is in the pool */
    bool in_handler; /* atomic: waits in the preemption handler with its G; set under sched.lock */
    /* atomic: its runtime has ended, and it leaves as soon as it is out of libc (inlibc.h: where it
     * was) */
    uint32_t finishing;
    bool world;         /* holds the stopped world */
    bool inherit;       /* the next G comes from the LIFO slot: no new slice */
    uint8_t unanswered; /* monitor: signals without effect so far */
    bool dying;         /* goes away when it is on g0 again */
    Note note;          /* asleep in the pool, in the handler, or as a locked M */
    P *nextp;           /* what the waker brings */
    G *nextg;
    G *lockedg; /* atomic: gort_lock_thread: the only G this M runs; set with sched.lock */
    G *detour;  /* own thread: each switch passes by g0: lockedg, or a G with a body runs */
    char *tp;   /* its own thread pointer (body.c) */
    /* own thread writes, atomic: what it blocks at least, and SIGKILL's bit; 0: unknown (body.c) */
    uint64_t sigmask;
    P *oldp;         /* the P it had before a blocking call */
    void *announced; /* G_SYSCALL: the goroutine's newest hook when it began (goexit.h) */
    /* atomic: the system call that it is about to make, announced, on a descriptor; 0: none */
    long numbered;
    uint32_t syscalltick;
    int tid, clock;
    int owner; /* tid, or the number of the goroutine it runs that is a thread to libc (body.c) */
    uint32_t id;
    uint32_t epoch; /* the run of gort_main it belongs to */
    uint32_t marks; /* sched.marks of that run */
    G *behind;      /* init.c: that run has ended while its goroutine was in the kernel */
    uint64_t rng;
    M *link; /* sched.lock: pool of idle Ms; free list of M records */
    /* sched.lock: runnable Gs that wait for this M (preferred.c); head: a hint */
    GList soft;
    int64_t soft_at; /* sched.lock: when it last came for one of them, coarse */
    /* atomic, a hint: slices it went on for from the handler while they wait (preferred.c) */
    uint32_t soft_held;
    uint32_t homed;   /* own thread: Gs that chose it as soft home, less those that came back */
    uint32_t unhomed; /* sched.lock: those among them whose home was given up */
    uint32_t in_poll; /* atomic: it waits in the poller, or is about to */
    bool closed;      /* sched.lock: the thread ends, it is nobody's home any more */
    bool soft_last;   /* the last round was its list's: the queues are next */
    /* sched.lock: the P was sent along with the first of the list, in the middle of a slice */
    bool soft_inherit;
    M *all;         /* list of all M records, append-only */
    uint32_t alive; /* atomic: the record is in use by a thread */
    /* atomic: 1: a plain thread that may wake a goroutine, and whose end we see (deadlock.c) */
    uint32_t outsider;
    void *stack_lo, *stack_hi; /* g0, for backtraces and sanitizers */
    void *altstack;
    void *context;     /* in the handler: the interrupted registers, for backtraces */
    uintptr_t call[3]; /* where its goroutine announced a blocking call, or was stopped in a
                            prologue: pc, sp, fp */
    G *pseudo;         /* plain threads: the G that stands for this thread */
    Ender ender;       /* likewise: with ODD_USES */
    void *stopped;     /* atomic: interrupted by a collection, the registers (boehm.c) */
    /* monitor's notes */
    /* its CPU clock at the last look that found it moved, and when (threadstate.c) */
    int64_t seen_cpu, seen_at;
    int64_t asked_cpu;   /*   and when it was asked to yield */
    uint32_t chances;    /* it had to answer the end of its runtime (init.c) */
    int64_t hot_cpu;     /*   and at the last look that found it in a hot call (sysmon.c) */
    void *san_fiber;     /* TSan's fiber of g0 */
    void *trace;         /* trace.c's buffer */
    uintptr_t *guard_at; /* the thread's guard word (split.h); poison.lock, NULL: the thread ends */
    Segment *hot;        /* own thread: the segment that was left last (split.c), */
    Segment *segs[11];   /*   and a free one of each size up to 1 MB */
    int64_t segments;    /* segments its goroutines took, less those they left; never reset */
    struct {             /* debug build: the locks this M holds, in the order taken (lockrank.c) */
        Lock *lock;
        int rank;
    } held[32];
    uint32_t nheld;
} ALIGNED(CACHE_LINE);

#ifdef ARCH_LEFT_AT
_Static_assert(offsetof(M, left_at) == ARCH_LEFT_AT, "as arch.h says");
#endif

enum { P_IDLE, P_RUNNING, P_STOPPED, P_DEAD };
enum { TURN_OWN, TURN_GLOBAL, TURN_SLEEPER }; /* P.turn, see pick.h */
enum { LOOK_HERE = 1, LOOK_GLOBAL };          /* P.look likewise */

typedef struct TimerNode { /* of the heap: all that is compared */
    int64_t when;
    uint32_t slot;
} TimerNode;
typedef struct TimerSlot { /* of an armed timer, for as long as it is armed */
    Timer *timer;
    uint32_t place; /* its node; for a free slot: the next free one */
} TimerSlot;
typedef struct TimerHeap {
    Lock lock;
    uint32_t count; /* lock; read without as a hint */
    int64_t first;  /* atomic: when the earliest is due; GORT_FOREVER */
    /* lock: */
    TimerNode *at;
    TimerSlot *slots;
    uint32_t capacity;  /* of both */
    uint32_t free_slot; /* list; capacity: none */
    Timer *chain;       /* for want of memory: timers that have no place, sorted */
} TimerHeap;

/* Counters of a P: its holder writes, anybody reads. */
typedef struct Counters {
    uint64_t created, ended, switches, steals, stolen, global_gets, overflows, handoffs,
        preempt_requests, preemptions, netpoll_wakeups, syscalls_blocking, retakes, readied, allocs,
        frees, forced_collections;
} Counters;

struct P {
    /* The holder alone writes these, except where thieves CAS. */
    uint32_t head;      /* atomic: thieves and the holder take by CAS */
    uint32_t tail;      /* atomic: the holder alone puts */
    G *runnext;         /* atomic: the LIFO slot; only the holder makes it non-empty */
    uint32_t schedtick; /* rounds that started a new slice; the monitor compares */
    uint32_t rounds;    /* rounds not through the slot: every 61st looks at the global queue */
    /* Two words read as one by p_pauses(), see pick.h: */
    uint32_t turn ALIGNED(8); /* TURN_... */
    uint32_t look;     /* atomic: 0 or LOOK_..., set by the monitor and by senders of guests */
    uint32_t watch;    /* atomic, the monitor's: WATCHED, or 0 (slotwatch.h) */
    int64_t global_at; /* when the global queue had its turn after a slice (sched.coarse) */
    bool ring_next;    /* the global queue was first though the ring was not empty */
    G *gfree;          /* cache of dead Gs */
    Stack *stacks;     /* cache of stacks */
    Stack *small;      /* cache of compact stacks */
    uint32_t ngfree, nstacks, nsmall;
    uint32_t stacks_most; /* stacks it may keep (stack.c): STACK_CACHE, or 0 */
    uint32_t credits;     /* stacks promised to this P (stack.h) */
    uint32_t id;
    uint64_t id_next, id_end; /* a batch of goroutine ids */
    uint64_t rng;
    P *watched; /* find.c: the P looked at before the network, and its schedtick then */
    uint32_t watched_tick;
    M *m;                 /* atomic: the holder; NULL while idle or in flight */
    uint32_t status;      /* atomic: P_... */
    uint32_t syscalltick; /* atomic: bumped when it changes hands around a blocking call */
    P *link;              /* sched.lock: idle list, maker's list */
    Counters n;
    G *ring[RING] ALIGNED(CACHE_LINE);
    TimerHeap timers ALIGNED(CACHE_LINE);
    /* the monitor's notes */
    uint32_t seen_tick ALIGNED(CACHE_LINE);
    uint32_t seen_syscalltick;
    uint32_t stalled_tick; /* the slice a stall was reported for */
    int64_t seen_when, seen_syscall_when;
    int64_t waited_when; /* when others were first seen to wait in this slice; 0: they do not */
    /* sysmon.c: at the last look that found the global queue served by this P, or empty */
    uint64_t seen_gets;
    int64_t seen_gets_when;
    uint64_t looks;    /* how often the P was asked to look there */
    int64_t pended_at; /* sched.lock: since when it waits for the maker, coarse */
    uint64_t late;     /* how often the monitor gave it away meanwhile (wake.c) */
    /* slotwatch.c: at the last look; how often the slot came to be watched */
    uint64_t seen_switches, watches;
    uint64_t stood; /* the switches at the look that found it standing still */
    int64_t watch_not_before;
    void *cache[8]; /* per-P caches of the rooms above: [0] alloc.c */
} ALIGNED(CACHE_LINE);

/* Reasons to pass by g0; 0: none. */
INLINE uint64_t p_pauses(P *p) {
    uint64_t both;
    memcpy(&both, &p->turn, sizeof both);
    return both;
}
_Static_assert(offsetof(P, look) == offsetof(P, turn) + 4, "p_pauses reads both");

typedef struct Sched {
    Lock lock;
    /* lock: */
    /* both are globalq.c's; count is that of both, and read without the lock */
    GList global;
    Spilled spilled;
    P *idle_ps;
    uint32_t vain; /* searches that found nothing; read without the lock */
    M *idle_ms;
    uint32_t idle_m_count, m_count; /* threads that run or may run goroutines */
    /* atomic: */
    uint32_t npidle ALIGNED(CACHE_LINE); /* changes under the lock */
    uint32_t spinning;                   /* searching Ms (wake.c) */
    uint32_t stop_waiting; /* a stop of the world is wanted or in force (stopworld.c) */
    uint32_t forking;      /* forks under way; up under the lock (forklibc.c) */
    uint32_t procs;        /* Ps in use */
    /* Gs in announced blocking calls, until they have a P or a queue again */
    uint32_t in_syscall;
    uint32_t taken;        /* Ms whose P was retaken and that have not come back */
    uint32_t soft_waiting; /* Gs on the lists of their home Ms (preferred.c) */
    uint32_t busy;         /* a gort_main is under way */
    uint32_t running;      /* 1 between the start and the end of a runtime */
    uint32_t epoch;
    /* ids that earlier runs have given: where the hook's marks begin in this one
     * (hook/hook_internal.h) */
    uint32_t marks;
    int64_t coarse;           /* a recent reading of the clock */
    uint32_t looks;           /* of the monitor; it alone writes */
    int64_t polled_at;        /* last network poll; 0: a thread blocks in it now */
    int64_t poll_until;       /* what that thread waits for at most */
    uint32_t poll_waiters;    /* Gs waiting for a descriptor */
    uint32_t main_exited;     /* gort_exit in main */
    uint32_t procs_fixed;     /* the program has chosen the number of Ps itself */
    uint32_t signal_channels; /* gort_signal_notify, sigwait: no deadlock while there is one */
    uint64_t next_id;
    M *main_by; /* the caller of gort_main, while it starts goroutine 1 */
    uint64_t threads_created;
    uint64_t trapped; /* atomic: calls of libc whose return is waited for (inlibc.c) */
    /* the maker, atomic: looks at the timers of Ps without a thread (threadmaker.c) */
    uint64_t tended;
    /* monitor, atomic: threads told to leave a call of the hook's made as it is (sysmon.c) */
    uint64_t roused;
    uint64_t remade;  /* atomic: times our descriptors were made anew (netpoll_epoll.c) */
    uint32_t threads; /* alive, monitor and maker included */
    Counters other;   /* counted where no P is at hand (add_rlx) */
    P *ps[MAX_PROCS];
    M *all_ms; /* append-only list of records, lock to push */
} Sched;
extern Sched sched;

INLINE int64_t coarse_now(void) { return load_rlx(&sched.coarse); }

/* Counts for the P of m, or for nobody's. */
#define count(m, field, k)                           \
    do {                                             \
        M *m_ = (m);                                 \
        if (m_ && m_->p) bump(&m_->p->n.field, (k)); \
        else add_rlx(&sched.other.field, (k));       \
    } while (0)

/* The current thread's M, read anew each time (tls.c). */
extern __thread M *tls_m __attribute__((tls_model("initial-exec")));
extern __thread M *tls_runner __attribute__((tls_model("initial-exec"))); /* tls.c */
INLINE M *getm(void) { return (M *)ARCH_TLS_READ(tls_m); }

/* Between the two the goroutine is not stopped, nor its P taken: for a few steps that the end of
 * the runtime is not to cut in two, a descriptor that is opened, read and closed. A section for
 * code that runs in handlers, too, and asks nothing of its P. */
INLINE M *steady_begin(void) {
    M *m = getm();
    if (m) m->locks++;
    fence_compiler();
    return m;
}
INLINE void steady_end(M *m) {
    fence_compiler();
    if (m) store_rel(&m->locks, m->locks - 1); /* as leave() */
}

/* The frame record of a function: its caller's fp, where that goes on, then its stack. */
INLINE void m_mark_call(M *m, const uintptr_t *record) {
    store_rlx(&m->call[0], record[1]);
    store_rlx(&m->call[1], (uintptr_t)(record + 2));
    store_rlx(&m->call[2], record[0]);
}

#define TRACE_MB 1024 /* of a trace, by default */
#define FLIGHT_MB 64  /* of the flight recorder's memory, by default */

/* GORT_DEBUG settings and GORT_MAXPROCS (env.c). */
typedef struct Settings {
    int procs;
    bool procs_from_env;
    int64_t schedtrace; /* ms; 0: off */
    bool scheddetail, asyncpreemptoff, migrate;
    int maxthreads;
    size_t stack_size;
    int64_t stall; /* ms */
    int preempt_signal;
    int retake;     /* 0: normal, 1: off, 2: hammer */
    int break_step; /* debug builds: a step of the retake protocol to leave out */
    bool uring;
    bool relook;
    bool crash;       /* crashes are told (faults.c) */
    bool hints;       /* what is hardly meant is told (hint.c) */
    int64_t flight;   /* ms of trace kept; 0: off */
    int64_t tracemax; /* MB of a trace; 0: not read yet, the default */
    int64_t leak;     /* ms */
    int64_t forcegc;  /* ms */
    uint64_t maxstack;
    uint64_t sim;        /* the seed of a simulation; 0: none */
    uint64_t sim_yields; /* points that may let others run */
} Settings;
extern Settings settings;

INLINE uint64_t random_next(uint64_t *state) { /* xorshift*: victims and select order */
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1DULL;
}

#endif
