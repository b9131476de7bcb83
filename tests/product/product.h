/*
 * The words of a scene (product.c says what a scene is), and who plays in it.
 *
 * A player is a goroutine or a plain thread. It puts on its costume (how it was started, and what
 * stands around the call), and makes one call, its act. Its director, on another goroutine or
 * thread, has made the objects, makes noise while the player waits, ends the wait, and looks
 * whether the books balance.
 */
#ifndef GORT_PRODUCT_H
#define GORT_PRODUCT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <pthread.h>
#include <unistd.h>

/* What a word is, wants of the others, and excludes. */
enum Property {
    /* acts */
    HAS_UNTIL = 1 << 0, /* a form with a deadline */
    HAS_TRY = 1 << 1,   /* one that never waits */
    GRANTED = 1 << 2,   /* waits until the director grants */
    READY = 1 << 3,     /* may be granted before it begins */
    BY_CTX = 1 << 4,    /* its plain form is ended by a context in use */
    CLOSES = 1 << 5,    /* the director may close what it waits for */
    WAITS = 1 << 6,     /* even where nothing has to be waited for */
    LIBC = 1 << 7,      /* takes locks of libc */
    WORLD = 1 << 8,     /* stops the world */
    OWN_ERRNO = 1 << 9, /* a call of libc, which sets errno */
    NUMBERED = 1 << 10, /* waits on a descriptor, by a call of libc */
    /* enders */
    LINGERS = 1 << 12, /* the player may wait */
    /* costumes */
    NO_WAIT = 1 << 14, /* forbids waiting */
    PLAIN = 1 << 15,   /* a plain thread */
    IN_GROUP = 1 << 16,
    THREADLIKE = 1 << 17, /* gort_attr.thread */
    MISPLACED = 1 << 19,  /* a place in which there may be no other */
    ENDLESS = 1 << 20,    /* an act that nobody grants */
    /* the rest */
    OS = 1 << 21,      /* signals, forks, plain threads: nothing for a simulation */
    SPINS = 1 << 23,   /* computes without a call */
    DIRECTS = 1 << 24, /* the director is a plain thread */
    RUNTIME_ENDS = 1 << 25,
};

enum Form { FOREVER, UNTIL, TRY };
typedef struct Player Player;

typedef struct Word {
    const char *name;
    int is;    /* of enum Property */
    int wants; /* an ender, of its act or start */
    int refuses;
    void (*play)(Player *); /* what it does: start, wrap, end, make noise, leave */
} Word;

typedef struct Act {
    Word word;
    void (*make)(Player *);
    long (*call)(Player *);   /* the result; p->form says how */
    void (*grant)(Player *);  /* by the director, once; sets p->given */
    void (*settle)(Player *); /* the books: both are done, or the runtime is over */
    void (*close)(Player *);
    int closed; /* the result then */
} Act;

typedef struct Ender {
    Word word;
    void (*before)(Player *); /* the call */
    void (*during)(Player *); /* once it has begun, or before it does */
} Ender;

enum { WRAPS = 3, PLAYERS = 6, ROUNDS = 2 };

struct Player {
    int index;
    const Word *start, *wraps[WRAPS], *noise, *leave;
    const Ender *ender;
    const Act *act;
    int nwraps, worn; /* the one whose turn it is */
    char words[300];
    uint64_t seed;

    /* how the call is made; set by the director before `go` */
    enum Form form;
    int64_t deadline, hour;
    gort_ctx *ctx, *parent; /* the ender's */
    bool must;              /* what is granted has to be taken */
    bool brief;             /* a sleep comes to its end */

    int go, begun, ended, left;    /* atomic */
    int granting, closing, poking; /* atomic: the director has begun to */
    int given, taken, over;        /* atomic: books, and the runtime has ended */
    long result;
    int locked, compared; /* gort_lock_thread; whether qsort has called */

    /* the objects of its act */
    gort_chan *c, *c2;
    gort_mutex mu;
    gort_rwmutex rw;
    gort_cond cond;
    gort_sem sem;
    gort_wg wg;
    gort_once once;
    gort_group *group;
    gort_ctx *other;
    gort_reader *reader;
    gort_writer *writer;
    gort_timer *timer;
    int fd[2], out[2], opened, inside, fired, signo, port;
    long token;
    char addr[64];
};

/* Something is wrong with this player: says what, and ends the program. */
void wrong(Player *p, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));
#define WRONG(p, ...) wrong((p), __FILE__, __LINE__, __VA_ARGS__)
#define HOLDS(p, cond)                              \
    do {                                            \
        if (!(cond)) WRONG(p, "not so: %s", #cond); \
    } while (0)

extern const Act acts[];
extern const Ender enders[];
extern const Word starts[], wraps[], noises[], leaves[];
extern bool hooked;
extern int dying;   /* atomic: the program ends its trace itself */
extern int tracing; /* atomic: players that are about to start a trace, or have not stopped it */

/* What stands inside: the next costume, or the call. */
void wear(Player *);
/* Whether a context in use ends the call. */
bool ended_by_ctx(const Player *);
void grant(Player *); /* if the act wants it */
/* A descriptor with a number that no other call gets while this one is closed. */
int number_apart(Player *, int fd);
/* A child that tries some calls; its status is looked at. */
void fork_child(Player *, uint64_t r);
void exec_child(Player *);

#endif
