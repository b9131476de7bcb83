/*
 * A machine in one thread, in virtual time. It takes the place of os_linux.c and of libc's threads,
 * and the library runs on it as it is, object by object: init.c, find.c, wake.c, the monitor, the
 * maker, preemption by signal, retake, stop-the-world. So what the scheduler does at 1 to 4 Ps,
 * with threads that overtake each other, goes the same way every time for a seed, and how long
 * somebody waits is known to the nanosecond, however loaded the real machine is.
 *
 * A thread is a coroutine with a point in time at which it goes on. The earliest one runs, until
 * its time has passed that of another. Time passes at points: every call of the operating system,
 * and the functions of the library that the linker wraps (POINTS in fair.mk). Each takes between 20
 * and 200 ns, now and then some microseconds, and rarely as long as the kernel may put a thread
 * aside; how rarely, and how long a thread takes to wake up, is the weather, drawn from the seed.
 * Every thread has a CPU of its own.
 *
 * What is real: memory, descriptors (pipes, epoll without waiting), the table of signal handlers. A
 * thread that waits in the poller looks again whenever somebody pokes.
 */
#include "machine.h"
#include "arch.h"
#include "sched/globalq.h"
#include "sched/runq.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 200, STACK = 256 << 10, TID = 1000, ALARM = 1 << 20 };
#define BEGIN (1000 * GORT_SEC)

typedef struct Thread {
    void *sp;
    M *m, *runner; /* its thread-locals */
    int err;
    void *(*fn)(void *);
    void *arg;
    bool used, done;
    bool asleep; /* in the kernel */
    bool polls, alarm;
    bool computing; /* since `began`; a signal ends it */
    uint32_t *futex;
    int64_t at; /* when it goes on */
    int64_t cpu, began;
    int signo; /* to be delivered */
} Thread;

static Thread threads[THREADS];
static int nthreads;
static Thread *self;
static int64_t others_at; /* when the first of the others goes on */
static int64_t watched_at;
static uint64_t chance;
static struct {
    uint64_t aside_one_of; /* points at which the kernel puts the thread aside */
    int64_t aside, wake_up;
} weather;
static int64_t alarm_when = GORT_FOREVER;

uint64_t machine_draw(uint64_t n) { return (random_next(&chance) >> 16) % n; }
int64_t machine_now(void) { return self->at; }

/* ---- threads and time ------------------------------------------------------------------------ */

static NOINLINE void switch_to(Thread *next) {
    Thread *me = self;
    me->m = tls_m, me->runner = tls_runner, me->err = errno;
    self = next;
    arch_switch(&me->sp, next->sp);
    tls_m = self->m, tls_runner = self->runner, errno = self->err;
}

static Thread *earliest(void) {
    Thread *first = NULL;
    others_at = GORT_FOREVER;
    for (int i = 0; i < nthreads; i++) {
        Thread *t = &threads[i];
        if (t->done) continue;
        if (first == NULL || t->at < first->at) {
            if (first && first->at < others_at) others_at = first->at;
            first = t;
        } else if (t->at < others_at) {
            others_at = t->at;
        }
    }
    return first;
}

/* The time of this thread is self->at: those who are earlier come first. */
static NOINLINE void go_on(void) {
    if (likely(!self->done && self->at <= others_at && self->at < watched_at)) return;
    Thread *next = earliest();
    if (next->at >= watched_at) {
        watched_at = next->at + GORT_MS;
        machine_watch(next->at);
    }
    if (next->at == GORT_FOREVER) {
        printf("nobody is awake\n");
        machine_tell_and_fail();
    }
    if (next != self) switch_to(next);
}

static void pass(int64_t ns) {
    self->cpu += ns;
    self->at += ns;
    go_on();
}

static void point(void) {
    int64_t ns = 20 + (int64_t)machine_draw(180);
    if (machine_draw(40) == 0) ns += (int64_t)machine_draw(8 * GORT_US);
    if (machine_draw(weather.aside_one_of) == 0) {
        self->asleep = false;
        ns += (int64_t)machine_draw((uint64_t)weather.aside);
    }
    pass(ns);
}

static void sleep_until(int64_t when) {
    self->asleep = true;
    self->at = when > self->at ? when : self->at;
    go_on();
    self->asleep = false;
}

static void wake(Thread *t) {
    int64_t when = self->at + GORT_US + (int64_t)machine_draw((uint64_t)weather.wake_up);
    if (when < t->at) t->at = when;
    if (t->at < others_at) others_at = t->at;
}

static void thread_entry(void *arg) {
    Thread *t = arg;
    tls_m = tls_runner = NULL;
    t->fn(t->arg);
    t->done = true;
    go_on();
    abort();
}

static Thread *spawn(void *(*fn)(void *), void *arg) {
    static char *stacks[THREADS];
    int i = 0;
    while (i < nthreads && !threads[i].done) i++;
    if (i == THREADS) {
        printf("too many threads\n");
        machine_tell_and_fail();
    }
    if (i == nthreads) nthreads++;
    if (stacks[i] == NULL)
        stacks[i] = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    threads[i] = (Thread){.used = true,
                          .fn = fn,
                          .arg = arg,
                          .at = self->at + 5 * GORT_US + (int64_t)machine_draw(50 * GORT_US)};
    threads[i].sp = arch_first_frame(stacks[i] + STACK, thread_entry, &threads[i]);
    others_at = 0; /* look anew */
    return &threads[i];
}

void machine_thread(void *(*fn)(void *), void *arg) { spawn(fn, arg); }

void machine_begin(uint64_t seed) {
    chance = (seed + 1) * 0x9E3779B97F4A7C15ULL | 1;
    for (int i = 0; i < 8; i++) random_next(&chance); /* seeds that are neighbours part */
    static const uint64_t one_of[] = {300, 3000, 30000};
    weather.aside_one_of = one_of[machine_draw(3)];
    weather.aside = (int64_t)(GORT_US << machine_draw(9)); /* up to a quarter of a millisecond */
    weather.wake_up = (int64_t)(2 * GORT_US << machine_draw(6));
    self = &threads[0];
    *self = (Thread){.used = true, .at = BEGIN};
    nthreads = 1;
    others_at = GORT_FOREVER;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg) {
    pass(10 * GORT_US);
    *thread = (pthread_t)spawn(fn, arg);
    return 0;
}
int __wrap_pthread_join(pthread_t thread, void **result) {
    while (!((Thread *)thread)->done) os_nap(20 * GORT_US);
    return 0;
}
int __wrap_pthread_detach(pthread_t thread) { return 0; }

/* ---- signals --------------------------------------------------------------------------------- */

static void deliver(void) {
    static ucontext_t context;
    siginfo_t info = {.si_code = SI_TKILL};
    struct sigaction sa;
    info.si_pid = os_getpid();
    sigaction(self->signo, NULL, &sa);
    self->signo = 0;
    machine_interrupted(true);
    sa.sa_sigaction(SIGURG, &info, &context);
    machine_interrupted(false);
}

void machine_compute(int64_t ns) {
    while (ns > 0) {
        if (self->signo) deliver();
        self->computing = true;
        self->began = self->at;
        self->at += ns;
        go_on();
        self->computing = false;
        self->cpu += self->at - self->began;
        ns -= self->at - self->began;
    }
    if (self->signo) deliver();
}

void machine_sleep(int64_t ns) {
    point();
    sleep_until(self->at + ns);
    point();
}

/* ---- what os.h asks for ---------------------------------------------------------------------- */

int64_t os_now(void) {
    if (nthreads == 0) return 0; /* a constructor asks: the machine has not begun */
    point();
    return self->at;
}

int os_gettid(void) { return TID + (int)(self - threads); }
int os_thread_clock(int tid) { return tid; }
int64_t os_thread_cpu(int clock) {
    Thread *t = &threads[clock - TID];
    point();
    return t->done ? -1 : t->cpu + (t->computing ? self->at - t->began : 0);
}
bool os_thread_blocks(int tid, int signo) { return false; }
long os_thread_sleeps_in(int tid) { return -2; }
char os_thread_state(int tid) {
    point();
    Thread *t = &threads[tid - TID];
    return t->done ? 0 : t->asleep ? 'S' : 'R';
}
int os_thread_count(void) {
    int n = 0;
    for (int i = 0; i < nthreads; i++) n += !threads[i].done;
    return n;
}
int os_tgkill(int tid, int signo) {
    Thread *t = &threads[tid - TID];
    t->signo = signo;
    if (t->computing) wake(t);
    point();
    return 0;
}

int os_futex_wait(uint32_t *word, uint32_t value, int64_t deadline) {
    point();
    if (load_rlx(word) != value) return 0;
    self->futex = word;
    sleep_until(deadline);
    bool woken = self->futex == NULL;
    self->futex = NULL;
    return woken ? 0 : -ETIMEDOUT;
}
void (*os_wake_refused)(void);
void os_futex_wake(uint32_t *word, int count) {
    point();
    for (int i = 0; i < nthreads && count > 0; i++) {
        Thread *t = &threads[i];
        if (t->done || t->futex != word) continue;
        t->futex = NULL;
        wake(t);
        count--;
    }
    point();
}

int os_alarm_open(void) { return ALARM; }
void os_alarm_close(int fd) {}
int os_alarm_set(int fd, int64_t when) {
    point();
    alarm_when = when;
    for (int i = 0; i < nthreads; i++) {
        if (threads[i].done || !threads[i].alarm) continue;
        threads[i].at = when;
        if (when <= self->at) wake(&threads[i]);
        others_at = 0;
    }
    return 0;
}
int os_alarm_wait(int fd, int signo, int64_t most) {
    self->alarm = true;
    sleep_until(alarm_when);
    self->alarm = false;
    alarm_when = GORT_FOREVER;
    point();
    return true;
}

void os_yield(void) { pass(GORT_US); }
void os_nap(int64_t ns) { machine_sleep(ns + 50 * GORT_US); } /* the kernel's slack */
int os_membarrier_register(void) { return 0; }
int os_membarrier(void) {
    pass(2 * GORT_US);
    return 0;
}
int os_cpu_count(void) { return 4; }
int os_cpu_quota(void) { return 0; }
int os_io_workers(void) { return 0; }
bool os_space_limited(void) { return false; }
void os_cgroup_root(const char *root) {}

void machine_poke(void) {
    for (int i = 0; i < nthreads; i++)
        if (!threads[i].done && threads[i].polls) wake(&threads[i]);
    point();
}

static long wait_for_events(long epfd, long events, long max, int64_t until) {
    for (;;) {
        long n = arch_sys6(SYS_epoll_pwait, epfd, events, max, 0, 0, 0);
        if (n != 0 || self->at >= until) return n;
        self->polls = true;
        sleep_until(until);
        self->polls = false;
        point();
    }
}

long os_sys(long nr, long a, long b, long c, long d, long e, long f) {
    point();
    if (nr == SYS_sigaltstack) return 0;
    if (nr == SYS_epoll_pwait2) {
        struct timespec *ts = (struct timespec *)d;
        return wait_for_events(a, b, c,
                               ts ? self->at + ts->tv_sec * GORT_SEC + ts->tv_nsec : GORT_FOREVER);
    }
    long r = arch_sys6(nr, a, b, c, d, e, f);
    if (nr == SYS_write || nr == SYS_epoll_ctl) machine_poke();
    return r;
}
long os_write(int fd, const void *buf, size_t n) {
    return os_sys(SYS_write, fd, (long)buf, (long)n, 0, 0, 0);
}
int os_fd_away(int fd) { return fd; }
int os_fd_copy_away(int fd) { return -EMFILE; }
int os_open_beyond(const char *path) { return -EMFILE; }
int os_getpid(void) { return 1; }

void *os_map(size_t size, bool stack) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    return at == MAP_FAILED ? NULL : at;
}
void os_unmap(void *at, size_t size) { munmap(at, size); }
int os_protect_none(void *at, size_t size) { return mprotect(at, size, PROT_NONE); }
int os_guard_install(void *at, size_t size) { return -EINVAL; }
int os_discard(void *at, size_t size) { return madvise(at, size, MADV_DONTNEED); }
void os_populate(void *at, size_t size) {}
int os_no_huge(void *at, size_t size) { return 0; }
int os_huge(void *at, size_t size) { return 0; }
int os_dump(void *at, size_t size, bool yes) { return 0; }

/* ---- points between two steps of the library ------------------------------------------------- */

#define POINT(type, name, params, args) \
    type __real_##name params;          \
    type __wrap_##name params;          \
    type __wrap_##name params {         \
        point();                        \
        return __real_##name args;      \
    }
POINT(void, handoff_p, (M * m, P *p), (m, p))
POINT(void, give_p, (M * m, P *p, bool spinning), (m, p, spinning))
POINT(void, wakep, (M * m), (m))
POINT(void, wake_after_submit, (M * m), (m))
POINT(void, m_stop, (M * m), (m))
POINT(void, home_send, (M * m, G *gp), (m, gp))
POINT(G *, home_wait, (M * m), (m))
POINT(P *, idle_p_take, (P * wanted), (wanted))
POINT(void, global_put, (G * gp), (gp))
POINT(void, ready, (M * m, G *gp), (m, gp))
POINT(M *, block_begin, (M * m), (m))
POINT(M *, block_end, (M * m), (m))
POINT(void *, park_begin, (M * m, Lock *l, int reason), (m, l, reason))

/* FAIR_LOG: what each search found. */
G *__real_find_runnable(M *m);
G *__wrap_find_runnable(M *m);
G *__wrap_find_runnable(M *m) {
    static int logs = -1;
    point();
    P *p = m->p;
    if (logs < 0) logs = getenv("FAIR_LOG") != NULL;
    if (!logs) return __real_find_runnable(m);
    uint32_t over = p->turn, look = p->look, queue = p->tail - p->head;
    bool passed = p->ring_next, slot = p->runnext != NULL;
    G *gp = __real_find_runnable(m);
    printf("%9ld us M%u P%u slice over %u look %u passed over %d slot %d queue %u global %u -> "
           "%ld%s\n",
           (long)((self->at - BEGIN) / GORT_US), m->id, p->id, over, look, passed, slot, queue,
           global_count(), gp ? (long)gp->id : -1L, m->inherit ? " inherits" : "");
    return gp;
}

/* ---- when something is wrong ----------------------------------------------------------------- */

_Noreturn void machine_tell_and_fail(void) {
    printf("  procs %u, idle %u, searchers %u, taken %u, in calls %u, poll waiters %u, polled at "
           "%ld us, global %u, pool %u of %u\n",
           sched.procs, sched.npidle, sched.spinning, sched.taken, sched.in_syscall,
           sched.poll_waiters, sched.polled_at ? (long)((sched.polled_at - BEGIN) / GORT_US) : 0L,
           global_count(), sched.idle_m_count, sched.m_count);
    for (uint32_t i = 0; i < sched.procs; i++) {
        P *p = sched.ps[i];
        printf("  P%u status %u M %ld queue %u slot %d timer in %ld us\n", p->id, p->status,
               p->m ? (long)p->m->id : -1L, p->tail - p->head, p->runnext != NULL,
               p->timers.first == GORT_FOREVER ? -1L
                                               : (long)((p->timers.first - self->at) / GORT_US));
    }
    for (M *m = sched.all_ms; m; m = m->all)
        if (m->alive && !m->plain)
            printf("  M%u P %ld goroutine %lu%s%s%s, %u wait for it, attn %u\n", m->id,
                   m->p ? (long)m->p->id : -1L, m->curg ? (unsigned long)m->curg->id : 0,
                   m->lockedg ? " locked" : "", m->in_handler ? " in the handler" : "",
                   m->in_poll ? " in the poller" : "", m->soft.count, m->attn);
    fflush(stdout);
    _exit(1);
}
