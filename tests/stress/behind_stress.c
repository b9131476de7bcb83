/*
 * Functions that outlive their runtime: behind_stress [seconds [seed]]
 *
 * gort_go(3): a function under way in gort_blocking when gort_main returns may finish on its
 * thread. A round is a runtime. Its goroutines take random steps, and many of the steps are
 * functions of gort_blocking, or calls between gort_enter_syscall and gort_exit_syscall, that take
 * such steps themselves and are left behind when the round ends, at a random moment. They go on
 * between the rounds and beside the goroutines of the next ones, and what they have has to stay
 * theirs:
 *   - a value under a pthread key is what its goroutine has put there, and nobody else finds it, a
 *     forked child neither (HOOKED);
 *   - who has a lock has it alone, whichever runtime the others are of; and a lock that one died
 *     with stays locked (HOOKED, and gort_mutex);
 *   - memory of the program's changes only by the program;
 *   - a context is in use by who has taken it into use, and ends waits of its users alone; a thread
 *     is locked to who has locked it;
 *   - one who waits for what a function promised to send gets it, and no deadlock is reported
 *     meanwhile. So there are no plain threads here, which would keep the report away: end_stress.c
 *     has those.
 * With -DHOOKED it is linked with the hook (tests/script/behind.sh). A hang is told by the time
 * limit of whoever runs this.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "growth.h"
#include "stress.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* What a goroutine has allocated when it is stopped for good is lost with it. */
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

#ifdef HOOKED
enum { IS_HOOKED = 1 };
#else
enum { IS_HOOKED = 0 };
#endif
enum { KEYS = 40, LOCKS = 8, CONTEXTS = 6, THINGS = 64, MOST = 12, PROMISES = 1000, SETTLE = 32 };

/* One who takes steps: a goroutine, also while it is left behind. Serials never start again. */
typedef struct Actor {
    uint64_t serial, seed;
    int round;
    bool away; /* in a blocking call: nothing may wait */
    bool main; /* it waits for nothing that may never come */
    void *values[KEYS];
    gort_ctx *used;
    unsigned locked; /* gort_lock_thread */
    pid_t thread;    /* if so: the one */
    bool own[KEYS];  /* if so: what it has brought along; other values are the thread's */
} Actor;

static uint64_t serials, steps, rounds;
static int round_no, over; /* the runtime that runs; the last one that has ended */
static int away;           /* functions of gort_blocking that are under way */
static int outlived;       /* of these, how many were so when their round had ended */

static uint64_t draw(Actor *a) { return test_random(&a->seed) >> 4; }

/* ---- keys ------------------------------------------------------------------------------------ */

static pthread_key_t keys[KEYS];

static void *value_of(Actor *a, unsigned k) {
    return (void *)(uintptr_t)(a->serial << 16 | (draw(a) & 0xff) << 8 | k);
}

static void ends(void *value) {
    CHECKF(((uintptr_t)value & 0xff) < KEYS && (uintptr_t)value >> 16 <= get(&serials),
           "a destructor gets %p", value);
}

static void look_at_keys(Actor *a) {
    for (unsigned k = 0; k < KEYS; k++) {
        void *found = pthread_getspecific(keys[k]);
        CHECKF(found == a->values[k],
               "actor %" PRIu64
               " of round %d finds %p under key %u in round %d, and has put %p there",
               a->serial, a->round, found, k, get(&round_no), a->values[k]);
    }
}

static void with_keys(Actor *a, uint64_t r) {
    if (!IS_HOOKED) return;
    unsigned k = (unsigned)(r % KEYS);
    look_at_keys(a);
    if (a->locked && !a->own[k]) return;
    a->values[k] = r & 1024 ? value_of(a, k) : NULL;
    CHECK_EQ(pthread_setspecific(keys[k], a->values[k]), 0);
}

/* One of its own, behind which another's may get the number. */
static void with_new_key(Actor *a, uint64_t r) {
    pthread_key_t key;
    if (!IS_HOOKED || pthread_key_create(&key, r & 1 ? ends : NULL) != 0) return;
    CHECKF(pthread_getspecific(key) == NULL, "a new key has a value");
    CHECK_EQ(pthread_setspecific(key, value_of(a, 0)), 0);
    if (r & 2) CHECK_EQ(pthread_setspecific(key, NULL), 0);
    CHECK_EQ(pthread_key_delete(key), 0);
}

static void with_child(Actor *a, uint64_t r) {
    int status;
    if (!a->away || r % 16 != 0) return;
    pid_t child = fork();
    if (child == 0) {
        if (IS_HOOKED) look_at_keys(a);
        _exit(0);
    }
    CHECK_GT(child, 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- locks ----------------------------------------------------------------------------------- */

typedef struct Held {
    enum { RECURSIVE, CHECKED, COMMON, READWRITE, GORT, KINDS } kind;
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rw;
        gort_mutex mu;
    };
    uint64_t holder; /* its serial */
} Held;
static Held *locks[LOCKS]; /* one that is exchanged is kept: somebody may be in it */

static Held *held_new(int i) {
    Held *l = calloc(1, sizeof *l);
    pthread_mutexattr_t attr;
    l->kind = IS_HOOKED ? i % KINDS : GORT;
    pthread_mutexattr_init(&attr);
    if (l->kind == RECURSIVE) pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    if (l->kind == CHECKED) pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    if (l->kind <= COMMON) CHECK_EQ(pthread_mutex_init(&l->mutex, &attr), 0);
    if (l->kind == READWRITE) CHECK_EQ(pthread_rwlock_init(&l->rw, NULL), 0);
    pthread_mutexattr_destroy(&attr);
    return l;
}

static int held_try(Held *l) {
    if (l->kind == GORT) return -gort_mutex_try_lock(&l->mu);
    return l->kind == READWRITE ? pthread_rwlock_trywrlock(&l->rw)
                                : pthread_mutex_trylock(&l->mutex);
}

static int held_release(Held *l) {
    if (l->kind == GORT) return gort_mutex_unlock(&l->mu), 0;
    return l->kind == READWRITE ? pthread_rwlock_unlock(&l->rw) : pthread_mutex_unlock(&l->mutex);
}

/* It is not the caller's. Only where libc knows owners does it tell. */
static void not_mine(Held *l) {
    if (l->kind == RECURSIVE || l->kind == CHECKED)
        CHECK_EQ(pthread_mutex_unlock(&l->mutex), EPERM);
    if (l->kind != READWRITE) return;
    int e = pthread_rwlock_tryrdlock(&l->rw);
    if (e == 0) e = pthread_rwlock_unlock(&l->rw) == 0 ? EBUSY : -1;
    CHECKF(e == EBUSY, "tryrdlock of a stranger's lock: %d", e);
}

/* It is the caller's already. */
static void again_mine(Held *l) {
    int e = held_try(l);
    CHECKF(e == (l->kind == RECURSIVE ? 0 : EBUSY), "trylock by the holder, kind %d: %d",
           (int)l->kind, e);
    if (l->kind == RECURSIVE) CHECK_EQ(held_release(l), 0);
    if (l->kind == CHECKED) CHECK_EQ(pthread_mutex_lock(&l->mutex), EDEADLK);
    if (l->kind == READWRITE) CHECK_EQ(pthread_rwlock_rdlock(&l->rw), EDEADLK);
}

static void dawdle(Actor *a, uint64_t r) {
    if (r % 4 == 0) return;
    if (a->away) usleep((useconds_t)(r % 500));
    else if (r % 4 == 1) gort_yield();
    else gort_sleep((int64_t)(r % 300) * GORT_US);
}

static void with_lock(Actor *a, uint64_t r) {
    Held *l = get(&locks[r % LOCKS]);
    int e = held_try(l);
    if (e != 0) {
        CHECKF(e == EBUSY, "trylock: %d", e);
        not_mine(l);
        return;
    }
    uint64_t other = get(&l->holder);
    CHECKF(other == 0,
           "actor %" PRIu64 " of round %d gets a lock of kind %d that actor %" PRIu64 " has",
           a->serial, a->round, (int)l->kind, other);
    set(&l->holder, a->serial);
    if (l->kind != GORT && l->kind != COMMON) again_mine(l);
    dawdle(a, r >> 8);
    other = get(&l->holder);
    CHECKF(other == a->serial,
           "actor %" PRIu64 " has a lock of kind %d together with actor %" PRIu64, a->serial,
           (int)l->kind, other);
    set(&l->holder, 0);
    CHECK_EQ(held_release(l), 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct Thing {
    size_t size;
    unsigned char fill, bytes[];
} Thing;
static Thing *things[THINGS];

static Thing *thing_new(uint64_t r) {
    size_t size = 16 + (size_t)(r % 1000);
    Thing *t = gort_alloc(sizeof *t + size);
    CHECK(t != NULL);
    t->size = size;
    t->fill = (unsigned char)(r >> 16);
    memset(t->bytes, t->fill, size);
    return t;
}

static void thing_over(Thing *t) {
    if (t == NULL) return;
    CHECKF(t->size >= 16 && t->size < 1016, "an object of the program's has become %zu bytes long",
           t->size);
    for (size_t i = 0; i < t->size; i++)
        CHECKF(t->bytes[i] == t->fill, "byte %zu of the program's memory has changed", i);
    gort_free(t);
}

static void with_memory(Actor *a, uint64_t r) {
    thing_over(__atomic_exchange_n(&things[r % THINGS], thing_new(r >> 8), __ATOMIC_SEQ_CST));
}

/* ---- what the runtime has, from whichever round the caller is -------------------------------- */

static gort_chan *chan;
static gort_sem sem;
static gort_cond cond;

static void nothing(void *arg) { add(&steps, 1); }

static void with_runtime(Actor *a, uint64_t r) {
    uint64_t v = r | 1;
    int e = 0;
    switch (r % 8) {
    case 0: e = gort_chan_try_send(chan, &v); break;
    case 1: e = gort_chan_try_recv(chan, &v); break;
    case 2: e = gort_go(nothing, NULL); break;
    case 3: gort_cond_broadcast(&cond); break;
    case 4: gort_sem_release(&sem, 1); break;
    case 5: e = gort_sem_try_acquire(&sem, 1); break;
    case 6:
        gort_timer_free(gort_timer_new((int64_t)(r >> 8) % 200 * GORT_US, nothing, NULL));
        break;
    case 7: gort_count(); break;
    }
    CHECKF(e == 0 || e == -EAGAIN || e == -EBUSY || e == -ENOTCONN || e == -ENOMEM, "case %d: %d",
           (int)(r % 8), e);
    CHECK(v & 1);
}

/* ---- contexts, threads, groups, regions ------------------------------------------------------ */

/* Whoever goes on may use one: they stay while somebody does. */
static gort_ctx *contexts[CONTEXTS];

static void look_at_context(Actor *a) {
    gort_ctx *found = gort_ctx_used();
    CHECKF(found == a->used, "actor %" PRIu64 " of round %d uses context %p in round %d, not %p",
           a->serial, a->round, (void *)found, get(&round_no), (void *)a->used);
}

static void use(Actor *a, gort_ctx *c) {
    gort_ctx *was = gort_ctx_use(c);
    CHECKF(was == a->used, "actor %" PRIu64 " of round %d used %p, not %p", a->serial, a->round,
           (void *)was, (void *)a->used);
    a->used = c;
}

static void with_ctx(Actor *a, uint64_t r) {
    gort_ctx *c = get(&contexts[r % CONTEXTS]);
    look_at_context(a);
    if (r & 64) c = NULL;
    if (c && (r & 128)) { /* one that its use alone holds */
        if ((c = gort_ctx_new(c)) == NULL) return;
        use(a, c);
        gort_ctx_release(c);
    } else {
        use(a, c);
    }
    if (r >> 8 & 1) dawdle(a, r >> 10);
    if (r >> 9 & 1) look_at_context(a);
}

static void with_cancel(Actor *a, uint64_t r) {
    if (r % 8 == 0) gort_ctx_cancel(get(&contexts[r / 8 % CONTEXTS]));
}

/* What a wait has returned: only the caller's own context ends it, and only a deadline that has
 * come. */
static void is_right(Actor *a, int e, int64_t until) {
    CHECKF(e != -ECANCELED || (a->used && gort_ctx_err(a->used) == -ECANCELED),
           "actor %" PRIu64 " of round %d: another's context has ended its wait", a->serial,
           a->round);
    CHECKF(e != -ETIMEDOUT || gort_now() >= until, "a wait has ended before its deadline");
}

static void with_thread(Actor *a, uint64_t r) {
    pid_t here = (pid_t)syscall(SYS_gettid);
    CHECKF(a->locked == 0 || a->thread == here, "actor %" PRIu64 " has left its thread", a->serial);
    if (r & 1 && a->locked < 3) {
        gort_lock_thread();
        if (a->locked++ > 0) return;
        a->thread = (pid_t)syscall(SYS_gettid);
        for (int k = 0; k < KEYS; k++) a->own[k] = a->values[k] != NULL;
    } else if (a->locked > 0) {
        a->locked--;
        gort_unlock_thread();
    }
}

static gort_group *group; /* of all, until nobody is away */
static int member(gort_ctx *c, void *arg) {
    CHECK(c != NULL && gort_ctx_used() == c);
    add(&steps, 1);
    return 0;
}
static void with_group(Actor *a, uint64_t r) {
    gort_group *g = get(&group);
    int e = r & 1 ? gort_group_go(g, member, NULL) : gort_group_try_go(g, member, NULL);
    CHECKF(e == 0 || e == -EAGAIN || e == -ENOTCONN || e == -ENOMEM, "a group of all: %d", e);
}

static void with_region(Actor *a, uint64_t r) {
    if (r & 1) gort_region_begin("begun");
    if (r & 2) dawdle(a, r >> 8);
    if (r & 4) gort_region_end("begun");
}

/* Waits that the end, or one who was left behind, makes an end of. */
static void waits(Actor *a, uint64_t r) {
    static gort_mutex mu;
    uint64_t v = r | 1;
    int64_t until =
        r & 8 && !a->main ? GORT_FOREVER : gort_now() + (int64_t)(r >> 8) % 500 * GORT_US;
    if (a->away) return;
    if (r % 4 == 0) is_right(a, gort_chan_send_until(chan, &v, until), until);
    if (r % 4 == 1) is_right(a, gort_chan_recv_until(chan, &v, until), until);
    if (r % 4 == 2 && gort_sem_acquire_until(&sem, 1, until) == 0) gort_sem_release(&sem, 1);
    if (r % 4 == 3 && gort_mutex_try_lock(&mu) == 0) {
        gort_mutex_unlock(&mu);
        gort_sleep(10 * GORT_US);
    }
    CHECK(v & 1);
}

/* ---- promises -------------------------------------------------------------------------------- */

enum { BY_CHAN, BY_SEM, BY_POST, WAYS };
static int promised[WAYS]; /* under way, or sent and not yet taken */
static gort_chan *sent;
static gort_sem released;
static sem_t posted;

static int promise(uint64_t r) {
    int way = (int)(r % (IS_HOOKED ? WAYS : BY_POST));
    if (r & 64 || get(&promised[way]) >= PROMISES) return -1;
    add(&promised[way], 1);
    return way;
}

static void keep(int way) {
    if (way == BY_CHAN) CHECK_EQ(gort_chan_try_send(sent, &way), 0);
    if (way == BY_SEM) gort_sem_release(&released, 1);
    if (way == BY_POST) CHECK_EQ(sem_post(&posted), 0);
}

/* The main goroutine alone. */
static void await(int way) {
    int v;
    if (get(&promised[way]) == 0) return;
    if (way == BY_CHAN) CHECK_EQ(gort_chan_recv(sent, &v), 0);
    if (way == BY_SEM) gort_sem_acquire(&released, 1);
    if (way == BY_POST) CHECK_EQ(sem_wait(&posted), 0);
    add(&promised[way], -1);
}

/* ---- actors ---------------------------------------------------------------------------------- */

typedef void doing(Actor *a, uint64_t r);
static doing *const doings[] = {
    with_keys,    with_lock, with_memory, with_runtime, with_child, with_keys,   with_lock, waits,
    with_new_key, with_ctx,  with_cancel, with_thread,  with_group, with_region, with_ctx,  waits};
enum { DOINGS = sizeof doings / sizeof doings[0] };

static void step(Actor *a) {
    uint64_t r = draw(a);
    doings[r % DOINGS](a, r >> 8);
    add(&steps, 1);
}

static void some_steps(Actor *a, uint64_t r) {
    a->away = true;
    for (unsigned n = (unsigned)(r % 24); n > 0; n--) {
        step(a);
        dawdle(a, draw(a));
    }
    a->away = false;
}

static long blocks(void *arg) {
    Actor *a = arg;
    uint64_t r = draw(a);
    int way = promise(r);
    add(&away, 1);
    some_steps(a, r >> 8);
    if (a->round <= get(&over)) add(&outlived, 1);
    if (way >= 0) keep(way);
    add(&away, -1);
    return 0;
}

static void announces(Actor *a) {
    gort_enter_syscall();
    add(&away, 1);
    some_steps(a, draw(a));
    add(&away, -1);
    gort_exit_syscall();
}

static void still(Actor *a) {
#ifdef __SANITIZE_THREAD__ /* as in end_stress.c */
    if (a->round <= get(&over)) gort_yield();
#endif
    CHECKF(a->round > get(&over), "a goroutine of round %d runs after its end", a->round);
}

static void acts(void *arg) {
    Actor a = {
        .serial = add(&serials, 1), .seed = (uint64_t)(uintptr_t)arg, .round = get(&round_no)};
    if (IS_HOOKED) look_at_keys(&a);
    look_at_context(&a);
    for (unsigned n = 1 + (unsigned)(draw(&a) % 200); n > 0; n--) {
        uint64_t r = draw(&a);
        if (r % 8 == 0) gort_blocking(blocks, &a);
        else if (r % 8 == 1) announces(&a);
        else step(&a);
        still(&a);
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int body(int argc, char **argv) {
    Actor a = {.serial = add(&serials, 1),
               .seed = (uint64_t)(uintptr_t)argv,
               .round = get(&round_no),
               .main = true};
    uint64_t r = draw(&a);
    for (int n = r & 1 ? (int)((r >> 8) % MOST) : 0; n > 0; n--)
        gort_go(acts, (void *)(uintptr_t)(draw(&a) | 1));
    if (r & 2) await((int)((r >> 16) % WAYS));
    if (IS_HOOKED) look_at_keys(&a);
    for (int n = (int)((r >> 24) % 4); n > 0; n--) step(&a);
    if (r & 4) gort_sleep((int64_t)(r >> 32) % 3000 * GORT_US);
    else if (r & 8) gort_yield();
    return 0;
}

/* What nobody who lives is in any more is replaced for the next rounds, and some of what somebody
 * is in. */
static void new_locks(uint64_t r) {
    for (int i = 0; i < LOCKS; i++)
        if (r >> i & 1) set(&locks[i], held_new((int)(r >> (8 + 3 * i) & 7) + i));
    sem.permits_ = 2;
}

/* Those from the time before go: a function that has begun at this moment may still see these. */
static void new_contexts(void) {
    static gort_ctx *before[CONTEXTS];
    static gort_group *group_before;
    for (int i = 0; i < CONTEXTS; i++) {
        if (before[i]) gort_ctx_release(before[i]);
        before[i] = contexts[i];
        set(&contexts[i], gort_ctx_new(NULL));
    }
    if (group_before) gort_group_wait(group_before);
    group_before = group;
    set(&group, gort_group_new(NULL, 0));
}

static bool no_mine(int fd) { return false; }

static void one_round(uint64_t *seed) {
    static Growth growth;
    uint64_t r = test_random(seed) >> 4;
    add(&round_no, 1);
    if (r % 16 == 1) gort_trace_start("/dev/null"); /* regions are in it */
    if (r % 16 == 2) gort_trace_stop();
    CHECK_EQ(gort_main(body, 0, (char **)(uintptr_t)(test_random(seed) | 1)), 0);
    set(&over, get(&round_no));
    if (r % 4 == 0) usleep((useconds_t)(r >> 8) % 3000);
    if (++rounds % SETTLE == 0) {
        wait_until(get(&away) == 0);
        gort_trace_stop();
        growth_look(&growth, 1 + 2, no_mine);
    }
    if (get(&away) == 0) {
        new_locks(r >> 16);
        new_contexts();
    }
}

int main(int argc, char **argv) {
    uint64_t seed = stress_args(argc, argv);
    growth_begin();
    for (int i = 0; i < KEYS; i++) CHECK_EQ(pthread_key_create(&keys[i], i % 2 ? ends : NULL), 0);
    for (int i = 0; i < LOCKS; i++) locks[i] = held_new(i);
    new_contexts();
    chan = gort_chan_new(sizeof(uint64_t), 1);
    sent = gort_chan_new(sizeof(int), PROMISES * 2);
    CHECK_EQ(sem_init(&posted, 0, 0), 0);
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    while (gort_now() < until) one_round(&seed);
    wait_until(get(&away) == 0);
    for (int i = 0; i < THINGS; i++) thing_over(things[i]);
    printf("%" PRIu64 " runtimes, %" PRIu64 " steps, %d functions outlived theirs\n", rounds,
           get(&steps), get(&outlived));
    return 0;
}
