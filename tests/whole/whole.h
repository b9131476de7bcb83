/*
 * The words of a scene (whole.c says what a scene is), and who plays in it.
 *
 * A player is a thread. It is started in some way, puts on its wraps (what stands around the call),
 * makes one call that waits, its act, and leaves. Its director, another thread, has made the
 * objects, makes noise while the player waits, ends the wait, and looks at what is left. A crowd is
 * some threads that do one thing together, and its director counts.
 *
 * Signals: directors, and what else is no player, block all of them. Players take the first six.
 */
#ifndef WHOLE_H
#define WHOLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum Property {
    /* acts */
    GRANTED = 1 << 0,  /* waits until its director grants */
    TIMED = 1 << 1,    /* a form with a deadline */
    POINT = 1 << 2,    /* a cancellation point */
    INTR = 1 << 3,     /* a handler without SA_RESTART ends it, with EINTR */
    LEAVABLE = 1 << 4, /* a handler may jump out of it; an asynchronous cancel may end it */
    QUICK = 1 << 5,    /* waits for moments only, without sleeping */
    SLEEPS = 1 << 6,   /* ends by itself; for an hour, if somebody is to end it */
    ALWAYS = 1 << 7,   /* EINTR behind a handler with SA_RESTART, too */
    /* wraps and starts */
    BLOCKS = 1 << 8,   /* signals */
    REFUSES = 1 << 9,  /* cancellation */
    ENDING = 1 << 10,  /* the thread is about to end already */
    HANDLER = 1 << 11, /* in a handler */
    ASYNC = 1 << 12,   /* asynchronous cancellation */
    OUTER = 1 << 13,   /* may only be the first wrap */
    C11 = 1 << 14,
    DETACHED = 1 << 15,
    /* enders and noises */
    SIGNALS = 1 << 17,
    CANCELS = 1 << 18,
    JUMPS = 1 << 19,
    LATE = 1 << 20, /* while the player waits, or at least lives */
    EARLY = 1 << 23,
    MEETS = 1 << 24, /* an act: the grant waits for the player */
    NEVER = 1 << 21,
    STAYS = 1 << 25, /* a thread of libc's, for ever */
    /* how the process ends */
    ALL_END = 1 << 22, /* when all have ended */
};

typedef struct Player Player;

typedef struct Word {
    const char *name;
    int is;    /* of enum Property */
    int wants; /* an ender: of its act */
    int refuses;
    void (*play)(Player *); /* what it does: start, wrap, end, make noise, leave */
} Word;

typedef struct Act {
    Word word;
    void (*make)(Player *);  /* by the director, as is all but `call` */
    int (*call)(Player *);   /* the wait: 0 or errno; what it takes it gives back */
    void (*grant)(Player *); /* may wait for the player, where that does not need to be asked */
    void (*settle)(Player *);
} Act;

typedef struct Crowd {
    Word word;
    void (*make)(Player *);
    void (*member)(Player *, int i);
    void (*settle)(Player *);
} Crowd;

enum { WRAPS = 3, PLAYERS = 8, MEMBERS = 12, COUNTS = 64 };

struct Player {
    int index;
    const Word *start, *wraps[WRAPS], *ender, *noise, *leave;
    const Act *act;     /* or: */
    const Crowd *crowd; /* with */
    int n;              /* members */
    int nwraps, worn;
    int all; /* properties of all its words */
    char words[300];
    uint64_t seed;
    bool forever;               /* a sleep is not to end by itself */
    bool interrupts;            /* the ender does: EINTR is wanted */
    bool timed;                 /* the form with a deadline */
    int64_t begins, wait_ns;    /* when the call with a deadline began, how long it may take */
    struct timespec real, mono; /* the deadline */

    pthread_t thread;
    thrd_t c11;
    bool joined; /* valid at the end */
    /* atomic: */
    int begun, returned, granting, directed, ended, known, rounds;
    int jumped, queued, queue_got, timedout;
    int handled, hard;   /* handlers that have run; of those, without SA_RESTART */
    int stopped, resume; /* noise=world */
    int open;            /* wraps that have not been left */
    int error;
    volatile sig_atomic_t jumps;
    sigjmp_buf back;

    /* objects: */
    sem_t sem, *named;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    pthread_rwlock_t rw;
    pthread_spinlock_t spin;
    pthread_barrier_t barrier;
    pthread_once_t once, around;
    once_flag flag;
    mtx_t mtx;
    cnd_t cnd;
    pthread_t helper;
    FILE *file;
    mqd_t mq;
    pid_t child;
    timer_t timer;
    int fd[2], more[2], word, ready, id, made, compared;
    char path[64], *text;
    int counts[COUNTS]; /* atomic: a crowd's */
    pthread_t members[MEMBERS];
    pthread_key_t key;
    void *p;
};

extern const Act acts[];
extern const Crowd crowds[];
extern const Word starts[], wraps[], enders[], noises[], leaves[], backs[], ends[];
extern __thread Player *volatile me;
extern int quit;    /* atomic: those in the background go home */
extern int leaving; /* atomic: exec has begun, and what makes threads may fail */

/* ---- signals --------------------------------------------------------------------------------- */

#define SIG_INTERRUPTS SIGUSR1 /* without SA_RESTART */
#define SIG_RESTARTS SIGUSR2
#define SIG_JUMPS (SIGRTMIN + 0)
#define SIG_QUEUED (SIGRTMIN + 1)
#define SIG_WEARS (SIGRTMIN + 2)
#define SIG_STOPS (SIGRTMIN + 3)
#define SIG_RESUMES (SIGRTMIN + 4) /* blocked: the handler of SIG_STOPS waits for it */
#define SIG_AWAITED (SIGRTMIN + 5) /* blocked: sigwait's */
#define SIG_ALONE (SIGRTMIN + 6)   /* blocked, by its player's number */

void players_mask(sigset_t *set); /* what a player blocks */
void block_all(void);

/* ---- help ------------------------------------------------------------------------------------ */

static inline int get(int *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
static inline void set(int *p, int v) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }
static inline int add(int *p, int v) { return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST); }

static inline uint64_t draw_from(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
/* Of the player's seed: the same for the same question. */
static inline unsigned pick(const Player *p, unsigned question, unsigned n) {
    uint64_t s = p->seed + question * 1000003u;
    return (unsigned)(draw_from(&s) % n);
}

static inline int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline struct timespec from_ns(int64_t ns) {
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* What is not so is told, and ends the process, wherever that is. */
void wrong(Player *p, const char *file, int line, const char *what, long value)
    __attribute__((noreturn));
#define WRONG(p, what, value) wrong((p), __FILE__, __LINE__, (what), (value))
#define HOLDS(p, x)                                          \
    do {                                                     \
        if (!(x)) wrong((p), __FILE__, __LINE__, #x, errno); \
    } while (0)
#define IS(p, x, y)                                                  \
    do {                                                             \
        long x_ = (long)(x);                                         \
        if (x_ != (long)(y)) wrong((p), __FILE__, __LINE__, #x, x_); \
    } while (0)

/* In a thread that nobody cancels. */
void nap(int us);
#define wait_until(x)         \
    do {                      \
        while (!(x)) nap(50); \
    } while (0)

/* A thread that is no player: blocks all signals, as its maker does. */
pthread_t helper(void *(*fn)(void *), void *arg);
void finish(pthread_t);
int ends_child(pid_t); /* waits for it: its status */

void wear(Player *); /* what stands inside: the next wrap, or the call */
void *player_body(void *);
int player_c11(void *);
bool ends_in_call(const Player *); /* a cancel does */

#endif
