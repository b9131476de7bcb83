/*
 * Locks against the same locks: actors do what a generator says, one step at a time, as plain
 * threads, as goroutines, and as goroutines that are threads to libc (gort_attr.thread), and every
 * answer has to be the same. The locks are mutexes of every combination of type, protocol,
 * robustness and sharing, C11's, rwlocks, semaphores, spin locks, and conditions with any of the
 * mutexes. (With gort_attr.thread no mutex inherits a priority, which does not work there.) A step
 * never waits for another actor: what would is given a deadline that has passed, so the answer says
 * it. Between steps the actors wait for their turn in a channel, in a pipe or asleep, so that
 * goroutines share threads and change them.
 *
 * Then all at once: who is in the lock is counted while its holder sleeps.
 *
 *   SEED=n     that one, told step by step        ROUNDS=n   seeds from there on (12)
 */
#include "hook.h"
#include <linux/futex.h>
#include <semaphore.h>
#include <stdarg.h>
#include <threads.h>

enum { ACTORS = 5, MUTEXES = 4, STEPS = 150, HELD_MOST = 3 };

enum {
    LOCK,
    TRYLOCK,
    TIMEDLOCK,
    CLOCKLOCK,
    UNLOCK,
    CONSISTENT,
    COND,
    C11_LOCK,
    C11_TRYLOCK,
    C11_TIMEDLOCK,
    C11_UNLOCK,
    RDLOCK,
    TRYRDLOCK,
    TIMEDRDLOCK,
    WRLOCK,
    TRYWRLOCK,
    TIMEDWRLOCK,
    RWUNLOCK,
    SEM_TRY,
    SEM_TIMED,
    SEM_POST,
    SPIN_TRY,
    SPIN_UNLOCK,
    SLEEP,
    DIE,
    OPS
};
static const char *const op_names[] = {
    "lock",       "trylock",        "timedlock",   "clocklock",   "unlock",
    "consistent", "cond_timedwait", "mtx_lock",    "mtx_trylock", "mtx_timedlock",
    "mtx_unlock", "rdlock",         "tryrdlock",   "timedrdlock", "wrlock",
    "trywrlock",  "timedwrlock",    "rwunlock",    "sem_trywait", "sem_timedwait",
    "sem_post",   "spin_trylock",   "spin_unlock", "sleep",       "die"};

typedef struct Kind {
    int type, protocol, robust, shared;
    bool c11;
} Kind;

typedef struct Actor {
    gort_chan *commands;
    int pipe[2];
    pthread_t thread;
    int waits_by;
} Actor;

typedef struct Step {
    int op, what;
} Step;

/* One world: the objects, the actors, and what the answers so far say about who holds what. */
typedef struct World {
    Kind kind[MUTEXES];
    pthread_mutex_t mutex[MUTEXES];
    mtx_t c11[MUTEXES];
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    sem_t sem;
    Actor actor[ACTORS];
    int owner[MUTEXES], count[MUTEXES]; /* -1: nobody */
    bool inconsistent[MUTEXES], lost[MUTEXES];
    int writer, readers[ACTORS], spinner;
    gort_chan *answers;
    int actors; /* THREADS... */
} World;

enum { THREADS, GOROUTINES, BODIES }; /* the last: with gort_attr.thread */
static const char *const actor_names[] = {"threads", "goroutines", "goroutines with thread 1"};

static World *world;
static uint64_t rng;
static bool inherits; /* mutexes may */
static bool tell;

static uint32_t pick(uint32_t n) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (uint32_t)((rng * 0x9E3779B97F4A7C15ULL) >> 33) % n;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static pthread_mutex_t *mutex_at(int i) {
    return world->kind[i].c11 ? (pthread_mutex_t *)&world->c11[i] : &world->mutex[i];
}

static int result_or_errno(int r) { return r == 0 ? 0 : errno; }

static int perform(Step s) {
    struct timespec over = {0, 0};
    pthread_mutex_t *mutex = mutex_at(s.what);
    mtx_t *c11 = &world->c11[s.what];
    switch (s.op) {
    case LOCK: return pthread_mutex_lock(mutex);
    case TRYLOCK: return pthread_mutex_trylock(mutex);
    case TIMEDLOCK: return pthread_mutex_timedlock(mutex, &over);
    case CLOCKLOCK: return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &over);
    case UNLOCK: return pthread_mutex_unlock(mutex);
    case CONSISTENT: return pthread_mutex_consistent(mutex);
    case COND: return pthread_cond_timedwait(&world->cond, mutex, &over);
    case C11_LOCK: return mtx_lock(c11);
    case C11_TRYLOCK: return mtx_trylock(c11);
    case C11_TIMEDLOCK: return mtx_timedlock(c11, &over);
    case C11_UNLOCK: return mtx_unlock(c11);
    case RDLOCK: return pthread_rwlock_rdlock(&world->rwlock);
    case TRYRDLOCK: return pthread_rwlock_tryrdlock(&world->rwlock);
    case TIMEDRDLOCK: return pthread_rwlock_timedrdlock(&world->rwlock, &over);
    case WRLOCK: return pthread_rwlock_wrlock(&world->rwlock);
    case TRYWRLOCK: return pthread_rwlock_trywrlock(&world->rwlock);
    case TIMEDWRLOCK: return pthread_rwlock_timedwrlock(&world->rwlock, &over);
    case RWUNLOCK: return pthread_rwlock_unlock(&world->rwlock);
    case SEM_TRY: return result_or_errno(sem_trywait(&world->sem));
    case SEM_TIMED: return result_or_errno(sem_timedwait(&world->sem, &over));
    case SEM_POST: return result_or_errno(sem_post(&world->sem));
    case SPIN_TRY: return pthread_spin_trylock(&world->spin);
    case SPIN_UNLOCK: return pthread_spin_unlock(&world->spin);
    case SLEEP: usleep(20); return 0;
    }
    return -1;
}

static Step next_step(Actor *a) {
    Step s;
    if (a->waits_by == 0) CHECK_EQ(gort_chan_recv(a->commands, &s), 0);
    else CHECK_EQ(read(a->pipe[0], &s, sizeof s), (long)sizeof s);
    return s;
}

static void actor(void *arg) {
    Actor *a = arg;
    Step s;
    while ((s = next_step(a)).op != DIE) {
        int r = perform(s);
        CHECK_EQ(gort_chan_send(world->answers, &r), 0);
    }
    int none = 0;
    CHECK_EQ(gort_chan_send(world->answers, &none), 0);
}

static void *actor_thread(void *arg) {
    actor(arg);
    return NULL;
}

static void begin_actor(Actor *a) {
    gort_attr attr = {.thread = world->actors == BODIES};
    if (world->actors == THREADS) CHECK_EQ(pthread_create(&a->thread, NULL, actor_thread, a), 0);
    else CHECK_EQ(gort_go_with(&attr, actor, a), 0);
}

static int tell_to(Actor *a, Step s) {
    int r;
    if (a->waits_by == 0) CHECK_EQ(gort_chan_send(a->commands, &s), 0);
    else CHECK_EQ(write(a->pipe[1], &s, sizeof s), (long)sizeof s);
    CHECK_EQ(gort_chan_recv(world->answers, &r), 0);
    return r;
}

/* ---- which steps ----------------------------------------------------------------------------- */

static bool has_owner(const Kind *k) {
    return k->type == PTHREAD_MUTEX_RECURSIVE || k->type == PTHREAD_MUTEX_ERRORCHECK || k->robust;
}

static bool may_lock(int i, int who) { /* it answers at once */
    const Kind *k = &world->kind[i];
    if (world->owner[i] < 0) return true;
    return world->owner[i] == who &&
           (k->type == PTHREAD_MUTEX_RECURSIVE || k->type == PTHREAD_MUTEX_ERRORCHECK);
}

static bool all_robust(int who) {
    for (int i = 0; i < MUTEXES; i++)
        if (world->owner[i] == who && !world->kind[i].robust) return false;
    return world->writer != who && !world->readers[who];
}

/* What may be asked of that actor: nothing that POSIX leaves open, nothing that waits. */
static bool allowed(Step s, int who) {
    int i = s.what;
    bool mine = world->owner[i] == who, c11 = world->kind[i].c11;
    bool own_recursive = mine && world->kind[i].type == PTHREAD_MUTEX_RECURSIVE;
    if (own_recursive && world->count[i] >= HELD_MOST && s.op < COND && s.op != UNLOCK)
        return false;
    /* glibc 2.36 then crashes in the list of robust ones */
    if (world->lost[i] && s.op <= COND) return false;
    switch (s.op) {
    case LOCK: return !c11 && may_lock(i, who);
    case TRYLOCK:
    case TIMEDLOCK:
    case CLOCKLOCK: return !c11;
    case UNLOCK: return !c11 && (mine || has_owner(&world->kind[i]));
    case CONSISTENT: return !c11 && mine && world->kind[i].robust && world->inconsistent[i];
    case COND: return !c11 && mine && world->count[i] == 1 && !world->inconsistent[i];
    case C11_LOCK: return c11 && may_lock(i, who) && world->count[i] < HELD_MOST;
    case C11_TRYLOCK:
    case C11_TIMEDLOCK: return c11 && world->count[i] < HELD_MOST;
    case C11_UNLOCK: return c11 && (mine || world->kind[i].type == PTHREAD_MUTEX_RECURSIVE);
    case RDLOCK:
    case TIMEDRDLOCK:
    case WRLOCK:
    case TIMEDWRLOCK: {
        int readers = 0;
        for (int k = 0; k < ACTORS; k++) readers += world->readers[k];
        if (world->writer == who) return true; /* EDEADLK */
        if (s.op == TIMEDRDLOCK || s.op == TIMEDWRLOCK) return true;
        return world->writer < 0 && (s.op == RDLOCK || readers == 0);
    }
    case RWUNLOCK: return world->writer == who || world->readers[who] > 0;
    case SPIN_TRY: return true;
    case SPIN_UNLOCK: return world->spinner == who;
    case DIE: return all_robust(who) && world->spinner != who;
    default: return true;
    }
}

static void locked(int i, int who, int r) {
    if (r == ENOTRECOVERABLE) world->lost[i] = true;
    if (r != 0 && r != EOWNERDEAD) return;
    if (r == EOWNERDEAD) world->inconsistent[i] = true;
    world->owner[i] = who;
    world->count[i]++;
}

static void learn(Step s, int who, int r) {
    int i = s.what;
    switch (s.op) {
    case LOCK:
    case TRYLOCK:
    case TIMEDLOCK:
    case CLOCKLOCK: locked(i, who, r); break;
    case C11_LOCK:
    case C11_TRYLOCK:
    case C11_TIMEDLOCK: locked(i, who, r == thrd_success ? 0 : EBUSY); break;
    case UNLOCK:
    case C11_UNLOCK:
        /* one level of an inconsistent recursive one, in glibc */
        if (r == ENOTRECOVERABLE && world->owner[i] == who) r = 0;
        if (r != 0 || --world->count[i] > 0) break;
        world->owner[i] = -1;
        world->lost[i] |= world->inconsistent[i];
        break;
    case CONSISTENT: world->inconsistent[i] &= r != 0; break;
    case RDLOCK:
    case TRYRDLOCK:
    case TIMEDRDLOCK: world->readers[who] += r == 0; break;
    case WRLOCK:
    case TRYWRLOCK:
    case TIMEDWRLOCK:
        if (r == 0) world->writer = who;
        break;
    case RWUNLOCK:
        if (world->writer == who) world->writer = -1;
        else world->readers[who]--;
        break;
    case SPIN_TRY:
        if (r == 0) world->spinner = who;
        break;
    case SPIN_UNLOCK: world->spinner = -1; break;
    }
}

/* Its robust mutexes are given up when the thread that held them is gone. */
static void died(int who) {
    Actor *a = &world->actor[who];
    for (int i = 0; i < MUTEXES; i++) {
        if (world->owner[i] != who) continue;
        int *word = &world->mutex[i].__data.__lock;
        if (world->actors != THREADS) wait_until(get(word) & FUTEX_OWNER_DIED);
        world->owner[i] = -1;
        world->count[i] = 0;
    }
    if (world->actors == THREADS) CHECK_EQ(pthread_join(a->thread, NULL), 0);
    begin_actor(a);
}

/* ---- a world --------------------------------------------------------------------------------- */

static void make_mutex(int i) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    Kind *k = &world->kind[i];
    pthread_mutexattr_t a;
    *k = (Kind){types[pick(4)], pick(2) ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, (int)pick(2),
                (int)pick(2), pick(5) == 0};
    if (!inherits) k->protocol = PTHREAD_PRIO_NONE;
    if (k->c11) {
        *k = (Kind){.type = pick(2) ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL, .c11 = true};
        CHECK_EQ(mtx_init(&world->c11[i],
                          mtx_timed | (k->type == PTHREAD_MUTEX_RECURSIVE ? mtx_recursive : 0)),
                 thrd_success);
        return;
    }
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, k->type);
    CHECK_EQ(pthread_mutexattr_setprotocol(&a, k->protocol), 0);
    CHECK_EQ(
        pthread_mutexattr_setrobust(&a, k->robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED),
        0);
    CHECK_EQ(pthread_mutexattr_setpshared(&a, k->shared), 0);
    CHECK_EQ(pthread_mutex_init(&world->mutex[i], &a), 0);
    if (tell)
        printf("mutex %d: type %d protocol %d robust %d shared %d\n", i, k->type, k->protocol,
               k->robust, k->shared);
}

static void begin_world(int actors) {
    pthread_rwlockattr_t ra;
    pthread_condattr_t ca;
    world = calloc(1, sizeof *world);
    *world = (World){
        .writer = -1, .spinner = -1, .actors = actors, .answers = gort_chan_new(sizeof(int), 0)};
    for (int i = 0; i < MUTEXES; i++) {
        world->owner[i] = -1;
        make_mutex(i);
    }
    pthread_rwlockattr_init(&ra);
    pthread_rwlockattr_setkind_np(&ra, (int)pick(3));
    CHECK_EQ(pthread_rwlock_init(&world->rwlock, &ra), 0);
    pthread_condattr_init(&ca);
    pthread_condattr_setpshared(&ca, (int)pick(2));
    CHECK_EQ(pthread_cond_init(&world->cond, &ca), 0);
    CHECK_EQ(pthread_spin_init(&world->spin, 0), 0);
    CHECK_EQ(sem_init(&world->sem, 0, pick(3)), 0);
    for (int i = 0; i < ACTORS; i++) {
        Actor *a = &world->actor[i];
        a->waits_by = (int)pick(2);
        a->commands = gort_chan_new(sizeof(Step), 0);
        CHECK_EQ(pipe(a->pipe), 0);
        begin_actor(a);
    }
}

static void release_all(int who) {
    for (int i = 0; i < MUTEXES; i++)
        while (world->owner[i] == who) {
            Step s = {world->kind[i].c11 ? C11_UNLOCK : UNLOCK, i};
            int r = tell_to(&world->actor[who], s);
            CHECK(r == 0 || r == ENOTRECOVERABLE);
            learn(s, who, r);
        }
    while (world->writer == who || world->readers[who])
        learn((Step){RWUNLOCK, 0}, who, tell_to(&world->actor[who], (Step){RWUNLOCK, 0}));
}

static void end_world(void) {
    for (int i = 0; i < ACTORS; i++) {
        Actor *a = &world->actor[i];
        release_all(i);
        tell_to(a, (Step){DIE, 0});
        if (world->actors == THREADS) CHECK_EQ(pthread_join(a->thread, NULL), 0);
        close(a->pipe[0]), close(a->pipe[1]);
        gort_chan_release(a->commands);
    }
    gort_chan_release(world->answers);
    free(world);
}

/* The same steps in all worlds: they are drawn by what the first one's answers say, and the others'
 * are the same. */
static void play(uint64_t seed, int actors, int *answers) {
    rng = seed * 2 + 1;
    for (int i = 0; i < 8; i++) pick(2);
    begin_world(actors);
    for (int i = 0; i < STEPS; i++) {
        int who = (int)pick(ACTORS);
        Step s;
        do s = (Step){(int)pick(OPS), (int)pick(MUTEXES)};
        while (!allowed(s, who) || (s.op == DIE && pick(3)));
        int r = tell_to(&world->actor[who], s);
        if (tell)
            printf("%s %d: actor %d %s %d -> %d (%s)\n", actor_names[actors], i, who,
                   op_names[s.op], s.what, r, strerror(r));
        if (actors != THREADS && answers[i] != r) {
            Kind *k = &world->kind[s.what];
            fprintf(stderr,
                    "seed %lu, step %d of %s: actor %d %s %d (type %d protocol %d robust %d "
                    "shared %d c11 %d): %d, and %d of threads\n",
                    (unsigned long)seed, i, actor_names[actors], who, op_names[s.op], s.what,
                    k->type, k->protocol, k->robust, k->shared, k->c11, r, answers[i]);
            exit(1);
        }
        answers[i] = r;
        learn(s, who, r);
        if (s.op == DIE) died(who);
    }
    end_world();
}

/* ---- all at once ----------------------------------------------------------------------------- */

enum { CROWD = 12, TURNS = 6 };
static pthread_mutex_t common;
static int inside, finished;

static void holder(void *arg) {
    bool recursive = arg != NULL;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(pthread_mutex_lock(&common), 0);
        CHECK_EQ(add(&inside, 1), 1);
        if (recursive) CHECK_EQ(pthread_mutex_lock(&common), 0);
        if (i % 2) usleep(50);
        else gort_yield();
        if (recursive) CHECK_EQ(pthread_mutex_unlock(&common), 0);
        CHECK_EQ(add(&inside, -1), 0);
        CHECK_EQ(pthread_mutex_unlock(&common), 0);
    }
    add(&finished, 1);
}

static void *holder_thread(void *arg) {
    holder(arg);
    return NULL;
}

static void exclusion(int type, int protocol, int robust, int shared) {
    pthread_mutexattr_t a;
    pthread_t plain;
    void *recursive = type == PTHREAD_MUTEX_RECURSIVE ? &common : NULL;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, type);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutexattr_setrobust(&a, robust);
    pthread_mutexattr_setpshared(&a, shared);
    CHECK_EQ(pthread_mutex_init(&common, &a), 0);
    set(&finished, 0);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(holder, recursive), 0);
    CHECK_EQ(pthread_create(&plain, NULL, holder_thread, recursive), 0);
    wait_until(get(&finished) == CROWD + 1);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(pthread_mutex_destroy(&common), 0);
}

static void nothing(void *arg) {}

static int run(int argc, char **argv) {
    static int answers[STEPS];
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
    uint64_t from = seed ? strtoull(seed, NULL, 10) : 1;
    int n = rounds ? atoi(rounds) : seed ? 1 : 12;
    tell = seed && n == 1;
    setbuf(stdout, NULL);
    bool bodies = gort_go_with(&(gort_attr){.thread = 1}, nothing, NULL) == 0;
    for (uint64_t s = from; s < from + (uint64_t)n; s++) {
        inherits = true;
        play(s, THREADS, answers);
        play(s, GOROUTINES, answers);
        if (!bodies) continue;
        inherits = false;
        play(s, THREADS, answers);
        play(s, BODIES, answers);
    }
    for (int k = 0; k < 4 * 2 * 2 * 2; k++)
        exclusion(k % 4, k / 4 % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, k / 8 % 2, k / 16);
    return 0;
}
HOOK_MAIN(run)
