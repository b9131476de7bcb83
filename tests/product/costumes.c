/* The costumes: how a player was started, what stands around its call, and how it ends. Each looks
 * whether what it has put on is still there behind the call. */
#include "product.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

static pthread_key_t key;
static __thread long mine;

/* ---- starts ---------------------------------------------------------------------------------- */

/* What every start comes to. */
static void plays(Player *p) {
    wait_until(get(&p->go));
    wear(p);
    add(&p->left, 1);
    if (p->leave->play) p->leave->play(p);
}
static void plays_arg(void *arg) { plays(arg); }
static void plays_copy(void *arg) { plays(*(Player **)arg); }

static void start_go(Player *p) { HOLDS(p, gort_go(plays_arg, p) == 0); }
static void start_copy(Player *p) { HOLDS(p, gort_go_copy(plays_copy, &p, sizeof p) == 0); }
static void start_with(Player *p, gort_attr attr) {
    int r = gort_go_with(&attr, plays_arg, p);
    if (r == -ENOTSUP && attr.thread) start_go(p);
    else HOLDS(p, r == 0);
}
static void start_named(Player *p) { start_with(p, (gort_attr){.name = "a \"player\" \\ \xff"}); }
static void start_small(Player *p) { start_with(p, (gort_attr){.stack_size = 64 << 10}); }
static void start_large(Player *p) { start_with(p, (gort_attr){.stack_size = 8 << 20}); }
static void start_threadlike(Player *p) { start_with(p, (gort_attr){.name = "t", .thread = 1}); }
static void start_wg(Player *p) {
    static gort_wg wg;
    HOLDS(p, gort_wg_go(&wg, plays_arg, p) == 0);
}

static void *plays_thread(void *arg) {
    plays(arg);
    return NULL;
}
static void start_thread(Player *p) {
    pthread_t t;
    HOLDS(p, pthread_create(&t, NULL, plays_thread, p) == 0);
    HOLDS(p, pthread_detach(t) == 0);
}

/* A member of a group of two; the other fails when it is told (end_sibling). */
static int plays_member(gort_ctx *c, void *arg) {
    Player *p = arg;
    HOLDS(p, gort_ctx_used() == c);
    plays(p);
    return 0;
}
static int fails(gort_ctx *c, void *arg) {
    Player *p = arg;
    wait_until(get(&p->closing) || get(&p->left));
    return -EIO;
}
static void waits_for_members(void *arg) {
    Player *p = arg;
    gort_group *g = gort_group_new(NULL, 2);
    HOLDS(p, g && gort_group_go(g, plays_member, p) == 0);
    HOLDS(p, gort_group_go(g, fails, p) == 0);
    HOLDS(p, gort_group_wait(g) == -EIO);
}
static void start_member(Player *p) { HOLDS(p, gort_go(waits_for_members, p) == 0); }

static gort_timer *timers[PLAYERS];
static int ticks[PLAYERS];
static void start_timer(Player *p) {
    gort_timer_free(timers[p->index]); /* of an earlier round */
    timers[p->index] = gort_timer_new(100 * GORT_US, plays_arg, p);
    HOLDS(p, timers[p->index] != NULL);
}
static void plays_first(void *arg) {
    Player *p = arg;
    if (add(&ticks[p->index], 1) != 1) return;
    gort_timer_free(timers[p->index]); /* from its own function */
    timers[p->index] = NULL;
    plays(p);
}
static void start_ticker(Player *p) {
    set(&ticks[p->index], 1); /* until `timers` is set, it is not the first */
    gort_timer_free(timers[p->index]);
    timers[p->index] = gort_ticker_new(200 * GORT_US, plays_first, p);
    HOLDS(p, timers[p->index] != NULL);
    set(&ticks[p->index], 0);
}
static void start_after(Player *p) {
    gort_ctx *c = gort_ctx_new(NULL);
    HOLDS(p, c && gort_ctx_after(c, plays_arg, p) == 0);
    gort_ctx_release(c);
}

const Word starts[] = {
    {.name = "go", .play = start_go},
    {.name = "copy", .play = start_copy},
    {.name = "named", .play = start_named},
    {.name = "small", .play = start_small},
    {.name = "large", .play = start_large},
    {.name = "threadlike", .is = THREADLIKE, .play = start_threadlike},
    {.name = "wg", .play = start_wg},
    {.name = "plain", .is = PLAIN | OS, .play = start_thread},
    {.name = "member", .is = IN_GROUP, .play = start_member},
    {.name = "timer", .play = start_timer},
    {.name = "ticker", .play = start_ticker},
    {.name = "after", .play = start_after},
    {.name = NULL},
};

/* ---- what stands around the call ------------------------------------------------------------- */

static bool own_thread(Player *p) {
    return p->locked > 0 || gort_id() == 0 || (p->start->is & THREADLIKE && !SANITIZED);
}

static void wrap_lock(Player *p) {
    gort_lock_thread();
    p->locked++;
    long tid = syscall(SYS_gettid);
    wear(p);
    if (syscall(SYS_gettid) != tid) WRONG(p, "a locked goroutine has changed threads");
    p->locked--;
    gort_unlock_thread();
}

static void wrap_pin(Player *p) {
    int n = gort_pin();
    HOLDS(p, n >= 0);
    wear(p);
    HOLDS(p, gort_pin() == n);
    gort_unpin();
    gort_unpin();
}

static void wrap_world(Player *p) {
    static int stopped;
    gort_stop_world();
    HOLDS(p, add(&stopped, 1) == 1);
    wear(p);
    HOLDS(p, add(&stopped, -1) == 0);
    gort_start_world();
}

static long wears_call(void *arg) {
    wear(arg);
    return 4711;
}
static void wrap_blocking(Player *p) { HOLDS(p, gort_blocking(wears_call, p) == 4711); }
static void wrap_syscall(Player *p) {
    gort_enter_syscall();
    wear(p);
    gort_exit_syscall();
}

static void wears(void *arg) { wear(arg); }
static void not_again(void *arg) { WRONG((Player *)arg, "a once runs twice"); }
static void wrap_once(Player *p) {
    gort_once once = {0};
    gort_once_do(&once, wears, p);
    gort_once_do(&once, not_again, p);
}

/* A context that nobody ends stands over the call; below that which is in use. */
static void wrap_ctx(Player *p) {
    gort_ctx *used = gort_ctx_used(), *c = gort_ctx_with_timeout(used, 3600 * GORT_SEC);
    HOLDS(p, c && gort_ctx_use(c) == used && gort_ctx_used() == c);
    wear(p);
    HOLDS(p, gort_ctx_use(used) == c);
    gort_ctx_release(c);
}
/* One that is done is put aside for the call. */
static void wrap_aside(Player *p) {
    gort_ctx *used = gort_ctx_used(), *c = gort_ctx_new(NULL);
    HOLDS(p, c && gort_ctx_use(c) == used);
    gort_ctx_cancel(c);
    HOLDS(p, gort_chan_recv(NULL, NULL) == -ECANCELED);
    gort_ctx_use(used);
    wear(p);
    gort_ctx_use(c);
    HOLDS(p, gort_sleep(GORT_SEC) == -ECANCELED);
    gort_ctx_use(used);
    gort_ctx_release(c);
}

static __attribute__((noinline)) void jumps(Player *p, jmp_buf out) {
    volatile char room[3000];
    room[p->seed % 3000] = 1;
    wear(p);
    longjmp(out, 1 + room[1] * 0);
}
static void wrap_longjmp(Player *p) {
    jmp_buf out;
    if (setjmp(out) == 0) jumps(p, out);
}

static int compares(const void *a, const void *b, void *arg) {
    Player *p = arg;
    if (*(const int *)a != *(const int *)b && !p->compared) {
        p->compared = 1;
        wear(p);
    }
    return *(const int *)a - *(const int *)b;
}
static void wrap_qsort(Player *p) {
    int a[] = {3, 1, 2};
    p->compared = 0;
    qsort_r(a, 3, sizeof a[0], compares, p);
    HOLDS(p, a[0] == 1 && a[1] == 2 && a[2] == 3);
}

static __attribute__((noinline)) void deep(Player *p, int n) {
    volatile char room[2000];
    memset((char *)room, n, sizeof room);
    if (n == 0) wear(p);
    else deep(p, n - 1);
    for (size_t i = 0; i < sizeof room; i++)
        if (room[i] != (char)n) WRONG(p, "the stack is not as it was");
}
static void wrap_deep(Player *p) { deep(p, 12); }

static void wrap_fenv(Player *p) {
    int before = fegetround();
    fesetround(FE_UPWARD);
    wear(p);
    HOLDS(p, fegetround() == FE_UPWARD);
    fesetround(before);
}

/* The mask is the thread's. */
static void wrap_mask(Player *p) {
    sigset_t set, before, now;
    gort_lock_thread();
    p->locked++;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    HOLDS(p, pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
    wear(p);
    HOLDS(p, pthread_sigmask(SIG_SETMASK, &before, &now) == 0);
    HOLDS(p, sigismember(&now, SIGUSR2) == 1 && sigismember(&now, SIGUSR1) == 0);
    HOLDS(p, sigismember(&now, SIGURG) == 0);
    p->locked--;
    gort_unlock_thread();
}

/* The thread's, or with the hook the goroutine's. */
static void wrap_key(Player *p) {
    bool keeps = hooked || own_thread(p);
    void *before = pthread_getspecific(key);
    HOLDS(p, pthread_setspecific(key, p) == 0);
    wear(p);
    if (!keeps) return;
    HOLDS(p, pthread_getspecific(key) == p);
    HOLDS(p, pthread_setspecific(key, before) == 0);
}
static void wrap_tls(Player *p) {
    bool keeps = own_thread(p);
    mine = p->token;
    wear(p);
    if (keeps) HOLDS(p, mine == p->token);
}
static void wrap_owner(Player *p) {
    pthread_mutex_t mu;
    pthread_mutexattr_t a;
    bool owns = hooked || own_thread(p);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mu, &a);
    if (owns) HOLDS(p, pthread_mutex_lock(&mu) == 0);
    wear(p);
    if (owns) HOLDS(p, pthread_mutex_lock(&mu) == EDEADLK);
    if (owns) HOLDS(p, pthread_mutex_unlock(&mu) == 0);
    pthread_mutex_destroy(&mu);
}

static void wrap_holds(Player *p) {
    static gort_rwmutex shared;
    gort_mutex own = {0};
    gort_mutex_lock(&own);
    gort_rwmutex_rlock(&shared);
    wear(p);
    gort_rwmutex_runlock(&shared);
    gort_mutex_unlock(&own);
    HOLDS(p, AT_REST(own) == 0);
}

#ifndef LEAN
static void wrap_region(Player *p) {
    gort_region_begin("around");
    wear(p);
    gort_region_end("around");
}
#endif
GORT_NOPREEMPT static void wrap_nopreempt(Player *p) { wear(p); }
static void wrap_slice(Player *p) {
    for (int64_t until = gort_now() + 12 * GORT_MS; gort_now() < until;) continue;
    wear(p);
}

#define LOCAL NO_WAIT | MISPLACED
const Word wraps[] = {
    {.name = "lock", .play = wrap_lock},
    {.name = "pin",
     .is = LOCAL,
     .refuses = MISPLACED | WAITS | LIBC | PLAIN | WORLD,
     .play = wrap_pin},
    {.name = "world",
     .is = LOCAL,
     .refuses = MISPLACED | WAITS | LIBC | PLAIN | WORLD,
     .play = wrap_world},
    {.name = "blocking", .is = LOCAL, .refuses = MISPLACED | WAITS | WORLD, .play = wrap_blocking},
    {.name = "syscall", .is = LOCAL, .refuses = MISPLACED | WAITS | WORLD, .play = wrap_syscall},
    {.name = "once", .play = wrap_once},
    {.name = "ctx", .play = wrap_ctx},
    {.name = "aside", .refuses = NO_WAIT, .play = wrap_aside},
    {.name = "longjmp", .play = wrap_longjmp},
    {.name = "qsort", .play = wrap_qsort},
    {.name = "deep", .play = wrap_deep},
    {.name = "fenv", .play = wrap_fenv},
    {.name = "mask", .refuses = NO_WAIT, .play = wrap_mask},
    {.name = "key", .refuses = NO_WAIT, .play = wrap_key},
    {.name = "tls", .refuses = 0, .play = wrap_tls},
    {.name = "owner", .refuses = NO_WAIT, .play = wrap_owner},
    {.name = "holds", .refuses = NO_WAIT, .play = wrap_holds},
#ifndef LEAN
    {.name = "region", .play = wrap_region},
#endif
    {.name = "nopreempt", .play = wrap_nopreempt},
    {.name = "slice", .play = wrap_slice},
    {.name = NULL},
};

/* ---- how it ends ----------------------------------------------------------------------------- */

static void leave_by_exit(Player *p) { gort_exit(); }
static void leave_by_pthread_exit(Player *p) {
    if (p->start->is & PLAIN || (p->start->is & THREADLIKE && !SANITIZED)) pthread_exit(NULL);
}
static void leave_locked(Player *p) { gort_lock_thread(); }
/* A player that leaves with its context in use. */
static void leave_used(Player *p) {
    gort_ctx *c = gort_ctx_new(NULL);
    gort_ctx_use(c);
    gort_ctx_release(c);
}

const Word leaves[] = {
    {.name = "return"},
    {.name = "exit", .refuses = PLAIN, .play = leave_by_exit},
    {.name = "pthread_exit", .play = leave_by_pthread_exit},
    {.name = "locked", .play = leave_locked},
    {.name = "used", .play = leave_used},
    {.name = NULL},
};

__attribute__((constructor)) static void begin(void) { pthread_key_create(&key, NULL); }
