/*
 * pthread_barrier_wait: a goroutine parks.
 *
 * A barrier cannot be tried, so libc's cannot be waited for as its locks are (waitqueue.c). But
 * every user of a barrier comes through the three functions here. So a barrier of one process is
 * the hook's own, in the program's object: goroutines wait in waitqueue.c and threads by futex, for
 * the same word. A shared barrier, or one made before the core was known, is libc's: no `mark`.
 *
 * The word is {round, arrived}. The last to arrive begins the next round by the same CAS, so that
 * more users than the barrier counts do no harm. It gets PTHREAD_BARRIER_SERIAL_THREAD and wakes
 * the others: the threads in the section of the CAS, before the runtime can end.
 *
 * The program may destroy a barrier as soon as one user has returned: `inside` counts users until
 * their last touch, and destroy waits. A waiter of a runtime that ends takes its arrival back.
 */
#include "hook/hook_internal.h"

#include <linux/futex.h>

#define MARK 0x7265697272614267u

typedef struct Barrier {
    union { /* atomic */
        uint64_t word;
        uint32_t half[2]; /* arrived, round */
    };
    uint32_t inside; /* atomic */
    uint32_t count;
    uint64_t mark;
} Barrier;
_Static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t) &&
                   _Alignof(Barrier) <= _Alignof(pthread_barrier_t),
               "");

static Barrier *barrier_ours(pthread_barrier_t *barrier) {
    Barrier *b = (Barrier *)(void *)barrier;
    return load_rlx(&b->mark) == MARK ? b : NULL;
}

static bool is_shared(const pthread_barrierattr_t *attr) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    return attr && pthread_barrierattr_getpshared(attr, &shared) == 0 &&
           shared == PTHREAD_PROCESS_SHARED;
}

HOOK int pthread_barrier_init(pthread_barrier_t *restrict barrier,
                              const pthread_barrierattr_t *restrict attr, unsigned count) {
    int r = libc(pthread_barrier_init)(barrier, attr, count); /* it checks the arguments */
    Barrier *b = (Barrier *)(void *)barrier;
    if (r != 0) return r;
    bool own = core != NULL && !is_shared(attr);
    if (own) *b = (Barrier){.count = count};
    b->mark = own ? MARK : 0;
    return 0;
}

typedef struct Arrival {
    ExitHook hook;
    Barrier *b;
    uint32_t round; /* the round whose end it waits for */
    bool last;      /* the arrival has completed it */
} Arrival;

static void barrier_arrive(Arrival *a) {
    Barrier *b = a->b;
    add_seq(&b->inside, 1);
    uint64_t was = load_rlx(&b->word), next;
    do {
        a->last = (uint32_t)was + 1 == b->count;
        next = a->last ? ((was >> 32) + 1) << 32 : was + 1;
    } while (!cas_seq(&b->word, &was, next));
    a->round = (uint32_t)(was >> 32);
    if (a->last) sys(SYS_futex, &b->half[1], FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
/* The last touch of the barrier: destroy may be waiting for it. */
static void barrier_depart(Arrival *a) { sub_seq(&a->b->inside, 1); }
static void barrier_retract(ExitHook *h) {
    Arrival *a = container_of(h, Arrival, hook);
    uint64_t was = load_rlx(&a->b->word);
    while ((uint32_t)(was >> 32) == a->round && !cas_seq(&a->b->word, &was, was - 1)) {}
    barrier_depart(a);
}
static bool round_is_over(Barrier *b, uint32_t round) { return load_acq(&b->half[1]) != round; }

static void barrier_wait_parked(Barrier *b, uint32_t round) {
    while (!round_is_over(b, round)) {
        WaitEntry w;
        /* queued, then the last look: pairs with released() */
        waitq_join(&w, b, EVERY_BIT);
        if (round_is_over(b, round)) waitq_leave(&w);
        else if (!waitq_wait(&w, WAIT_SEMA, GORT_FOREVER)) attend();
    }
}
static void barrier_park(Arrival *a) {
    bool mine = stay();
    M *m = core->enter();
    barrier_arrive(a);
    exit_hook_push(self(m), &a->hook);
    core->leave(m);
    if (a->last) released(a->b, true);
    else barrier_wait_parked(a->b, a->round);
    m = core->enter();
    exit_hook_pop(self(m), &a->hook);
    barrier_depart(a);
    core->leave(m);
    stay_end(mine);
}
static void barrier_sleep(Arrival *a) {
    barrier_arrive(a);
    if (a->last) released(a->b, true);
    while (!round_is_over(a->b, a->round))
        sys(SYS_futex, &a->b->half[1], FUTEX_WAIT_PRIVATE, a->round, NULL, NULL, 0);
    barrier_depart(a);
}

HOOK int pthread_barrier_wait(pthread_barrier_t *barrier) {
    POINT(pthread_barrier_wait);
    Arrival a = {.hook = {.abandon = barrier_retract}, .b = barrier_ours(barrier)};
    if (a.b == NULL) return libc(pthread_barrier_wait)(barrier);
    if (here()) barrier_park(&a);
    else barrier_sleep(&a);
    return a.last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

static void barrier_pause(void) {
    struct timespec ts = {0, 50 * GORT_US};
    if (here()) sleep_for(ts.tv_nsec);
    else sys(SYS_ppoll, NULL, 0, &ts, NULL, 0, 0);
}

HOOK int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    Barrier *b = barrier_ours(barrier);
    if (b == NULL) return libc(pthread_barrier_destroy)(barrier);
    if (load_rlx(&b->half[0]) != 0) return EBUSY; /* waiters are inside */
    while (load_acq(&b->inside) != 0) barrier_pause();
    b->mark = 0;
    return 0;
}
