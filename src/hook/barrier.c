/*
 * pthread_barrier_wait: a goroutine parks.
 *
 * There is no try of a barrier, so libc's cannot be waited for as its locks are (queue.c). But whoever uses a barrier
 * comes through the three functions here, on whatever thread, and nothing in libc does: so a barrier of one process
 * is the hook's own, in the program's object. Goroutines wait in queue.c, threads by futex, for the same word. One that is
 * process-shared is libc's, and waits on a thread, as one that was made before there was a runtime library; the mark tells.
 *
 * The word is {round, arrived}, changed as one: whoever completes a round begins the next in the same step, also where more threads
 * use the barrier than it counts. That one is PTHREAD_BARRIER_SERIAL_THREAD; then it wakes all, by released() and a futex.
 *
 * The barrier may be destroyed, and its memory be another's, as soon as one has come back. So all who are inside are counted until they have
 * looked at it for the last time, and destroy waits for them. Goroutines are counted with their runtime: those of one that
 * has ended never leave.
 */
#include "inside.h"

#include <linux/futex.h>

#define MARK 0x7265697272614267u

typedef struct Barrier {
    union { /* atomic */
        uint64_t word;
        uint32_t half[2]; /* arrived, round */
    };
    uint64_t goroutines; /* atomic: runtime << 32 | inside */
    uint32_t threads;    /* atomic: inside */
    uint32_t count;
    uint64_t mark;
} Barrier;
_Static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t) && _Alignof(Barrier) <= _Alignof(pthread_barrier_t), "");

static Barrier *ours(pthread_barrier_t *barrier) {
    Barrier *b = (Barrier *)(void *)barrier;
    return load_rlx(&b->mark) == MARK ? b : NULL;
}

static bool is_shared(const pthread_barrierattr_t *attr) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    return attr && pthread_barrierattr_getpshared(attr, &shared) == 0 && shared == PTHREAD_PROCESS_SHARED;
}

HOOK int pthread_barrier_init(pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attr,
                              unsigned count) {
    int r = libc(pthread_barrier_init)(barrier, attr, count); /* it knows what is wrong with them */
    Barrier *b = (Barrier *)(void *)barrier;
    if (r != 0) return r;
    bool own = core != NULL && !is_shared(attr);
    if (own) *b = (Barrier){.count = count};
    b->mark = own ? MARK : 0;
    return 0;
}

/* ---- who is inside ------------------------------------------------------------------------------ */

/* life: the runtime of a goroutine; 0: a thread. */
static void enters(Barrier *b, uint32_t life) {
    if (life == 0) {
        add_seq(&b->threads, 1);
        return;
    }
    uint64_t was = load_rlx(&b->goroutines), mine = (uint64_t)life << 32;
    while (!cas_seq(&b->goroutines, &was, was >> 32 == life ? was + 1 : mine + 1)) {}
}
/* The last look: destroy may be waiting for it. */
static void leaves(Barrier *b, uint32_t life) {
    if (life == 0) sub_seq(&b->threads, 1);
    else sub_seq(&b->goroutines, 1);
}
static bool is_empty(Barrier *b) {
    uint64_t goroutines = load_acq(&b->goroutines);
    return load_acq(&b->threads) == 0 && ((uint32_t)goroutines == 0 || goroutines >> 32 != core->life());
}

/* ---- waiting ------------------------------------------------------------------------------------ */

/* Which round it is that the caller waits for; *last: it has completed it. */
static uint32_t arrive(Barrier *b, bool *last) {
    uint64_t was = load_rlx(&b->word), next;
    do {
        *last = (uint32_t)was + 1 == b->count;
        next = *last ? ((was >> 32) + 1) << 32 : was + 1;
    } while (!cas_seq(&b->word, &was, next));
    return (uint32_t)(was >> 32);
}
static bool is_over(Barrier *b, uint32_t round) { return load_acq(&b->half[1]) != round; }

static void wait_goroutine(Barrier *b, uint32_t round) {
    Stay s;
    stay(&s);
    while (!is_over(b, round)) {
        Sleeper w;
        sleeper_queue(&w, b, EVERY_BIT); /* then the last look: against released(), as in wait_for */
        if (is_over(b, round)) sleeper_cancel(&w);
        else sleeper_wait(&w, WAIT_SEMA, GORT_FOREVER);
    }
    stay_end(&s);
}
static void wait_thread(Barrier *b, uint32_t round) {
    while (!is_over(b, round)) sys(SYS_futex, &b->half[1], FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
}

HOOK int pthread_barrier_wait(pthread_barrier_t *barrier) {
    Barrier *b = ours(barrier);
    if (b == NULL) return libc(pthread_barrier_wait)(barrier);
    bool last;
    uint32_t life = here() ? core->life() : 0;
    enters(b, life);
    uint32_t round = arrive(b, &last);
    if (last) {
        released(b, true);
        sys(SYS_futex, &b->half[1], FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    } else if (life != 0) {
        wait_goroutine(b, round);
    } else {
        wait_thread(b, round);
    }
    leaves(b, life);
    return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

/* ---- the end ------------------------------------------------------------------------------------ */

static void rest(void) {
    struct timespec ts = {0, 50 * GORT_US};
    if (!here()) {
        sys(SYS_ppoll, NULL, 0, &ts, NULL, 0, 0);
        return;
    }
    Stay s;
    stay(&s);
    gort_sleep(50 * GORT_US);
    stay_end(&s);
}

HOOK int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    Barrier *b = ours(barrier);
    if (b == NULL) return libc(pthread_barrier_destroy)(barrier);
    if (load_rlx(&b->half[0]) != 0) return EBUSY; /* somebody waits for others */
    while (!is_empty(b)) rest();
    b->mark = 0;
    return 0;
}
