/*
 * How a player's thread is started, what stands around its call, and how the thread leaves. A wrap
 * counts in `open` while it is on, and takes itself off in a cleanup handler.
 */
#include "whole.h"

#include <alloca.h>
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <sys/mman.h>

/* ---- start ----------------------------------------------------------------------------------- */

static void with(Player *p, pthread_attr_t *attr) {
    IS(p, pthread_create(&p->thread, attr, player_body, p), 0);
    if (attr) pthread_attr_destroy(attr);
}
static void plain(Player *p) { with(p, NULL); }
static void detached(Player *p) {
    pthread_attr_t attr;
    pthread_t t;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    p->joined = true;
    IS(p, pthread_create(&t, &attr, player_body, p), 0);
    pthread_attr_destroy(&attr);
}
static void sized(Player *p, size_t size, size_t guard) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    IS(p, pthread_attr_setstacksize(&attr, size), 0);
    IS(p, pthread_attr_setguardsize(&attr, guard), 0);
    with(p, &attr);
}
static void small(Player *p) { sized(p, (size_t)PTHREAD_STACK_MIN + (64 << 10), 4096); }
static void large(Player *p) { sized(p, 64 << 20, 64 << 10); }
static void unguarded(Player *p) { sized(p, 512 << 10, 0); }
static void masked(Player *p) {
    pthread_attr_t attr;
    sigset_t set;
    pthread_attr_init(&attr);
    players_mask(&set);
    IS(p, pthread_attr_setsigmask_np(&attr, &set), 0);
    with(p, &attr);
}
static void affine(Player *p) {
    pthread_attr_t attr;
    cpu_set_t set;
    pthread_attr_init(&attr);
    IS(p, pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    IS(p, pthread_attr_setaffinity_np(&attr, sizeof set, &set), 0);
    with(p, &attr);
}
static void scheduled(Player *p) {
    pthread_attr_t attr;
    struct sched_param param = {0};
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, pick(p, 10, 2) ? SCHED_OTHER : SCHED_BATCH);
    pthread_attr_setschedparam(&attr, &param);
    with(p, &attr);
}
static void stacked(Player *p) { /* stays the kernel's */
    pthread_attr_t attr;
    size_t size = 256 << 10;
    pthread_attr_init(&attr);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IS(p, pthread_attr_setstack(&attr, at, size), 0);
    with(p, &attr);
}
static void c11(Player *p) {
    IS(p, thrd_create(&p->c11, player_c11, p), thrd_success);
    p->thread = p->c11;
}
static void *makes(void *p) {
    plain(p);
    return NULL;
}
static void inner(Player *p) { finish(helper(makes, p)); }

/* Beside others, which begin and end. */
static void *is_short(void *p) { return p; }
static void beside(Player *p) {
    pthread_t t[10];
    for (int i = 0; i < 5; i++) IS(p, pthread_create(&t[i], NULL, is_short, p), 0);
    plain(p);
    for (int i = 5; i < 10; i++) IS(p, pthread_create(&t[i], NULL, is_short, p), 0);
    for (int i = 0; i < 10; i++) finish(t[i]);
}

const Word starts[] = {
    {.name = "plain", .play = plain},
    {.name = "detached", .is = DETACHED, .play = detached},
    {.name = "small", .play = small},
    {.name = "large", .play = large},
    {.name = "unguarded", .play = unguarded},
    {.name = "masked", .play = masked},
    {.name = "affine", .play = affine},
    {.name = "scheduled", .play = scheduled},
    {.name = "stacked", .play = stacked},
    {.name = "c11", .is = C11, .play = c11},
    {.name = "inner", .play = inner},
    {.name = "beside", .play = beside},
    {.name = NULL},
};

/* ---- around the call ------------------------------------------------------------------------- */

static void off(void *p) { add(&((Player *)p)->open, -1); }
static void in_cleanup(Player *p) {
    add(&p->open, 1);
    pthread_cleanup_push(off, p);
    wear(p);
    pthread_cleanup_pop(1);
}

static void deeper(Player *p, int n) {
    volatile char *room = alloca(200);
    room[0] = (char)n;
    add(&p->open, 1);
    pthread_cleanup_push(off, p);
    if (n > 0) deeper(p, n - 1);
    else wear(p);
    pthread_cleanup_pop(1);
    IS(p, room[0], n);
}
static void deep(Player *p) { deeper(p, 10); }

typedef struct Held {
    Player *p;
    pthread_mutex_t mu;
    pthread_rwlock_t rw;
    FILE *file;
    locale_t locale;
    sigset_t mask;
    int state;
} Held;
static void lets_mutex(void *arg) {
    Held *h = arg;
    off(h->p);
    IS(h->p, pthread_mutex_unlock(&h->mu), 0);
}
static void holding(Player *p, int type, bool robust, int protocol) {
    Held h = {.p = p};
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    if (robust) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attr, protocol);
    IS(p, pthread_mutex_init(&h.mu, &attr), 0);
    IS(p, pthread_mutex_lock(&h.mu), 0);
    add(&p->open, 1);
    pthread_cleanup_push(lets_mutex, &h);
    wear(p);
    if (type == PTHREAD_MUTEX_ERRORCHECK) IS(p, pthread_mutex_lock(&h.mu), EDEADLK);
    if (type == PTHREAD_MUTEX_RECURSIVE) {
        IS(p, pthread_mutex_lock(&h.mu), 0);
        IS(p, pthread_mutex_unlock(&h.mu), 0);
    }
    pthread_cleanup_pop(1);
    IS(p, pthread_mutex_destroy(&h.mu), 0);
}
static void recursive(Player *p) {
    holding(p, PTHREAD_MUTEX_RECURSIVE, pick(p, 11, 2), PTHREAD_PRIO_NONE);
}
static void checked(Player *p) {
    holding(p, PTHREAD_MUTEX_ERRORCHECK, pick(p, 11, 2), PTHREAD_PRIO_NONE);
}
static void inherit(Player *p) {
    holding(p, PTHREAD_MUTEX_ERRORCHECK, pick(p, 11, 2), PTHREAD_PRIO_INHERIT);
}

static void lets_rw(void *arg) {
    Held *h = arg;
    off(h->p);
    IS(h->p, pthread_rwlock_unlock(&h->rw), 0);
}
static void writing(Player *p) {
    Held h = {.p = p, .rw = PTHREAD_RWLOCK_INITIALIZER};
    IS(p, pthread_rwlock_wrlock(&h.rw), 0);
    add(&p->open, 1);
    pthread_cleanup_push(lets_rw, &h);
    wear(p);
    IS(p, pthread_rwlock_rdlock(&h.rw), EDEADLK);
    pthread_cleanup_pop(1);
}

static void lets_file(void *arg) {
    Held *h = arg;
    off(h->p);
    funlockfile(h->file);
    fclose(h->file);
}
static void filelock(Player *p) {
    Held h = {.p = p, .file = fopen("/dev/null", "w")};
    HOLDS(p, h.file != NULL);
    flockfile(h.file);
    add(&p->open, 1);
    pthread_cleanup_push(lets_file, &h);
    wear(p);
    fputs("x", h.file);
    pthread_cleanup_pop(1);
}

static void lets_locale(void *arg) {
    Held *h = arg;
    off(h->p);
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(h->locale);
}
static void locale(Player *p) {
    Held h = {.p = p, .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    uselocale(h.locale);
    add(&p->open, 1);
    pthread_cleanup_push(lets_locale, &h);
    wear(p);
    HOLDS(p, uselocale((locale_t)0) == h.locale);
    pthread_cleanup_pop(1);
}

static void rounding(Player *p) {
    fesetround(FE_UPWARD);
    wear(p);
    IS(p, fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
}

static void blocked(Player *p) {
    sigset_t all, was, now;
    sigfillset(&all);
    sigdelset(&all, SIGURG);
    IS(p, pthread_sigmask(SIG_BLOCK, &all, &was), 0);
    wear(p);
    IS(p, pthread_sigmask(SIG_SETMASK, &was, &now), 0);
    HOLDS(p, sigismember(&now, SIGUSR1) && sigismember(&now, SIG_QUEUED));
}

static void uncancelled(Player *p) {
    int was;
    IS(p, pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was), 0);
    wear(p);
    IS(p, pthread_setcancelstate(was, &was), 0);
    IS(p, was, PTHREAD_CANCEL_DISABLE);
}
static void async(Player *p) {
    int was;
    IS(p, pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &was), 0);
    IS(p, was, PTHREAD_CANCEL_DEFERRED);
    wear(p);
    IS(p, pthread_setcanceltype(was, NULL), 0);
}

static void routine(void) { wear(me); }
static void in_once(Player *p) {
    static __thread pthread_once_t mine;
    mine = (pthread_once_t)PTHREAD_ONCE_INIT;
    IS(p, pthread_once(&mine, routine), 0);
}

static int compares(const void *a, const void *b) {
    Player *p = me;
    if (!p->compared) p->compared = 1, wear(p);
    return *(const int *)a - *(const int *)b;
}
static void sorting(Player *p) {
    int was = p->compared, two[2] = {2, 1};
    p->compared = 0;
    qsort(two, 2, sizeof *two, compares);
    p->compared = was;
    IS(p, two[0], 1);
}

/* SIG_WEARS' handler calls wear(). */
static void handler(Player *p) { IS(p, raise(SIG_WEARS), 0); }
static void altstack(Player *p) {
    size_t size = 128 << 10;
    stack_t mine = {.ss_size = size, .ss_sp = malloc(size)}, was, none = {.ss_flags = SS_DISABLE};
    IS(p, sigaltstack(&mine, &was), 0);
    HOLDS(p, was.ss_flags & SS_DISABLE);
    IS(p, raise(SIG_WEARS), 0);
    IS(p, sigaltstack(&none, &was), 0);
    HOLDS(p, was.ss_sp == mine.ss_sp);
    free(mine.ss_sp);
}

static void bound(Player *p) {
    cpu_set_t was, one;
    IS(p, sched_getaffinity(0, sizeof was, &was), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &was)) {
            CPU_SET(i, &one);
            break;
        }
    IS(p, sched_setaffinity(0, sizeof one, &one), 0);
    wear(p);
    cpu_set_t now;
    IS(p, sched_getaffinity(0, sizeof now, &now), 0);
    HOLDS(p, CPU_EQUAL(&now, &one));
    IS(p, sched_setaffinity(0, sizeof was, &was), 0);
}
static void named(Player *p) {
    char now[16];
    IS(p, pthread_setname_np(pthread_self(), "player"), 0);
    wear(p);
    IS(p, pthread_getname_np(pthread_self(), now, sizeof now), 0);
    IS(p, strcmp(now, "player"), 0);
}

/* In a key's destructor, at the end of the thread; in a cleanup handler of pthread_exit. */
static void wears(void *arg) {
    Player *p = arg;
    p->worn = 1; /* it is the first */
    wear(p);
}
static void destructor(Player *p) {
    pthread_key_t key;
    IS(p, pthread_key_create(&key, wears), 0);
    IS(p, pthread_setspecific(key, p), 0);
}
static void at_exit(Player *p) {
    pthread_cleanup_push(wears, p);
    pthread_exit(p);
    pthread_cleanup_pop(0);
}

const Word wraps[] = {
    {.name = "cleanup", .play = in_cleanup},
    {.name = "deep", .play = deep},
    {.name = "recursive", .play = recursive},
    {.name = "checked", .play = checked},
    {.name = "inherit", .play = inherit},
    {.name = "writing", .play = writing},
    {.name = "filelock", .play = filelock},
    {.name = "locale", .play = locale},
    {.name = "rounding", .refuses = JUMPS, .play = rounding},
    {.name = "blocked", .is = BLOCKS, .play = blocked},
    {.name = "uncancelled", .is = REFUSES, .refuses = ASYNC, .play = uncancelled},
    {.name = "async", .is = ASYNC, .play = async},
    {.name = "once", .play = in_once},
    {.name = "sorting", .refuses = CANCELS, .play = sorting},
    {.name = "handler", .is = HANDLER, .refuses = BLOCKS, .play = handler},
    {.name = "altstack", .is = HANDLER, .refuses = BLOCKS | CANCELS, .play = altstack},
    {.name = "bound", .play = bound},
    {.name = "named", .play = named},
    {.name = "destructor", .is = ENDING | OUTER, .refuses = CANCELS, .play = destructor},
    {.name = "at_exit", .is = ENDING | OUTER, .refuses = CANCELS | C11, .play = at_exit},
    {.name = NULL},
};

/* ---- leaves ---------------------------------------------------------------------------------- */

static void returns(Player *p) {}
static void exits_deep(Player *p, int n) {
    volatile char room[100];
    room[0] = (char)n;
    add(&p->open, 1);
    pthread_cleanup_push(off, p);
    if (n > 0) exits_deep(p, n - 1);
    if (n == 0) pthread_exit(p);
    pthread_cleanup_pop(1);
    IS(p, room[0], 12345);
}
static void exits(Player *p) { exits_deep(p, (int)pick(p, 20, 20)); }
static void detaches(Player *p) {
    p->joined = true;
    IS(p, pthread_detach(pthread_self()), 0);
}
static void cancels_itself(Player *p) {
    IS(p, pthread_cancel(pthread_self()), 0);
    pthread_testcancel();
    HOLDS(p, 0);
}
static void pending(Player *p) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 3; i++)
        while (pthread_sigqueue(pthread_self(), SIG_QUEUED, (union sigval){i}) != 0) sched_yield();
    IS(p, raise(SIG_INTERRUPTS), 0);
}
static void again(void *p) {
    pthread_key_t key;
    if (add(&((Player *)p)->word, 1) < 3) {
        pthread_key_create(&key, again);
        pthread_setspecific(key, p);
    }
}
static void with_keys(Player *p) {
    p->word = 0;
    again(p);
}

const Word leaves[] = {
    {.name = "return", .play = returns},
    {.name = "exit", .refuses = C11, .play = exits},
    {.name = "detach", .refuses = DETACHED | C11, .play = detaches},
    {.name = "cancel", .refuses = ENDING | C11, .play = cancels_itself},
    {.name = "pending", .refuses = ENDING, .play = pending},
    {.name = "keys", .play = with_keys},
    {.name = NULL},
};
