/*
 * Runtimes that end at any moment: end_stress [seconds [seed]]
 *
 * A round is a runtime. Goroutines do random things with objects that live through all rounds,
 * plain threads do the same at the same time and go on when the runtime ends, and the main
 * goroutine returns after a random while, whatever the others are in: a wait, a call of libc, a
 * loop, a blocking call. Then the plain threads are held between two of their calls, and it is
 * looked at what the rule says (docs/INVARIANTS.md, "The end of a runtime"):
 *   - no goroutine of the round runs any more: each looks at every step whether its round is over;
 *   - nothing points into it: no object has a waiter left, and whatever a dead goroutine held can
 *     be released for it;
 *   - no lock of libc or of the library is held: printing, allocating, the loader and the calls
 *     with locks of their own return;
 *   - what a goroutine had begun and a call of ours promised to bring to its end has come to it: a
 *     tree of contexts is cancelled as a whole or not at all, a once is free again or done, members
 *     of wait groups and groups count as ended;
 *   - deadlines of contexts come;
 *   - goroutines that are threads to libc end as others do, also where the kernel has no thread for
 *     that, and a child begins without the parent's;
 *   - neither descriptors, nor threads, nor mapped memory grow from runtime to runtime (growth.h).
 * A hang is told by the time limit of whoever runs this, memory that was used after its end by
 * ASan.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "growth.h"
#include "stress.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#ifdef __SANITIZE_ADDRESS__
/* What a goroutine has allocated when it is stopped for good is lost with it. */
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

/* the last thread reads the live page */
enum { KIN = 4, LEAVES = 100, CALLERS = 3, THREADS = CALLERS + 1, MOST = 24 };

static gort_mutex mutexes[KIN];
static gort_rwmutex rwmutexes[KIN];
static gort_cond conds[KIN];
/* a plain thread has to lock its own again, which no goroutine may die with */
static gort_mutex cond_mutexes[2][KIN];
static gort_sem sems[KIN];
static gort_wg wgs[KIN];
static gort_chan *chans[KIN];
static gort_pool *pool;
static gort_ctx *ctx;
static gort_ctx *trees[KIN], *leaves[KIN][LEAVES];
/* a look at these alone does not help a cancellation on its way */
static gort_chan *tree_done[KIN], *leaf_done[KIN][LEAVES];
static gort_once onces[KIN];
static int once_begun[KIN];
static gort_timer *timers[KIN];
static int page_port; /* of the page that is served now; 0: none */
static int pipes[KIN][2];
static FILE *null;

static int round_no, over;   /* the runtime that runs; the last one that has ended */
static int hold, held, quit; /* plain threads */
static uint64_t steps, rounds;

/* ---- what both do ---------------------------------------------------------------------------- */

/* Of a goroutine: the round it was started in; 0: a plain thread. */
static void still_in(int mine, const char *where) {
/* there one that slept in a call nobody announced, or in a lock of TSan's, comes as far as its next
 * call (init.c) */
#ifdef __SANITIZE_THREAD__
    if (mine && mine <= get(&over)) gort_yield();
#endif
    CHECKF(mine == 0 || mine > get(&over), "a goroutine of round %d runs after its end, in %s",
           mine, where);
}
#define still(mine) still_in((mine), __func__)

static int64_t soon(uint64_t r) { return gort_now() + (int64_t)(r % 300) * GORT_US; }
/* A goroutine may wait for ever: somebody else, or the end, sees to it. A plain thread comes
 * back. */
static int64_t deadline(int mine, uint64_t r) {
    return mine && r % 3 == 0 ? GORT_FOREVER : soon(r);
}

static void with_mutex(int mine, uint64_t r) {
    gort_mutex *mu = &mutexes[r % KIN];
    if (gort_mutex_lock_until(mu, deadline(mine, r >> 8)) < 0) return;
    still(mine);
    if (r & 64) gort_yield();
    gort_mutex_unlock(mu);
}

static void with_rwmutex(int mine, uint64_t r) {
    gort_rwmutex *rw = &rwmutexes[r % KIN];
    if (r & 32) {
        if (gort_rwmutex_rlock_until(rw, deadline(mine, r >> 8)) < 0) return;
        if (r & 64) gort_yield();
        gort_rwmutex_runlock(rw);
    } else {
        if (gort_rwmutex_lock_until(rw, deadline(mine, r >> 8)) < 0) return;
        if (r & 64) gort_yield();
        gort_rwmutex_unlock(rw);
    }
    still(mine);
}

static void with_cond(int mine, uint64_t r) {
    gort_mutex *mu = &cond_mutexes[mine != 0][r % KIN];
    if (r & 32) {
        if (r & 64) gort_cond_signal(&conds[r % KIN]);
        else gort_cond_broadcast(&conds[r % KIN]);
        return;
    }
    if (gort_mutex_lock_until(mu, deadline(mine, r >> 8)) < 0) return;
    gort_cond_wait_until(&conds[r % KIN], mu, deadline(mine, r >> 9));
    still(mine);
    gort_mutex_unlock(mu);
}

static void with_sem(int mine, uint64_t r) {
    gort_sem *s = &sems[r % KIN];
    int64_t n = 1 + (int64_t)(r >> 6) % 3;
    if (gort_sem_acquire_until(s, n, deadline(mine, r >> 8)) < 0) return;
    still(mine);
    gort_sem_release(s, n);
}

static bool crowded(void) { return gort_count() > 300; }
/* whoever started it: of a plain thread the round may have changed */
static void nothing(void *arg) { still(get(&round_no)); }

/* What a function of a wait group, a group or a once is in when the end comes. */
static void dawdles(int mine, uint64_t r) {
    if (r & 1) gort_yield();
    if (r & 2) gort_sleep((int64_t)(r % 64) * 10 * GORT_US);
    if (mine && r % 32 == 4) gort_sleep(GORT_SEC);
    still(mine);
    if (mine && r % 32 == 8) gort_exit();
}

static void wg_member(void *arg) { dawdles(get(&round_no), (uint64_t)(uintptr_t)arg); }

/* The counters are raised by gort_wg_go alone: so whatever happens to its goroutines they come to
 * 0. A plain thread may wait for ever for that. */
static void with_wg(int mine, uint64_t r) {
    gort_wg *wg = &wgs[r % KIN];
    int e = (r & 32) && !crowded() ? gort_wg_go(wg, wg_member, (void *)(uintptr_t)(r >> 12 & 0xfff))
                                   : 0;
    CHECKF(e == 0 || e == -ENOMEM || e == -ENOTCONN, "gort_wg_go: %d", e);
    gort_wg_wait_until(wg, r & 64 ? GORT_FOREVER : soon(r >> 8));
    still(mine);
}

static gort_group *shared;
static int member_runs(gort_ctx *c, void *arg) {
    uint64_t r = (uint64_t)(uintptr_t)arg;
    CHECK(c != NULL);
    dawdles(get(&round_no), r >> 4);
    return r & 8 ? -EIO : 0;
}
static int member_parts(gort_ctx *c, void *arg) {
    gort_group_try_go(get(&shared), member_runs, arg);
    return member_runs(c, arg);
}

/* A group of its own, waited for without a deadline. */
static void with_group(int mine, uint64_t r) {
    gort_group *g = gort_group_new(r & 16 ? ctx : NULL, (int)(r >> 5) % 4);
    bool failed = false, refused = false;
    if (g == NULL) return;
    for (int i = 0; i < 1 + (int)(r >> 8) % 6; i++) {
        uint64_t what = r >> (12 + i) & 0xfff;
        int e = gort_group_go(g, member_runs, (void *)(uintptr_t)what);
        CHECKF(e == 0 || e == -ENOMEM || e == -ENOTCONN, "gort_group_go: %d", e);
        if (e == 0 && (what & 8)) failed = true;
        if (e != 0) refused = true;
    }
    int e = gort_group_wait(g);
    CHECKF(e == 0 || (e == -EIO && failed) || e == -ENOTCONN, "gort_group_wait: %d", e);
    if (mine) CHECKF(e != -ENOTCONN && !refused, "a goroutine sees its runtime's end");
    still(mine);
}

/* Members of a group of all. It is waited for when the round is over. */
static void with_shared_group(int mine, uint64_t r) {
    gort_group *g = get(&shared);
    void *arg = (void *)(uintptr_t)(r >> 12 & 0xff7);
    int e = r & 32 ? gort_group_try_go(g, member_parts, arg) : gort_group_go(g, member_parts, arg);
    CHECKF(e == 0 || e == -EAGAIN || e == -ENOMEM || e == -ENOTCONN, "a group of all: %d", e);
    still(mine);
}

static void with_tree(int mine, uint64_t r) {
    if (r % 16 == 0) gort_ctx_cancel(trees[r / 16 % KIN]);
    else gort_chan_recv_until(leaf_done[r / 16 % KIN][r / 64 % LEAVES], NULL, soon(r >> 16));
    still(mine);
}

static void runs_once(void *arg) {
    int i = (int)((uintptr_t)arg % KIN);
    add(&once_begun[i], 1);
    dawdles(gort_id() ? get(&round_no) : 0, (uint64_t)(uintptr_t)arg >> 4);
}
static void with_once(int mine, uint64_t r) {
    gort_once_do(&onces[r % KIN], runs_once, (void *)(uintptr_t)(r & 0xffff));
    still(mine);
}

/* Timers that live through all rounds. */
static void with_old_timer(int mine, uint64_t r) {
    if (r & 32) gort_timer_stop(timers[r % KIN]);
    else gort_timer_reset(timers[r % KIN], (int64_t)(r >> 8) % 300 * GORT_US);
    still(mine);
}

static void with_inspection(int mine, uint64_t r) {
    gort_stats s;
    if (r % 4 == 0) gort_stats_read(&s);
    else if (r % 64 == 1) gort_dump(fileno(null));
    else if (r % 16 == 2 && gort_trace_start("/dev/null") == 0 && (r & 64)) gort_yield();
    else if (r % 8 == 3) gort_trace_stop();
    still(mine);
}

static void with_chan(int mine, uint64_t r) {
    gort_chan *c = chans[r % KIN];
    uint64_t v = r;
    int64_t until = deadline(mine, r >> 8);
    if (r & 32) gort_chan_send_until(c, &v, until);
    else gort_chan_recv_until(c, &v, until);
    still(mine);
}

static void with_select(int mine, uint64_t r) {
    uint64_t v = r;
    gort_case cases[20];
    int n = 1 + (int)(r >> 6) % 20;
    for (int i = 0; i < n; i++)
        cases[i] = (r >> i) & 1 ? (gort_case){GORT_RECV, chans[(r + (unsigned)i) % KIN], &v, 0}
                                : (gort_case){GORT_SEND, chans[(r + (unsigned)i) % KIN], &v, 0};
    gort_select_until(cases, n, deadline(mine, r >> 8));
    still(mine);
}

static void with_time(int mine, uint64_t r) {
    gort_timer *t = gort_timer_new((int64_t)(r % 200) * GORT_US, nothing, NULL);
    if (t && (r & 64)) gort_timer_reset(t, (int64_t)(r % 100) * GORT_US);
    if (r & 32) gort_sleep((int64_t)(r % 100) * GORT_US);
    gort_timer_free(t);
    gort_chan *after = r & 128 ? gort_after((int64_t)(r % 100) * GORT_US) : NULL;
    gort_chan_release(after);
    still(mine);
}

static void with_ctx(int mine, uint64_t r) {
    gort_ctx *c = gort_ctx_with_deadline(r & 32 ? ctx : NULL, soon(r >> 8));
    if (c == NULL) return;
    bool used = (r & 512) != 0;
    if (used) gort_ctx_use(c);
    if (r & 64) gort_chan_recv_until(gort_ctx_done(c), NULL, deadline(mine, r >> 10));
    if (used && (r & 1024)) gort_chan_recv(NULL, NULL); /* until c's deadline */
    if (used && (r & 2048)) gort_sleep_until(deadline(mine, r >> 10));
    if (used) gort_ctx_use(NULL);
    if (r & 128) gort_ctx_cancel(c);
    gort_ctx_release(c);
    still(mine);
}

/* Calls that open a socket and fail: nobody is told its number, so nobody but the end can close
 * it. */
static void with_sockets(int mine, uint64_t r) {
    int e = r & 32 ? gort_dial(r & 64 ? "127.0.0.1:1" : "unix:/nowhere/x", soon(r >> 8))
                   : gort_listen("unix:/nowhere/x", 1);
    CHECKF(e < 0, "a socket at an address that is none: %d", e);
    still(mine);
}

static void with_descriptors(int mine, uint64_t r) {
    char c = 0;
    if (r & 32) gort_read_until(pipes[r % KIN][0], &c, 1, deadline(mine, r >> 8));
    else gort_write_until(pipes[r % KIN][1], &c, 1, soon(r >> 8));
    struct pollfd p = {.fd = pipes[r % KIN][0], .events = POLLIN};
    if (r & 64) gort_poll(&p, 1, mine && (r & 128) ? -1 : 0);
    still(mine);
}

static void with_house(int mine, uint64_t r) {
    char addr[64], local[64];
    gort_chan *ints = gort_chan_new(sizeof(int), 1);
    if (gort_signal_notify(ints, SIGUSR1) == 0 && (r & 32)) raise(SIGUSR1);
    gort_signal_stop(ints);
    gort_chan_release(ints);
    snprintf(addr, sizeof addr, "unix:@end-stress-%d-%d", (int)getpid(), (int)(r % KIN));
    int fd = gort_listen(addr, 1);
    if (fd >= 0) {
        gort_local_addr(fd, local, sizeof local);
        gort_close(fd);
    }
    gort_pool_put(pool, gort_pool_get(pool));
    gort_free(gort_alloc(r % 500));
    still(mine);
}

static void with_goroutines(int mine, uint64_t r) {
    int e = 0;
    if (r % 64 == 0) e = gort_maxprocs(1 + (int)(r >> 8) % 4);
    else if ((r & 1) && !crowded()) e = gort_go(nothing, NULL);
    else gort_count();
    CHECKF(e >= 0 || e == -ENOMEM || e == -ENOTCONN, "with_goroutines: %d", e);
    still(mine);
}

/* Its key's value is the goroutine's; libc runs the destructor on a thread of its own. */
static pthread_key_t thread_key;
static void value_ends(void *value) { CHECK_EQ((uintptr_t)value & 0xff, 0x55); }
static void leaves_once(void *arg) {
    gort_yield();
    pthread_exit(NULL);
}
static long leaves_call(void *arg) {
    pthread_exit(NULL);
    return 0;
}
static void thread_like(void *arg) {
    gort_once once = {0};
    uint64_t r = (uint64_t)(uintptr_t)arg;
    void *value = (void *)(uintptr_t)(r << 8 | 0x55);
    CHECKF(pthread_getspecific(thread_key) == NULL, "a new thread has a value");
    CHECK_EQ(pthread_setspecific(thread_key, value), 0);
    dawdles(gort_id() ? get(&round_no) : 0, r >> 4);
    CHECKF(pthread_getspecific(thread_key) == value, "a thread's value has changed");
    if (r % 8 == 1) gort_exit();
    if (r % 8 == 2) pthread_exit(NULL);
    if (r % 8 == 3) gort_once_do(&once, leaves_once, NULL);
    if (r % 8 == 4) gort_blocking(leaves_call, NULL);
    CHECKF(r % 8 < 2 || r % 8 > 4, "it has not left, by way %d", (int)(r % 8));
}

static int go_thread(gort_fn *fn, void *arg) {
    int e = gort_go_with(&(gort_attr){.thread = 1}, fn, arg);
    CHECKF(e == 0 || e == -ENOTSUP || e == -EAGAIN || e == -ENOMEM || e == -ENOTCONN,
           "a goroutine that is a thread: %d", e);
    return e;
}
static void with_thread(int mine, uint64_t r) {
    if (!crowded()) go_thread(thread_like, (void *)(uintptr_t)(r & 0xffff));
    still(mine);
}

typedef void doing(int mine, uint64_t r);

/* END_KINDS=once,tree: only what has one of these in its name. in_want has to be named. */
typedef struct Kinds {
    struct {
        const char *name;
        doing *fn;
    } all[24];
    doing *drawn[24];
    unsigned n;
} Kinds;
#define KIND(fn) \
    { #fn, fn }
static Kinds both = {.all = {KIND(with_mutex),       KIND(with_rwmutex),      KIND(with_cond),
                             KIND(with_sem),         KIND(with_wg),           KIND(with_chan),
                             KIND(with_select),      KIND(with_time),         KIND(with_ctx),
                             KIND(with_descriptors), KIND(with_sockets),      KIND(with_house),
                             KIND(with_goroutines),  KIND(with_tree),         KIND(with_once),
                             KIND(with_group),       KIND(with_shared_group), KIND(with_old_timer),
                             KIND(with_inspection),  KIND(with_thread)}};

static bool is_wanted(const char *name) {
    char list[400], *save;
    snprintf(list, sizeof list, "%s", getenv("END_KINDS") ? getenv("END_KINDS") : "");
    if (list[0] == 0) return strcmp(name, "in_want") != 0;
    for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save))
        if (strstr(name, w)) return true;
    return false;
}

static void draw_from(Kinds *k) {
    for (int i = 0; k->all[i].fn; i++)
        if (is_wanted(k->all[i].name)) k->drawn[k->n++] = k->all[i].fn;
}

/* ---- what only goroutines do ----------------------------------------------------------------- */

/* The text of its error is the thread's: for TSan, who frees it races with who wrote it, another
 * goroutine. */
static void in_loader(void) {
#ifndef __SANITIZE_THREAD__
    dlsym(RTLD_DEFAULT, "no_such_name");
#endif
}

static void in_libc(int mine, uint64_t r) {
    for (unsigned i = 0; i < r % 400; i++) {
/* one that sleeps for the lock of `null` comes back after the end, and TSan is not told what it did
 * before (init.c) */
#ifndef __SANITIZE_THREAD__
        fprintf(null, "%d %s %g\n", (int)i, "a line", 1.5 * i);
#endif
        void *p = malloc(1 + r % 3000);
        if (i % 16 == 0) in_loader();
        free(p);
        still(mine);
    }
}

static uint64_t spun;
static void in_loop(int mine, uint64_t r) {
    bool for_ever = r % 8 == 0;
    for (uint64_t i = 0; for_ever || i < r % 3000000; i++) {
        __atomic_store_n(&spun, i, __ATOMIC_RELAXED);
        if (i % 64 == 0) still(mine);
    }
}

static void unannounced(int mine, uint64_t r) {
#ifdef __SANITIZE_THREAD__
    return; /* there such a goroutine comes back after the end, to its next call (init.c) */
#endif
    usleep((useconds_t)(r % 20000));
    still(mine);
    in_loop(mine, r >> 8 | 1);
}

static long naps(void *arg) {
    usleep((useconds_t)(intptr_t)arg);
    return 0;
}
static void in_call(int mine, uint64_t r) {
    if (r & 1) {
        gort_blocking(naps, (void *)(intptr_t)(r % 2000));
    } else {
        gort_enter_syscall();
        usleep((useconds_t)(r % 2000));
        gort_exit_syscall();
    }
    still(mine);
}

static void locked(int mine, uint64_t r) {
    gort_lock_thread();
    if (both.n) both.drawn[r % both.n](mine, r >> 8);
    gort_unlock_thread();
}

static void stops_world(int mine, uint64_t r) {
    gort_stop_world();
    still(mine);
    if (r & 1) fprintf(null, "the world stands\n");
    gort_start_world();
}

#if !defined __SANITIZE_THREAD__ && \
    !defined __SANITIZE_ADDRESS__ /* which know nothing of jumps between stacks */
#define JUMPS 1
#else
#define JUMPS 0
#endif

/* A function that libc calls: it computes, prints, sleeps, and leaves by a return or by a jump.
 * Whoever unwinds from there, as an exception does, has to come to the goroutine's first function,
 * whatever stands in the way out of libc. */
typedef struct Callback {
    jmp_buf out;
    int mine;
    uint64_t r;
    bool seen;
} Callback;
static void start_one(void *arg);

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *c, void *arg) {
    Callback *cb = arg;
    cb->seen |= _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(c)) == (void *)start_one;
    return cb->seen ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static int called_back(const void *a, const void *b, void *arg) {
    Callback *cb = arg;
    uint64_t r = test_random(&cb->r);
    still(cb->mine);
    for (uint64_t i = 0; i < r % 100000; i++) __atomic_store_n(&spun, i, __ATOMIC_RELAXED);
    if (r >> 20 & 1) fprintf(null, "called back %d\n", (int)r);
    if ((r >> 21 & 7) == 0) usleep((useconds_t)(r >> 24 & 255));
    if (JUMPS && (r >> 40 & 3) == 0) {
        cb->seen = false;
        _Unwind_Backtrace(look_at_frame, cb);
        CHECKF(cb->seen, "an exception would not come out of libc");
    }
    still(cb->mine);
    if (JUMPS && (r >> 32 & 7) == 0) longjmp(cb->out, 1);
    return *(const int *)a - *(const int *)b;
}

static void in_callback(int mine, uint64_t r) {
    Callback cb = {.mine = mine, .r = r | 1};
    int a[6] = {3, 1, 2, 6, 5, 4};
    if (setjmp(cb.out) == 0) qsort_r(a, 6, sizeof a[0], called_back, &cb);
    still(mine);
}

/* A coroutine of the program's, on a stack of the program's. */
enum { COROUTINES = 64, REST = 20 };
typedef struct Coroutine {
    /* by round: one that was left behind in the kernel leaves libc on this stack, so it rests for
     * some rounds */
    int taken, mine;
    uint64_t r;
    ucontext_t self, back;
    char stack[64 << 10] __attribute__((aligned(16)));
} Coroutine;
static Coroutine coroutines[COROUTINES];

static void prints_apart(int i) {
    Coroutine *co = &coroutines[i];
    in_libc(co->mine, co->r);
}

static void in_coroutine(int mine, uint64_t r) {
    int i = (int)(r % COROUTINES);
    Coroutine *co = &coroutines[i];
    int by = get(&co->taken);
    if (!JUMPS || (by && by + REST > mine)) return;
    if (!__atomic_compare_exchange_n(&co->taken, &by, mine, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    co->mine = mine;
    co->r = r >> 8;
    getcontext(&co->self);
    co->self.uc_stack.ss_sp = co->stack;
    co->self.uc_stack.ss_size = sizeof co->stack;
    co->self.uc_link = &co->back;
    makecontext(&co->self, (void (*)(void))prints_apart, 1, i);
    swapcontext(&co->back, &co->self);
    set(&co->taken, 0);
}

/* A handler of the program's interrupts whatever the thread is in that runs this. On the alternate
 * stack, where it has one. */
static int poked, handled;
static void handler(int signo) {
    for (int i = 0; i < 200; i++) getppid(); /* moments in libc of its own */
#ifndef __SANITIZE_THREAD__                  /* there it comes back (init.c) */
    if (get(&poked) & 1) usleep(300);
#endif
    set(&handled, 1);
}

static void interrupted(int mine, uint64_t r) {
    set(&poked, (int)syscall(SYS_gettid));
    in_libc(mine, r);
    set(&poked, 0);
}

/* The next poke comes when the handler has ended, or its thread has: a thread that finds another
 * signal behind each handler never comes to its own work. */
static void *pokes(void *arg) {
    for (; !get(&quit); usleep(300)) {
        int tid = get(&poked);
        set(&handled, 0);
        if (tid == 0 || syscall(SYS_tgkill, getpid(), tid, SIGUSR2) != 0) continue;
        while (!get(&handled) && tid == get(&poked) && !get(&quit)) usleep(300);
    }
    return NULL;
}

/* Most are refused: there is room for few in a runtime. */
static void makes_page(int mine, uint64_t r) {
    gort_debug_listen(r % 8 ? "127.0.0.1:0" : "localhost:0");
    still(mine);
}

/* No kernel threads for a while: the next round has them again (one_round). */
static void limit_threads(rlim_t n) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NPROC, &limit), 0);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
}
static void in_want(int mine, uint64_t r) {
    if (r % 16) return;
    limit_threads(1);
    for (int i = (int)(r >> 8) % 4; i >= 0; i--) with_thread(mine, r >> (12 + i));
    gort_sleep((int64_t)(r >> 20) % 300 * GORT_US);
    limit_threads(RLIM_INFINITY);
    still(mine);
}

static Kinds alone = {.all = {KIND(in_libc), KIND(in_loop), KIND(unannounced), KIND(in_call),
                              KIND(locked), KIND(stops_world), KIND(in_callback),
                              KIND(in_coroutine), KIND(interrupted), KIND(makes_page),
                              KIND(in_want)}};

static void start_one(void *arg) {
    int mine = get(&round_no);
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (;;) {
        uint64_t r = test_random(&seed) >> 4, what = r % (both.n ? 64 : alone.n);
        still(mine);
        if (what < alone.n) alone.drawn[what](mine, r >> 8);
        else both.drawn[what % both.n](mine, r >> 8);
        __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    }
}

/* ---- plain threads --------------------------------------------------------------------------- */

static void held_here(void) {
    if (!get(&hold)) return;
    add(&held, 1);
    wait_until(!get(&hold));
    add(&held, -1);
}

static void *plain_thread(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (; !get(&quit); held_here()) {
        uint64_t r = test_random(&seed) >> 4;
        if (both.n) both.drawn[r % both.n](0, r >> 8);
        else usleep(100);
        __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* One request to the live page, whose answer is read for a while. */
static void read_page(uint64_t r) {
    static const char *const paths[] = {"events",
                                        "trace?seconds=1&token=t",
                                        "debug/pprof/profile?seconds=1&token=t",
                                        "goroutines",
                                        "metrics",
                                        "debug/pprof/block?seconds=1&token=t",
                                        "leaks",
                                        "debug/pprof/created",
                                        "trace?last=1&token=t",
                                        "debug/pprof/"};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)get(&page_port)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {0, 1000 + (int)(r >> 8) % 20000};
    char buf[2000];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (at.sin_port != 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
        int n = snprintf(buf, sizeof buf, "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
                         paths[r % (sizeof paths / sizeof *paths)], (int)ntohs(at.sin_port));
        if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n)
            for (int i = 0; i < 3 && read(fd, buf, sizeof buf) > 0; i++) continue;
    } else {
        usleep(500);
    }
    close(fd);
}

static void *client(void *arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (; !get(&quit); held_here()) read_page(test_random(&seed) >> 4);
    return NULL;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int free_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* The port may have become somebody else's meanwhile: then there is no page in this round. */
static void open_page(void) {
    char addr[40];
    int port = free_port();
    snprintf(addr, sizeof addr, "127.0.0.1:%d", port);
    if (gort_debug_listen(addr) == 0) set(&page_port, port);
}

static int body(int argc, char **argv) {
    uint64_t seed = (uint64_t)(uintptr_t)argv;
    uint64_t r = test_random(&seed) >> 4;
    CHECK_EQ(gort_id(), 1);
    int n = 1 + (int)(r % MOST);
    if (r >> 32 & 1) open_page();
    for (int i = 0; i < n; i++) {
        void *arg = (void *)(uintptr_t)(test_random(&seed) | 1);
        if ((r >> 33 & 3) != 0 || go_thread(start_one, arg) != 0) gort_go(start_one, arg);
    }
    switch ((r >> 8) % 4) {
    case 0: break;
    case 1: gort_yield(); break;
    case 2: gort_sleep((int64_t)((r >> 16) % 300) * GORT_US); break;
    default: gort_sleep((int64_t)((r >> 16) % 15000) * GORT_US); break;
    }
    return 0;
}

/* Whatever a dead goroutine held is released for it; then the object is as new. */
static void mutex_at_rest(gort_mutex *mu) {
    if (gort_mutex_try_lock(mu) < 0) gort_mutex_unlock(mu);
    else gort_mutex_unlock(mu);
    CHECKF(AT_REST(*mu) == 0, "a mutex in state %x after the end", mu->state_);
}

static void rwmutex_at_rest(gort_rwmutex *rw) {
    while (rw->readers_ >= 4) gort_rwmutex_runlock(rw);
    if (rw->readers_ & 1) gort_rwmutex_unlock(rw);
    CHECKF(AT_REST(rw->w_) == 0, "the writers' mutex of an rwmutex in state %x", rw->w_.state_);
    CHECKF(rw->readers_ == 0, "an rwmutex in state %x after the end", (unsigned)rw->readers_);
}

static void everything_at_rest(void) {
    uint64_t v;
    for (int i = 0; i < KIN; i++) {
        mutex_at_rest(&mutexes[i]);
        mutex_at_rest(&cond_mutexes[0][i]);
        mutex_at_rest(&cond_mutexes[1][i]);
        rwmutex_at_rest(&rwmutexes[i]);
        CHECKF(conds[i].head_ == NULL, "somebody waits on a condition after the end");
        CHECKF(sems[i].head_ == NULL, "somebody waits for a semaphore after the end");
        CHECKF(sems[i].permits_ <= 6, "a semaphore has %lld permits", (long long)sems[i].permits_);
        sems[i].permits_ = 6;
        CHECKF(wgs[i].waiters_ == NULL, "somebody waits for a wait group after the end");
        CHECKF(wgs[i].state_ >> 32 == 0, "%d goroutines of a wait group after the end",
               (int)(wgs[i].state_ >> 32));
        while (gort_chan_try_recv(chans[i], &v) == 0) continue;
        gort_chan_release(chans[i]); /* fatal where somebody waits */
        chans[i] = gort_chan_new(sizeof(uint64_t), (size_t)i);
    }
}

static void new_trees(void) {
    for (int i = 0; i < KIN; i++) {
        gort_ctx_release(trees[i]);
        trees[i] = gort_ctx_new(NULL);
        tree_done[i] = gort_ctx_done(trees[i]);
        for (int k = 0; k < LEAVES; k++) {
            gort_ctx_release(leaves[i][k]);
            leaves[i][k] = gort_ctx_new(k < LEAVES / 2 ? trees[i] : leaves[i][k - LEAVES / 2]);
            leaf_done[i][k] = gort_ctx_done(leaves[i][k]);
        }
    }
}

static void trees_are_whole(void) {
    for (int i = 0; i < KIN; i++) {
        int want = gort_chan_try_recv(tree_done[i], NULL), open = 0;
        for (int k = 0; k < LEAVES; k++) open += gort_chan_try_recv(leaf_done[i][k], NULL) != want;
        CHECKF(open == 0, "%d of %d contexts of a tree that is %s are not", open, LEAVES,
               want == -EPIPE ? "cancelled" : "alive");
    }
    new_trees();
}

/* Done, or free; then it runs. Its function may have come to its end before: there is a moment
 * between that and "done". */
static void onces_are_free(void) {
    for (int i = 0; i < KIN; i++) {
        bool done = onces[i].done_;
        CHECKF(AT_REST(onces[i].m_) == 0, "a once in state %x after the end", onces[i].m_.state_);
        CHECKF(!done || get(&once_begun[i]), "a once is done that has not begun");
        set(&once_begun[i], 0);
        gort_once_do(&onces[i], runs_once, (void *)(uintptr_t)i);
        CHECK_EQ(get(&once_begun[i]), !done);
        onces[i] = (gort_once){0};
        set(&once_begun[i], 0);
    }
}

static void new_group(void) {
    if (shared) {
        int e = gort_group_wait(shared);
        CHECKF(e == 0 || e == -ENOTCONN, "the group of all: %d", e);
    }
    set(&shared, gort_group_new(NULL, 5));
}

/* A trace that a goroutine has begun is the program's, and can be ended; then there can be another.
 * A start or a stop that was under way, as a function of gort_blocking, may still finish. */
static bool trace_begins(void) {
    int e = gort_trace_stop();
    CHECKF(e == 0 || e == -EINVAL, "gort_trace_stop after the end: %d", e);
    return gort_trace_start("/dev/null") == 0;
}
static void traces_are_free(void) {
    wait_until(trace_begins());
    CHECK_EQ(gort_trace_stop(), 0);
}

/* A listener, and whatever else of the unix family: goroutines of this program make no others.
 * The pages of the library are of another family. */
static bool ours(int fd) {
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 || at.ss_family != AF_UNIX) return false;
    close(fd);
    return true;
}

static void libc_is_free(void) {
    fprintf(null, "between two runtimes\n");
    fflush(null);
    free(malloc(100));
    in_loader();
}

/* A child has none of the threads that goroutines of the rounds were, and some of its own. */
static int child_body(int argc, char **argv) {
    for (uintptr_t i = 0; i < 8; i++) go_thread(thread_like, (void *)i);
    wait_until(gort_count() == 1);
    return 42;
}
static void try_child(void) {
    int status;
    if (!JUMPS) return; /* under a sanitizer there are none such */
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        add(&round_no, 1);
        _exit(gort_main(child_body, 0, NULL));
    }
    CHECK_GT(child, 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 42, "a child that runs gort again: %x",
           (unsigned)status);
}

static void one_round(uint64_t *seed) {
    static Growth growth;
    add(&round_no, 1);
    CHECK_EQ(gort_main(body, 0, (char **)(uintptr_t)(test_random(seed) | 1)), 0);
    set(&over, get(&round_no));
    limit_threads(RLIM_INFINITY);
    set(&page_port, 0);
    CHECK_EQ(gort_count(), 0);
    CHECK_EQ(gort_go(nothing, NULL), -ENOTCONN);
    libc_is_free();
    set(&poked, 0);
    set(&hold, 1);
    wait_until(get(&held) == THREADS);
    if (rounds % 16 == 0 && is_wanted("with_thread")) try_child();
    everything_at_rest();
    trees_are_whole();
    onces_are_free();
    traces_are_free();
    new_group();
    gort_ctx_release(ctx);
    ctx = gort_ctx_new(NULL);
    /* the poker, and the library's for signals and deadlines */
    growth_look(&growth, 1 + THREADS + 1 + 2, ours);
    set(&hold, 0);
    wait_until(get(&held) == 0);
    rounds++;
}

/* The limit does not hold for root. A deadline that never comes keeps the thread of deadlines:
 * where the end of a runtime can start none, they are lost, and the library says so. */
static void prepare_want(void) {
    uid_t nobody = 200000 + (uid_t)getpid() % 100000;
    if (geteuid() == 0 && setresuid(nobody, nobody, nobody) == 0) prctl(PR_SET_DUMPABLE, 1);
    CHECK(gort_ctx_with_timeout(NULL, 24 * 3600 * GORT_SEC) != NULL);
}

static int make_timers(int argc, char **argv) {
    for (int i = 0; i < KIN; i++) timers[i] = gort_timer_new(GORT_SEC, nothing, NULL);
    return 0;
}

int main(int argc, char **argv) {
    uint64_t seed = stress_args(argc, argv);
    pthread_t threads[THREADS], poker;
    if (is_wanted("in_want")) prepare_want();
    growth_begin();
    draw_from(&both);
    draw_from(&alone);
    CHECKF(both.n + alone.n > 0, "END_KINDS=%s names nothing", getenv("END_KINDS"));
    setenv("GORT_HTTP_TOKEN", "t", 1);
    null = fopen("/dev/null", "w");
    pool = gort_pool_new(NULL, NULL, NULL);
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < KIN; i++) {
        chans[i] = gort_chan_new(sizeof(uint64_t), (size_t)i);
        sems[i].permits_ = 6;
        CHECK_EQ(pipe(pipes[i]), 0);
    }
    CHECK_EQ(pthread_key_create(&thread_key, value_ends), 0);
    CHECK_EQ(gort_main(make_timers, 0, NULL), 0);
    ctx = gort_ctx_new(NULL);
    new_trees();
    new_group();
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
    CHECK_EQ(pthread_create(&poker, NULL, pokes, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i < CALLERS ? plain_thread : client,
                                (void *)(uintptr_t)(test_random(&seed) | 1)),
                 0);
    int64_t until = gort_now() + stress_seconds() * GORT_SEC;
    while (gort_now() < until) one_round(&seed);
    set(&quit, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_join(poker, NULL);
    printf("%" PRIu64 " runtimes, %" PRIu64 " steps\n", rounds, steps);
    return 0;
}
