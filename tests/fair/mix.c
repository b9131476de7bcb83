/*
 * Fairness: "a runnable goroutine runs after at most the slices of those before it; nothing makes
 * it start again at the end of the line". A generator of mixes of goroutines on the machine of
 * machine.c, and a watch over each one's wait while it is runnable.
 *
 *   fair SEED [COUNT]   COUNT mixes from SEED on (1); exit status 1 at the first that breaks the
 *                       rule. The same seed goes the same way every time.
 *                       FAIR_KINDS=yielder,reader: only these; FAIR_TELL=1: each mix and its
 *                       longest waits
 *
 * An actor is a goroutine of a kind (see `kinds`) with lengths of time of its own; any may be
 * locked to its thread. Each knows the moment from which it could run: it yields, its timer is due,
 * its byte is written, its partner sends, its call is over, the handler has interrupted it. From
 * then until it runs it waits. (Two who meet over a channel or a mutex wait for each other in
 * between; that is not counted.) The bound for one: the pieces of all others, a piece being how
 * long an actor runs before it gives way, a slice at most; three times, since those that events
 * wake come in between again and again, as is their right; and a few slices for the monitor, which
 * sees the end of a slice late, and for threads that have to wake up.
 *
 * So a finding is one of: an actor over its bound, nobody awake any more, a select that never takes
 * one of its cases, on one P a loop with more than twice the slices of
 * another.
 */
#include "machine.h"
#include "sched/preferred.h"

#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#define DURATION (1000 * GORT_MS)
#define FLOODED (3 * DURATION) /* beside a flooder */
#define LATE (15 * GORT_MS)    /* a slice as the monitor sees it */
/* a thread that is not to be had is waited for, and then given up (preferred.c) */
#define SOFT_LATE (400 * GORT_MS)
enum { ACTORS = 24, CHILDREN = 700, FLOOD = 800, CASES = 4 };

typedef struct Actor {
    const struct Kind *kind;
    bool locked, soft;   /* to its thread */
    int64_t runs, waits; /* its lengths of time */
    int64_t piece;
    int64_t since; /* it could run since then; 0: it runs, or waits for something */
    int64_t worst;
    uint64_t rounds;
    uint64_t rng;
    G *gp;
    struct Actor *partner;
    gort_chan *chan;
    int fds[2];
    bool enters;
    uint64_t took[CASES];
} Actor;

static Actor actors[ACTORS];
static int nactors;
static int64_t child_since[CHILDREN], flood_since[FLOOD];
static Actor child;
static int64_t bound, child_bound, flood_bound, began, duration = DURATION;
static uint64_t seed;
static gort_mutex mutex;
static gort_chan *tokens; /* of the workers */

static void could_run(Actor *a) {
    if (a->since == 0) a->since = machine_now();
}
static void runs(Actor *a) {
    if (a->since && machine_now() - a->since > a->worst) a->worst = machine_now() - a->since;
    a->since = 0;
    a->rounds++;
}

static uint64_t draw(Actor *a, uint64_t n) { return (random_next(&a->rng) >> 16) % n; }
static int64_t around(Actor *a, int64_t ns) { return ns / 2 + (int64_t)draw(a, (uint64_t)ns + 1); }
static void computes(Actor *a) {
    if (a->runs) machine_compute(around(a, a->runs));
}
static void sleeps(Actor *a, int64_t ns) {
    a->since = machine_now() + ns;
    gort_sleep(ns);
    runs(a);
}

void machine_interrupted(bool begins) {
    G *gp = getm() ? getm()->curg : NULL;
    for (int i = 0; i < nactors; i++)
        if (actors[i].gp == gp) (begins ? could_run : runs)(&actors[i]);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void loop(Actor *a) {
    for (;;) machine_compute(GORT_SEC);
}
static void loop_with_calls(Actor *a) {
    for (;;) {
        computes(a);
        could_run(a);
        gort_now();
        gort_free(gort_alloc(32));
        runs(a);
    }
}
static void yielder(Actor *a) {
    for (;;) {
        computes(a);
        could_run(a);
        gort_yield();
        runs(a);
    }
}
static void sleeper(Actor *a) {
    for (;;) {
        sleeps(a, around(a, a->waits));
        computes(a);
    }
}
static void player(Actor *a) {
    long ball = 0;
    for (;;) {
        if (gort_chan_recv(a->chan, &ball) < 0) abort();
        runs(a);
        computes(a);
        could_run(a->partner);
        gort_chan_send(a->partner->chan, &ball);
    }
}

static void *writer(void *arg) {
    Actor *a = arg;
    for (;;) {
        machine_sleep(around(a, a->waits));
        if (write(a->fds[1], "x", 1) != 1) abort();
        could_run(a);
        machine_poke();
    }
}
static void reader(Actor *a) {
    char byte;
    machine_thread(writer, a);
    for (;;) {
        if (gort_read(a->fds[0], &byte, 1) != 1) abort();
        runs(a);
        computes(a);
    }
}

static void announced(Actor *a) {
    for (;;) {
        gort_enter_syscall();
        machine_sleep(around(a, a->waits));
        could_run(a);
        gort_exit_syscall();
        runs(a);
        computes(a);
    }
}
static long blocks(void *arg) {
    Actor *a = arg;
    machine_sleep(around(a, a->waits));
    could_run(a);
    return 0;
}
static void blocker(Actor *a) {
    for (;;) {
        gort_blocking(blocks, a);
        runs(a);
        computes(a);
    }
}
static void unannounced(Actor *a) {
    for (;;) {
        machine_sleep(around(a, a->waits));
        could_run(a);
        gort_now();
        gort_free(gort_alloc(32)); /* here it finds out that its P is gone */
        runs(a);
        computes(a);
    }
}

/* As usleep in a loop: it never calls the library. */
static void silent(Actor *a) {
    for (;;) {
        machine_sleep(around(a, a->waits));
        computes(a);
        a->rounds++;
    }
}

/* Inside a hooked call: it would like to come back on the thread it left (preferred.c). */
static void guest(Actor *a) {
    for (;;) {
        bool begun = soft_begin();
        sleeps(a, around(a, a->waits));
        if (begun) soft_end();
        computes(a);
    }
}

/* Some tokens go round among all workers: who is woken goes to the queue of its waker's P. */
static void worker(Actor *a) {
    long token;
    for (;;) {
        if (gort_chan_recv(tokens, &token) < 0) abort();
        a->rounds++;
        computes(a);
        gort_chan_send(tokens, &token);
    }
}

static void timer_fires(void *arg) {
    Actor *a = arg;
    char c = 0;
    gort_chan_try_send(a->chan, &c);
}
static void timed(Actor *a) { /* woken by a timer's goroutine */
    gort_timer *t = gort_timer_new(a->waits, timer_fires, a);
    char c[8];
    for (;;) {
        a->since = machine_now() + a->waits;
        gort_timer_reset(t, a->waits);
        if (gort_chan_recv(a->chan, c) < 0) abort();
        runs(a);
        computes(a);
    }
}

static void holder(Actor *a) {
    for (;;) {
        gort_mutex_lock(&mutex);
        computes(a);
        gort_mutex_unlock(&mutex);
        sleeps(a, around(a, a->waits));
    }
}

static void child_body(void *arg) {
    int64_t *since = arg, waited = machine_now() - *since;
    *since = 0;
    if (waited > child.worst) child.worst = waited;
    machine_compute(4 * GORT_US);
}
static void spawner(Actor *a) {
    for (;;) {
        int64_t most = a->waits / (60 * GORT_US);
        int n = (int)draw(a, most < CHILDREN / 2 ? (uint64_t)most : CHILDREN / 2);
        for (int i = 0, at = 0; i < n; i++) {
            while (at < CHILDREN && child_since[at]) at++;
            if (at == CHILDREN) break;
            child_since[at] = machine_now();
            if (gort_go(child_body, &child_since[at]) < 0) abort();
        }
        sleeps(a, around(a, a->waits));
        computes(a);
    }
}

/* Starts others faster than they can run: there are always FLOOD of them, three rings. */
static void flooder(Actor *a) {
    for (;; a->rounds++) {
        for (int i = 0; i < FLOOD; i++) {
            if (flood_since[i]) continue;
            flood_since[i] = machine_now();
            if (gort_go(child_body, &flood_since[i]) < 0) abort();
        }
        could_run(a);
        gort_yield();
        runs(a);
    }
}

static void world(Actor *a) {
    for (;;) {
        sleeps(a, around(a, a->waits));
        could_run(a);
        gort_stop_world();
        runs(a);
        machine_compute(around(a, 100 * GORT_US));
        gort_start_world();
    }
}
static void procs(Actor *a) {
    for (;;) {
        sleeps(a, around(a, a->waits));
        could_run(a);
        gort_maxprocs(1 + (int)draw(a, 4));
        runs(a);
    }
}

/* All cases of its select are sends on one channel; its partner receives when it waits there. */
static void chooser(Actor *a) {
    long value[CASES] = {0, 1, 2, 3};
    gort_case cases[CASES];
    int n = 2 + (int)draw(a, CASES - 1);
    uint64_t rounds = 0;
    for (int i = 0; i < n; i++)
        cases[i] = (gort_case){.op = GORT_SEND, .ch = a->chan, .value = &value[i]};
    for (;; rounds++) {
        a->enters = true;
        a->took[gort_select(cases, n)]++;
        computes(a);
        for (int i = 0; rounds >= 60 && i < n; i++) {
            if (a->took[i]) continue;
            printf("seed %lu: a select that waited with %d sends on one channel %lu times never "
                   "took case %d\n",
                   (unsigned long)seed, n, (unsigned long)rounds, i);
            machine_tell_and_fail();
        }
    }
}
static void chosen(Actor *a) {
    Actor *by = a->partner;
    long got;
    for (;;) {
        sleeps(a, around(a, a->waits));
        while (!by->enters || load_rlx(&by->gp->status) != G_WAITING) sleeps(a, 50 * GORT_US);
        by->enters = false;
        if (gort_chan_recv(by->chan, &got) < 0) abort();
    }
}

static const struct Kind {
    const char *name;
    void (*body)(Actor *a);
    int64_t runs_least, runs_most, waits_least, waits_most;
    bool pair;  /* with a second one of the kind, or the next */
    bool alone; /* one at most */
    bool whole; /* however short its runs: only the end of its slice ends them */
    uint32_t weight;
} kinds[] = {
    {"loop", loop, GORT_SEC, GORT_SEC, 0, 0, false, false, true, 3},
    {"loop-with-calls", loop_with_calls, 1000, 300 * GORT_US, 0, 0, false, false, true, 2},
    {"yielder", yielder, 100, 2 * GORT_MS, 0, 0, false, false, false, 4},
    {"player", player, 500, 100 * GORT_US, 0, 0, true, false, true, 4},
    {"sleeper", sleeper, 0, 500 * GORT_US, 50 * GORT_US, 30 * GORT_MS, false, false, false, 5},
    {"reader", reader, 0, 500 * GORT_US, 100 * GORT_US, 30 * GORT_MS, false, false, false, 4},
    {"announced", announced, 0, 500 * GORT_US, 3000, 30 * GORT_MS, false, false, true, 2},
    {"blocker", blocker, 0, 500 * GORT_US, 3000, 30 * GORT_MS, false, false, false, 2},
    {"unannounced", unannounced, 0, 500 * GORT_US, 10 * GORT_US, 30 * GORT_MS, false, false, true,
     2},
    {"silent", silent, 0, 500 * GORT_US, 10 * GORT_US, 30 * GORT_MS, false, false, true, 2},
    {"guest", guest, 0, 500 * GORT_US, 100 * GORT_US, 30 * GORT_MS, false, false, false, 2},
    {"worker", worker, 1000, 2 * GORT_MS, 0, 0, false, false, true, 3},
    {"timed", timed, 0, 500 * GORT_US, 100 * GORT_US, 30 * GORT_MS, false, false, false, 2},
    {"holder", holder, 1000, 5 * GORT_MS, 100 * GORT_US, 30 * GORT_MS, false, false, false, 2},
    {"spawner", spawner, 0, 100 * GORT_US, 2 * GORT_MS, 60 * GORT_MS, false, false, false, 1},
    {"flooder", flooder, 0, 0, 0, 0, false, true, true, 1},
    {"world", world, 0, 0, 10 * GORT_MS, 200 * GORT_MS, false, true, false, 1},
    {"procs", procs, 0, 0, 10 * GORT_MS, 200 * GORT_MS, false, true, false, 1},
    {"chooser", chooser, 0, 10 * GORT_US, 0, 0, true, false, false, 2},
    {"chosen", chosen, 0, 0, 100 * GORT_US, 5 * GORT_MS, false, false, false, 0},
};

/* ---- a mix ----------------------------------------------------------------------------------- */

/* Of all orders of magnitude alike. */
static int64_t between(int64_t least, int64_t most) {
    if (most <= least) return most;
    int bits = 0;
    while (bits < 40 && (most >> bits) > least + 1) bits++;
    int64_t top = most >> machine_draw((uint64_t)bits + 1);
    return least + (int64_t)machine_draw((uint64_t)(top - least > 0 ? top - least : 0) + 1);
}

static Actor *add(const struct Kind *k) {
    Actor *a = &actors[nactors++];
    *a = (Actor){.kind = k,
                 .locked = machine_draw(4) == 0,
                 .soft = machine_draw(8) == 0 || k->body == guest};
    a->rng = machine_draw(UINT64_MAX >> 20) | 1;
    a->runs = between(k->runs_least, k->runs_most);
    a->waits = between(k->waits_least, k->waits_most);
    /* what events wake leaves time to the others */
    if (a->waits && a->runs > a->waits / 4) a->runs = a->waits / 4;
    a->piece = a->runs * 3 / 2 + 20 * GORT_US;
    if (a->piece > LATE || k->whole) a->piece = LATE;
    if (k->body == player) a->piece = LATE / 2; /* both in one slice */
    a->chan = gort_chan_new(k->body == timed ? 1 : sizeof(long), k->body == timed);
    if (k->body == reader && pipe(a->fds) < 0) abort();
    return a;
}

static bool wanted(const struct Kind *k, int others) {
    const char *only = getenv("FAIR_KINDS");
    size_t n = strlen(k->name);
    for (int i = 0; k->alone && i < nactors; i++)
        if (actors[i].kind == k) return false;
    if (only == NULL || *only == 0) return true;
    for (const char *s = only; (s = strstr(s, k->name)) != NULL; s += n)
        if ((s == only || s[-1] == ',') && (s[n] == 0 || s[n] == ',')) return true;
    return false;
}

static const struct Kind *pick_kind(void) {
    for (;;) {
        const struct Kind *k = &kinds[machine_draw(sizeof kinds / sizeof kinds[0])];
        if (machine_draw(5) < k->weight && wanted(k, nactors)) return k;
    }
}

static void compose(void) {
    int n = 1 + (int)machine_draw(machine_draw(2) ? 4 : 12);
    tokens = gort_chan_new(sizeof(long), 3);
    while (nactors < n) {
        const struct Kind *k = pick_kind();
        Actor *a = add(k);
        if (!k->pair) continue;
        Actor *b = add(k->body == chooser ? k + 1 : k);
        a->partner = b, b->partner = a;
    }
    int64_t pieces = 0;
    for (int i = 0; i < nactors; i++) pieces += actors[i].piece;
    for (int i = 0; i < nactors; i++) {
        if (actors[i].kind->body == spawner) pieces += CHILDREN / 2 * 15 * GORT_US;
        if (actors[i].kind->body == flooder) pieces += FLOOD * 15 * GORT_US;
    }
    bool flooded = false;
    for (int i = 0; i < nactors; i++) flooded |= actors[i].kind->body == flooder;
    bound = (flooded ? 6 : 3) * pieces + 4 * LATE; /* of two turns one is what has spilled */
    /* What was started last comes first; when the oldest have waited for 100 ms every second batch
     * is theirs (globalq.c); and every 61st round is somebody else's. */
    child_bound = 100 * GORT_MS + (2 * CHILDREN / 60 + 2) * (pieces + LATE);
    /* what has spilled runs by half a ring; the oldest have half of it (globalq.c) */
    flood_bound = 100 * GORT_MS + (2 * FLOOD / 128 + 2) * (pieces + LATE);
    if (flooded) duration = FLOODED, child_bound += flood_bound;
}

static void actor_main(void *arg) {
    Actor *a = arg;
    a->gp = getm()->curg;
    if (a->locked) gort_lock_thread();
    else if (a->soft && a->kind->body != guest) soft_begin(); /* as inside one call of a library */
    a->kind->body(a);
}

static void tell(int64_t now) {
    printf("seed %lu, %s Ps, bound %ld us\n", (unsigned long)seed, getenv("GORT_MAXPROCS"),
           (long)(bound / GORT_US));
    for (int i = 0; i < nactors; i++) {
        Actor *a = &actors[i];
        printf("  %2lu %-16s%s runs %ld us, waits %ld us; %lu rounds, waited %ld us at most",
               a->gp ? (unsigned long)a->gp->id : 0, a->kind->name,
               a->locked ? "locked"
               : a->soft ? "soft  "
                         : "      ",
               (long)(a->runs / GORT_US), (long)(a->waits / GORT_US), (unsigned long)a->rounds,
               (long)(a->worst / GORT_US));
        if (a->since) printf(", and %ld us now", (long)((now - a->since) / GORT_US));
        printf("\n");
    }
    if (child.worst) printf("     children waited %ld us at most\n", (long)(child.worst / GORT_US));
}

static void over(const char *who, int64_t since, int64_t now) {
    printf("%s is runnable and has not run for %ld us\n", who, (long)((now - since) / GORT_US));
    tell(now);
    machine_tell_and_fail();
}

/* On one P, those that only compute have had about as many slices each. (Two Ps may have lines of
 * different lengths: nobody searches while all are busy.) */
static void shares(int64_t now) {
    const Actor *least = NULL, *most = NULL;
    bool one_p = strcmp(getenv("GORT_MAXPROCS"), "1") == 0;
    for (int i = 0; i < nactors; i++) {
        const Actor *a = &actors[i];
        one_p &= a->kind->body != procs;
        if (a->kind->body != loop || a->locked || a->soft) continue;
        if (least == NULL || a->rounds < least->rounds) least = a;
        if (most == NULL || a->rounds > most->rounds) most = a;
    }
    if (!one_p || least == NULL || most->rounds <= 2 * least->rounds + 8) return;
    printf("one loop had %lu slices, another %lu\n", (unsigned long)most->rounds,
           (unsigned long)least->rounds);
    tell(now);
    machine_tell_and_fail();
}

static int64_t bound_of(const Actor *a) {
    /* its timer starts a goroutine, or it is one that has not begun */
    if (a->kind->body == timed || a->gp == NULL) return child_bound;
    /* a player is said to be runnable just before its partner sends, who may wait for its thread */
    bool soft = a->soft || (a->partner && a->partner->soft);
    return bound + (soft ? SOFT_LATE : 0);
}

void machine_watch(int64_t now) {
    if (bound == 0 || nactors == 0) return;
    for (int i = 0; i < nactors; i++)
        if (actors[i].since && now - actors[i].since > bound_of(&actors[i]))
            over(actors[i].kind->name, actors[i].since, now);
    for (int i = 0; i < CHILDREN; i++)
        if (child_since[i] && now - child_since[i] > child_bound)
            over("a child", child_since[i], now);
    for (int i = 0; i < FLOOD; i++)
        if (flood_since[i] && now - flood_since[i] > flood_bound)
            over("one of a flood", flood_since[i], now);
    if (now - began < duration) return;
    shares(now);
    if (getenv("FAIR_TELL")) {
        int64_t worst = 0;
        for (int i = 0; i < nactors; i++) worst = actors[i].worst > worst ? actors[i].worst : worst;
        tell(now);
        printf("  worst %ld us is %ld%% of the bound\n", (long)(worst / GORT_US),
               (long)(worst * 100 / bound));
    }
    fflush(stdout);
    _exit(0);
}

static int app(int argc, char **argv) {
    began = machine_now();
    compose();
    for (int i = 0; i < nactors; i++)
        if (gort_go(actor_main, &actors[i]) < 0) abort();
    long ball = 0;
    for (long i = 0; i < 3; i++) gort_chan_send(tokens, &i);
    for (int i = 0; i < nactors; i++)
        if (actors[i].kind->body == player && actors[i].partner > &actors[i]) {
            could_run(&actors[i]);
            gort_chan_send(actors[i].chan, &ball);
        }
    gort_sleep(3600 * GORT_SEC);
    return 0;
}

static int one(uint64_t which) {
    static const char *const numbers[] = {"1", "2", "3", "4"};
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        seed = which;
        machine_begin(which);
        setenv("GORT_MAXPROCS", numbers[machine_draw(4)], 1);
        setenv("GORT_DEBUG", "uring=0", 1);
        gort_main(app, 0, NULL);
        _exit(3);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status == 0) return 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        printf("seed %lu ends with status %#x\n", (unsigned long)which, (unsigned)status);
    return 1;
}

int main(int argc, char **argv) {
    /* addresses are part of the state */
    if (personality(0xffffffff) != (ADDR_NO_RANDOMIZE | personality(0xffffffff))) {
        personality(ADDR_NO_RANDOMIZE | (unsigned long)personality(0xffffffff));
        execv("/proc/self/exe", argv);
    }
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
             n = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    int wrong = 0;
    for (uint64_t i = 0; i < n; i++) {
        int r = one(first + i);
        wrong += r;
        if (r && getenv("FAIR_ALL") == NULL) return 1;
    }
    printf("%lu mixes, %d break the rule\n", (unsigned long)n, wrong);
    return wrong != 0;
}
