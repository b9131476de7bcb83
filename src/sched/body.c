/*
 * Goroutines that are threads to libc: what a thread has of its own (__thread variables, errno,
 * locale, keys, malloc's cache, its name as the owner of locks) is the goroutine's, on whatever
 * kernel thread it runs. Libraries that keep such state over a call that waits need it.
 *
 * All of that hangs on the thread pointer. libc builds it: pthread_create makes a thread on our
 * stack, with descriptor and variables at its top; its kernel thread ends at once, and the body
 * stays. A goroutine on it begins where that thread would run the program's function.
 *
 *   B1  body_take: pthread_create(donor), all signals blocked.
 *   B2  donor: takes back what the kernel knows of the descriptor (rseq's area, the list of robust
 *       mutexes, the word to clear: now `left`), and writes a number of its own in place of the
 *       kernel's tid: locks know their owners by it. Threads have numbers below 2^22, bodies from
 *       2^23 on. From there on setuid(2) sends this thread no signal, which it would not handle.
 *       A goroutine that goes on as another thread takes another number (body_anew): what the
 *       first has left locked is not the second's.
 *   B3  go_without: the context is saved, the kernel thread ends. The maker waits until the kernel
 *       has cleared `left`, and writes the number again: qemu-user clears it, too.
 *   B4  An M that picks the goroutine writes itself into the body's tls_m, takes on its errno,
 *       exceptions (M.errno_at, handling) and floating-point flags, sets the thread pointer and
 *       switches (body_wear). It comes back by g0 and sets its own again (body_doff) before the
 *       goroutine's commit: until then no other thread can run it. A signal in between finds the
 *       same M by either pointer.
 *   B5  The goroutine ends: on g0, a bare clone makes a kernel thread that goes on in donor()
 *       (return_to). Behind it libc ends its thread: destructors, keys, descriptor. That kernel
 *       thread has no M. The kernel clears `left` with it, and the stack can be used again.
 *
 *   B6  body_lead: a whole program's threads are to be goroutines. When main makes its first, its
 *       kernel thread puts another body on (of a donor, `host`), and the runtime lives there; what
 *       main knows as its thread goes on as goroutine 1, on the stack that it has. It keeps its
 *       tid, by which locks know it, and the host takes it too: it is the kernel thread's.
 *
 * pthread_exit and cancellation unwind to live() as to a thread's start; gort_exit jumps there. A
 * goroutine whose runtime has ended loses what it has: its keys' values are dropped, and B5 follows
 * with a context that jumps to live().
 *
 * Rules that follow: a goroutine with a body is never switched to directly, nor leaves directly
 * (m->detour, body_home), so ordinary ones pay nothing. On g0 the thread pointer is the M's.
 * Between body_wear and body_doff nothing of libc's is called on g0.
 *
 * Only glibc's; with another libc, under a sanitizer or with a collector, there are none: -ENOTSUP.
 * So it is where the tid is not found. libc counts bodies as threads: main's pthread_exit does not
 * end the process while there is one.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "sched/body.h"
#include "base/san.h"
#include "base/sysfault.h"
#include "base/upstairs.h"
#include "base/warn.h"
#include "sched/ender.h"
#include "sched/m.h"
#include "sched/preempt.h"
#include "sched/schedule.h"
#include "sched/sched.h"
#include "sched/sim.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

M body_home;
body_nudged_fn *body_nudged;
body_attends_fn *body_attends;
body_passed_fn *body_passed;

#ifdef __GLIBC__

/* glibc's clone, where no other stands before it */
extern int __clone(int (*)(void *), void *, int, void *, ...);

#define MOST_TIDS ((1 << 30) - BODY_TIDS) /* a lock's word has 30 bits for its owner */
#define TIDS_BLOCK (1 << 14)
#define DESCRIPTOR 2304 /* bytes of libc's descriptor that are searched for the tid, at most */
#define LIBC_ROOM ((size_t)8 << 10) /* descriptor, libc's own variables, its first frames */
#define KEPT 64                     /* stacks of bodies that have ended */

typedef struct RobustHead { /* the kernel's */
    void *first;
    long offset;
    void *pending;
} RobustHead;

/* Below the record of its stack. */
struct Body {
    char *tp;        /* the thread pointer */
    void *sp;        /* its context while no goroutine runs on it */
    M **m, **runner; /* its tls_m, tls_runner */
    int *errno_at;   /* its own; while it is worn, those of the thread that wears it */
    Handling *handling;
    uint64_t fp;   /* arch_fp_rest, while no thread wears it */
    uint32_t left; /* atomic: 1 until the kernel thread that gives or ends it has ended */
    int tid;
    BodySignals signals;
    bool not_given; /* valid when left */
    bool lost;      /* its goroutine's runtime has ended */
    int refused;    /* B6: no runtime has begun, for this reason */
    M *maker;
    sigset_t mask; /* the maker's: destructors run with it */
    RobustHead *robust;
    void *start;        /* where pthread_exit and gort_exit jump to, in live() */
    int *tid_at;        /* in the descriptor */
    void (*host)(void); /* B6; else NULL */
    /* own thread, or gp in hand; a hint to others. With bodies_timed: */
    int64_t ran;     /* atomic: CPU time while worn, before now */
    int64_t worn_at; /* atomic: the thread's CPU time when it put it on; -1: none wears it */
    M *worn_by;
    Body *next; /* bodies.lock */
} ALIGNED(64);

static struct {
    Lock lock;
    /* lock: */
    Body *ready;    /* without a goroutine */
    Body *over;     /* to be ended: in want of a kernel thread */
    Body *ended;    /* there is, or was, a kernel thread that ends it */
    uint32_t count; /* of the ended */
    uint32_t ends;  /* of those, how many are not yet in libc's end of a thread */
    bool tids_begun;
    uint32_t tid; /* the next to give, from BODY_TIDS on */
    uint16_t tids_used[MOST_TIDS / TIDS_BLOCK];
} bodies;

static Body *body_of(Stack *s) { return (Body *)(void *)s - 1; }
static Stack *stack_of(Body *b) { return (Stack *)(void *)(b + 1); }
void *body_context(Stack *s) { return body_of(s)->sp; }

/* ---- the donor ------------------------------------------------------------------------------- */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
#define RSEQ_UNREGISTER 1

static long rseq_call(char *tp, int flags) {
    long size = __rseq_size < 32 ? 32 : __rseq_size;
    return os_sys(SYS_rseq, (long)(tp + __rseq_offset), size, flags, ARCH_RSEQ_SIGNATURE, 0, 0);
}
static bool leave_rseq(char *tp) {
    if (&__rseq_size == NULL || __rseq_size == 0) return true;
    int32_t cpu;
    memcpy(&cpu, tp + __rseq_offset + 4, sizeof cpu);
    if (cpu < 0) return true; /* the kernel has none */
    return rseq_call(tp, RSEQ_UNREGISTER) == 0;
}

static int word_at(const char *tp, ptrdiff_t offset) {
    return *(const int *)(const void *)(tp + offset);
}

/* The thread pointer is at libc's descriptor, or at its end, with the variables above. */
static char *descriptor_end(Body *b, char *descriptor) {
    char *end = descriptor + DESCRIPTOR, *most = descriptor < b->tp ? b->tp : (char *)b;
    return end < most ? end : most;
}

/* Where the descriptor has the tid: the one word that is, here and in the maker's thread. */
static int *descriptor_tid(Body *b) {
    char *descriptor = (char *)pthread_self(); /* glibc's is its address */
    ptrdiff_t at = descriptor - b->tp, end = descriptor_end(b, descriptor) - b->tp;
    int tid = os_gettid(), *found = NULL;
    for (; at < end; at += (ptrdiff_t)sizeof tid) {
        if (word_at(b->tp, at) != tid || word_at(b->maker->tp, at) != b->maker->tid) continue;
        if (found) return NULL;
        found = (int *)(void *)(b->tp + at);
    }
    return found;
}

/* B2. cleared: what the kernel clears when this thread ends. */
static bool leave_kernel(Body *b, uint32_t *cleared) {
    size_t size = 0;
    if (b->tid_at == NULL) b->tid_at = descriptor_tid(b);
    if (b->tid_at == NULL || !leave_rseq(b->tp)) return false;
    if (os_sys(SYS_set_tid_address, (long)cleared, 0, 0, 0, 0, 0) < 0) return false;
    *b->tid_at = b->tid;
    /* system calls behind that: where one returns, a signal sent before is handled */
    if (os_sys(SYS_get_robust_list, 0, (long)&b->robust, (long)&size, 0, 0, 0) < 0)
        b->robust = NULL;
    os_sys(SYS_set_robust_list, 0, sizeof(RobustHead), 0, 0, 0, 0);
    return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* They are given in turn, so that one comes again as late as may be. Then a block of them is passed
 * over where any is in use.
 *
 * Processes that share a mutex tell their owners apart: each begins elsewhere, those with pids in a
 * row far from each other. */
#define TIDS_APART 0x9E3779B1U
static uint32_t first_tid(void) {
    uint64_t spread = (uint32_t)os_getpid() * TIDS_APART;
    return (uint32_t)(spread * MOST_TIDS >> 32);
}

static uint16_t *tids_used_at(uint32_t n) { return &bodies.tids_used[n / TIDS_BLOCK]; }

/* bodies.lock. */
static int next_tid_locked(void) {
    if (!bodies.tids_begun) bodies.tid = first_tid();
    bodies.tids_begun = true;
    uint32_t n = bodies.tid;
    for (int i = 0; n % TIDS_BLOCK == 0 && *tids_used_at(n) && i < MOST_TIDS / TIDS_BLOCK; i++)
        n = (n + TIDS_BLOCK) % MOST_TIDS;
    bodies.tid = (n + 1) % MOST_TIDS;
    *tids_used_at(n) += 1;
    return BODY_TIDS + (int)n;
}
static void tid_unused_locked(int tid) { *tids_used_at((uint32_t)(tid - BODY_TIDS)) -= 1; }

static int next_tid(void) {
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    int tid = next_tid_locked();
    unlock(&bodies.lock);
    leave(m);
    return tid;
}
static void tid_unused(int tid) {
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    tid_unused_locked(tid);
    unlock(&bodies.lock);
    leave(m);
}

/* ---- a life ---------------------------------------------------------------------------------- */

/* What the kernel does when a thread ends: the mutexes that it still holds have a dead owner. */
static void robust_end(Body *b) {
    RobustHead *h = b->robust;
    if (h == NULL) return;
    for (void *e = h->first; e != h;) {
        uint32_t *word = (uint32_t *)(void *)((char *)((uintptr_t)e & ~(uintptr_t)1) + h->offset);
        uint32_t v = load_rlx(word);
        e = *(void **)((uintptr_t)e & ~(uintptr_t)1);
        if ((v & FUTEX_TID_MASK) != (uint32_t)b->tid) continue;
        store_seq(word, (v & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
        if (v & FUTEX_WAITERS) os_sys(SYS_futex, (long)word, FUTEX_WAKE, 1, 0, 0, 0); /* shared */
    }
}

static void vanish(void *none) {
    for (;;) arch_sys6(SYS_exit, 0, 0, 0, 0, 0, 0);
}

/* B3. Returns to the thread that switches to b->sp. The kernel thread takes its last steps on room
 * in this frame, where nobody is yet: above the saved context, which valgrind then takes for gone
 * (donate). */
#define LAST_STEPS 512
static NOINLINE void go_without(Body *b) {
    char room[LAST_STEPS];
    arch_switch(&b->sp, arch_first_frame(room + sizeof room, vanish, NULL));
}

/* A life: returns on the kernel thread that ends the body, or in a child of fork, where that is the
 * goroutine's. Its own frame, since registers do not
 * outlive a jump. The goroutine ends inside: until it has, the runtime's end may take it, and jumps
 * here (forsaken). */
static NOINLINE void live(Body *b) {
    union {
        sigjmp_buf jump;
        __pthread_unwind_buf_t libc; /* which unwinds a thread down to here */
    } start;
    b->start = start.jump;
    if (__sigsetjmp(start.jump, 0) == 0) {
        __pthread_register_cancel(&start.libc);
        go_without(b);
        goroutine_with_body();
    }
    if (!b->lost && !in_any_child()) end_with_body(&b->sp);
    __pthread_unregister_cancel(&start.libc);
}

/* bodies.lock. Off the list, the first with such a stack; dead: its kernel thread has gone. NULL:
 * none. */
static Body *pop_sized_locked(Body **list, size_t span, bool dead) {
    Body *b;
    for (; (b = *list) != NULL; list = &b->next) {
        if (span && stack_span(stack_of(b)) != span) continue;
        if (!dead || load_acq(&b->left) == 0) break;
    }
    if (b) *list = b->next;
    if (b && dead) {
        bodies.count--;
        tid_unused_locked(b->tid);
    }
    return b;
}

static int return_to(void *context) {
    void *never;
    arch_switch(&never, context);
    return 0;
}

/* B5. bodies.lock. The new thread's first steps are below what the context still needs. */
static bool end_locked(Body *b) {
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_CHILD_CLEARTID
    };
    uint64_t all = ~(uint64_t)0, old;
    store_rlx(&b->left, 1);
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, sizeof all, 0, 0);
    bool given = __clone(return_to, b->sp, FLAGS, b->sp, NULL, b->tp, &b->left) > 0;
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof old, 0, 0);
    return given;
}

/* bodies.lock. A hundred thousand that end at once do not need as many kernel threads: each goes on
 * for the next (end_next). Where the kernel refuses, the next body to end tries again for all, and
 * the end of the runtime. False: it has refused. */
#define ENDS_AT_ONCE 16
static bool end_some_locked(void) {
    while (bodies.over && bodies.ends < ENDS_AT_ONCE) {
        Body *b = bodies.over;
        if (!end_locked(b)) return false;
        bodies.over = b->next;
        b->next = bodies.ended;
        bodies.ended = b;
        bodies.count++;
        bodies.ends++;
    }
    return true;
}

/* On the kernel thread that ends a body, before libc's end of a thread, in which destructors of the
 * program's may wait. Stacks of earlier ones go back to the system, faster than they come. */
static void end_next(void) {
    for (int i = 0; i < 2; i++) {
        lock(&bodies.lock, RANK_LEAF);
        Body *b = bodies.count > KEPT ? pop_sized_locked(&bodies.ended, 0, true) : NULL;
        unlock(&bodies.lock);
        if (b) stack_custom_free(stack_of(b));
    }
    lock(&bodies.lock, RANK_LEAF);
    bodies.ends--;
    end_some_locked();
    unlock(&bodies.lock);
}

static void note_thread(Body *b) {
    b->tp = ARCH_THREAD_POINTER();
    b->m = &tls_m;
    b->runner = &tls_runner;
    b->errno_at = __errno_location();
    b->handling = m_handling_here();
    b->fp = arch_fp_rest();
}

static void *donor(void *arg) {
    Body *b = arg;
    note_thread(b);
    b->not_given = !leave_kernel(b, &b->left);
    if (b->not_given) {
        store_rel(&b->left, 0);
        os_sys(SYS_futex, (long)&b->left, FUTEX_WAKE, 1, 0, 0, 0);
        return NULL;
    }
    pthread_detach(pthread_self());
    if (b->host) {
        go_without(b);
        b->host();
    }
    live(b);
    if (in_any_child()) return NULL;
    /* a kernel thread of its own, for libc's end of a thread */
    tls_m = tls_runner = NULL;
    arch_guard_set(0); /* none of ours: its stack does not grow */
    if (body_nudged == NULL) pthread_sigmask(SIG_SETMASK, &b->mask, NULL);
    robust_end(b);
    end_next();
    return NULL;
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* glibc's handler of the signal by which setuid(2) and its like reach all threads looks for its
 * thread by the thread pointer: it has to find the kernel thread's. */
#define SIGSETXID 33
typedef struct KernelAction {
    void (*handler)(int, siginfo_t *, void *);
    uint64_t flags;
    uint64_t rest[3]; /* restorer, mask: as the processor's kernel has them */
} KernelAction;
static KernelAction libc_setxid;
#define KERNEL_SIGSET sizeof(uint64_t)

/* The process's first kernel thread is that of two descriptors (B6), and gets a signal for each. */
static struct {
    char *tp; /* main's; NULL: there is no B6 in this process */
    int tid;
    uint32_t turn; /* own kernel thread: signals that came */
} first;

static void on_setxid(int signo, siginfo_t *info, void *context) {
    M *m = getm();
    char *worn = ARCH_THREAD_POINTER(), *own = m && m->tp ? m->tp : worn;
    if (first.tp && os_gettid() == first.tid && first.turn++ % 2) own = first.tp;
    if (own != worn) arch_tp_set(own);
    libc_setxid.handler(signo, info, context);
    if (own != worn) arch_tp_set(worn);
}

/* Behind the first pthread_create, which installs it. */
static void wrap_setxid(void) {
    KernelAction now = {0};
    long r = os_sys(SYS_rt_sigaction, SIGSETXID, 0, (long)&now, KERNEL_SIGSET, 0, 0);
    if (r < 0 || now.handler == NULL || now.handler == on_setxid) return;
    if (HANDLER_STACK == 0) now.flags &= ~(uint64_t)SA_ONSTACK;
    libc_setxid = now;
    now.handler = on_setxid;
    os_sys(SYS_rt_sigaction, SIGSETXID, (long)&now, 0, KERNEL_SIGSET, 0, 0);
}

/* The kernel wakes as if the waiters were another process's. A filter may refuse the call. */
static void await_left(Body *b) {
    while (load_acq(&b->left)) {
        long r = os_sys(SYS_futex, (long)&b->left, FUTEX_WAIT, 1, 0, 0, 0);
        if (r == -ENOSYS || r == -EPERM) os_nap(50 * GORT_US);
    }
}

/* B1, B3. 0; or an error, and nothing of it is left. */
static int donate(Body *b) {
    Stack *s = stack_of(b);
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    int r = pthread_attr_init(&attr);
    if (r != 0) return -r;
    r = pthread_attr_setstack(&attr, s->lo, (size_t)((char *)b - s->lo));
    if (r == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        b->mask = old;
        r = thread_create(&thread, &attr, donor, b);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    if (r != 0) return -r;
    wrap_setxid();
    await_left(b);
    if (b->not_given) {
        pthread_join(thread, NULL);
        return -ENOTSUP;
    }
    *b->tid_at = b->tid;
    valgrind_written(b->sp, LAST_STEPS);
    return 0;
}

static void push_ready(Body *b) {
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    b->next = bodies.ready;
    bodies.ready = b;
    unlock(&bodies.lock);
    leave(m);
}

static Body *pop_sized(Body **list, size_t span, bool dead) {
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    Body *b = pop_sized_locked(list, span, dead);
    unlock(&bodies.lock);
    leave(m);
    return b;
}

/* For a new body; a stack that has served is warm. */
static Stack *body_stack(size_t size) {
    Body *b = pop_sized(&bodies.ended, stack_custom_span(size), true);
    Stack *s = b ? stack_of(b) : stack_custom(size);
    if (s == NULL) return NULL;
    size_t whole = s->size, guard = s->guard;
    stack_record(s, s->lo, STACK_BODY);
    s->size = whole;
    s->guard = guard;
    return s;
}

/* In a call that is announced as blocking: the runtime may end meanwhile, and the body is there for
 * the next taker. */
static long make_body(void *size) {
    Stack *s = body_stack(*(size_t *)size);
    if (s == NULL) return -ENOMEM;
    Body *b = body_of(s);
    *b = (Body){.left = 1, .tid = next_tid(), .maker = getm(), .worn_at = -1};
    int r = donate(b);
    if (r == 0) {
        push_ready(b);
    } else {
        tid_unused(b->tid);
        stack_custom_free(s);
    }
    return r;
}

static bool supported(void) { return !san_on() && !collect_on; }

Stack *body_take(size_t size, int *error) {
    size += sizeof(Body) + LIBC_ROOM + m_tls_bytes();
    *error = -ENOTSUP;
    if (!supported()) return NULL;
    for (;;) {
        Body *b = pop_sized(&bodies.ready, stack_custom_span(size), false);
        if (b) return stack_of(b);
        M *m = enter();
        bool announced = !m->plain && unfinished(m) == NULL && !sim_on; /* else nobody runs */
        leave(m);
        *error = (int)(announced ? gort_blocking(make_body, &size) : make_body(&size));
        if (*error < 0) return NULL;
    }
}

void body_untake(Stack *s) { push_ready(body_of(s)); }

#define HOST_STACK ((size_t)256 << 10)

static Body *make_host(void (*host)(void), int *error) {
    Stack *s = body_stack(HOST_STACK + sizeof(Body) + LIBC_ROOM + m_tls_bytes());
    *error = -ENOMEM;
    if (s == NULL) return NULL;
    Body *b = body_of(s);
    *b = (Body){.left = 1, .tid = next_tid(), .maker = getm(), .host = host, .worn_at = -1};
    *error = donate(b);
    if (*error == 0) return b;
    tid_unused(b->tid);
    stack_custom_free(s);
    return NULL;
}

/* The kernel thread of d from now on, and back. A change of the thread pointer: no variable of the
 * thread is used between it and the switch. */
static void put_on_kernel(Body *to) {
    os_sys(SYS_set_robust_list, (long)to->robust, sizeof(RobustHead), 0, 0, 0, 0);
    arch_tp_set(to->tp);
}
static NOINLINE void go_on_as(Body *d, Body *b) {
    *d->tid_at = b->tid;
    put_on_kernel(d);
    arch_switch(&b->sp, d->sp);
}

/* The host, where there is no runtime: main goes on as it was. */
NORETURN void body_lead_back(Stack *s, int error) {
    void *never;
    Body *b = body_of(s);
    b->refused = error;
    first.tp = NULL;
    put_on_kernel(b);
    os_sys(SYS_set_tid_address, (long)b->tid_at, 0, 0, 0, 0, 0);
    pthread_sigmask(SIG_SETMASK, &b->mask, NULL);
    arch_switch(&never, b->sp);
    __builtin_unreachable();
}

_Static_assert(sizeof(Body) + sizeof(Stack) <= BODY_ROOM, "the hook gives that much");

int body_lead(void *room, char *lo, void (*host)(void), Stack **stack) {
    int error, err = *__errno_location();
    sigset_t all;
    if (!supported()) return -ENOTSUP;
    leave(enter()); /* bodies know their maker's thread */
    Body *d = make_host(host, &error), *b = room;
    if (d == NULL) return error;
    stack_record(stack_of(b), lo, STACK_BODY);
    *b = (Body){.tid = os_gettid(), .maker = getm(), .worn_at = -1};
    note_thread(b);
    b->tid_at = (int *)(void *)(b->tp + ((char *)d->tid_at - d->tp));
    if (!leave_kernel(b, NULL)) return -ENOTSUP;
    *stack = stack_of(b);
    first.tp = b->tp;
    first.tid = b->tid;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &b->mask);
    m_unadopt();
    go_on_as(d, b);
    if (b->refused) return b->refused;
    body_leads = true;
    goroutine_goes_on();
    *__errno_location() = err;
    return 0;
}

/* A child of fork: its kernel thread is this body's, as libc knows, and the kernel hears so. */
void body_forked(char *was) {
    char *tp = ARCH_THREAD_POINTER();
    first.tp = NULL;
    if (tp == was || &__rseq_size == NULL || __rseq_size == 0) return;
    if (leave_rseq(was)) rseq_call(tp, 0);
}

/* ---- on g0 ----------------------------------------------------------------------------------- */

static void exchange_words(M *m, Body *b) {
    int *errno_at = m->errno_at;
    Handling *handling = m->handling;
    m->errno_at = b->errno_at;
    m->handling = b->handling;
    b->errno_at = errno_at;
    b->handling = handling;
}

/* Signals come to the thread by the mask of the goroutine that it wears. Between two masks it
 * blocks what either does. */
static void wear_mask(M *m, uint64_t mask) {
    store_rlx(&m->sigmask, m->sigmask & mask);
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
    store_rel(&m->sigmask, mask); /* pairs with masks_settle (threads/sigmask.c) */
}

/* `worn` first: a handler that finds the thread finds it worn. The mask behind the thread pointer:
 * a handler that finds no thread yet may block everything (keep_out, threads/signals.c). And a
 * Dekker pair with whoever has a signal for the goroutine: that sets `attention`, then reads `worn`
 * and nudges. */
static NOINLINE void wear_signals(M *m, BodySignals *s, char *tp) {
    store_seq(&s->worn, m);
    arch_tp_set(tp);
    if (m->sigmask != s->mask) wear_mask(m, s->mask);
    if (unlikely(load_seq(&s->attention) != 0)) or_seq(&m->attn, ATTN_SIGNAL);
}

static uint32_t bodies_timed; /* atomic: somebody asks what CPU time they have used */

static NOINLINE void slice_timed(M *m, Body *b) {
    int64_t now = os_thread_cpu(CLOCK_THREAD_CPUTIME_ID), at = load_rlx(&b->worn_at);
    if (m == NULL && at >= 0) store_rlx(&b->ran, b->ran + now - at);
    b->worn_by = m;
    store_rlx(&b->worn_at, m ? now : -1);
}

/* gp does not end meanwhile. */
int64_t body_cpu(G *gp) {
    if (gp == NULL) {
        M *m = enter();
        bool now = xchg_seq(&bodies_timed, 1) == 0 && m->curg && has_body(m->curg);
        if (now) slice_timed(m, body_of(m->curg->stack));
        leave(m);
        return 0;
    }
    Body *b = body_of(gp->stack);
    int64_t ran = load_rlx(&b->ran), at = load_rlx(&b->worn_at);
    M *m = load_rlx(&b->worn_by);
    int64_t now = at >= 0 && m ? os_thread_cpu(m->clock) : -1;
    return now > at ? ran + now - at : ran;
}

void body_wear(M *m, G *gp) {
    Body *b = body_of(gp->stack);
    if (unlikely(load_rlx(&bodies_timed))) slice_timed(m, b);
    *b->m = m;
    *b->runner = b->signals.alone ? NULL : m;
    exchange_words(m, b);
    m->detour = gp;
    m->owner = b->tid;
    arch_fp_rest_set(b->fp);
    if (b->signals.mask != 0) wear_signals(m, &b->signals, b->tp);
    else arch_tp_set(b->tp);
}

void body_doff(M *m, G *gp) {
    arch_tp_set(m->tp);
    Body *b = body_of(gp->stack);
    b->fp = arch_fp_rest();
    exchange_words(m, b);
    if (unlikely(load_rlx(&bodies_timed))) slice_timed(NULL, b);
    m->detour = m->lockedg;
    m->owner = m->tid;
    if (b->signals.mask != 0) store_rlx(&b->signals.worn, NULL);
    if (unlikely(load_rlx(&m->attn) & ATTN_SIGNAL)) and_seq(&m->attn, ~(uint32_t)ATTN_SIGNAL);
}

/* ---- signals --------------------------------------------------------------------------------- */

void body_attach(body_nudged_fn *nudged, body_attends_fn *attends, body_passed_fn *passed) {
    body_nudged = nudged;
    body_attends = attends;
    body_passed = passed;
}

BodySignals *body_signals(G *gp, const int32_t *cause, uint64_t mask) {
    BodySignals *s = &body_of(gp->stack)->signals;
    M *m = enter();
    gp->stack->ender = (Ender){.cause = cause, .gp = gp};
    gp->odd |= ODD_USES;
    s->mask = mask;
    wear_signals(m, s, ARCH_THREAD_POINTER());
    leave(m);
    return s;
}

body_handler *body_sigaction(int signo, body_handler *handler) {
    KernelAction was, like = libc_setxid; /* its restorer, and how it runs */
    if (like.handler == NULL) return NULL;
    like.handler = handler;
    if (os_sys(SYS_rt_sigaction, signo, (long)&like, (long)&was, KERNEL_SIGSET, 0, 0) != 0)
        return NULL;
    return was.handler;
}

void body_interrupt(M *m, G *gp) {
    GList list = {0};
    ender_strike(&gp->stack->ender, &list);
    if (list.head) ready_list(m, &list);
}

void body_nudge(M *m) {
    or_seq(&m->attn, ATTN_SIGNAL);
    os_tgkill(m->tid, settings.preempt_signal);
}

void body_alone(G *gp, bool yes) {
    Body *b = body_of(gp->stack);
    b->signals.alone = yes;
    *b->runner = yes ? NULL : *b->m;
}

/* ---- end ------------------------------------------------------------------------------------- */

int body_tid(G *gp) { return body_of(gp->stack)->tid; }
int body_anew(G *gp) {
    Body *b = body_of(gp->stack);
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    tid_unused_locked(b->tid);
    b->tid = *b->tid_at = m->owner = next_tid_locked();
    unlock(&bodies.lock);
    leave(m);
    return b->tid;
}
void body_over(G *gp) {
    Body *b = body_of(gp->stack);
    robust_end(b);
    if (b->robust) b->robust->first = b->robust;
}
void body_exit(G *gp) {
    Body *b = body_of(gp->stack);
    if (b->start == NULL) fatal("gort_exit in main, which is a thread: pthread_exit ends it");
    siglongjmp(b->start, 1);
}

/* On the kernel thread that ends a body whose goroutine is lost: no destructor gets what it had. */
static void forsaken(void *arg) {
    Body *b = arg;
    tls_m = tls_runner = NULL;
    for (unsigned key = 0; key < PTHREAD_KEYS_MAX; key++)
        if (pthread_getspecific(key)) pthread_setspecific(key, NULL);
    siglongjmp(b->start, 1);
}

#define ABOVE 1024 /* bytes, for the rest of live()'s frame */
void body_release(Stack *s, bool lost) {
    Body *b = body_of(s);
    b->lost = lost;
    if (lost) {
        char *top = (char *)b->start - ABOVE;
        valgrind_anew(top - ARCH_FIRST_FRAME, ARCH_FIRST_FRAME);
        b->sp = arch_first_frame(top, forsaken, b);
    }
    lock(&bodies.lock, RANK_LEAF);
    b->next = bodies.over;
    bodies.over = b;
    bool done = end_some_locked();
    unlock(&bodies.lock);
    if (!done)
        warn_once(WARN_BODY, "the kernel gives no thread for the end of a goroutine that is one to "
                             "libc: destructors of its keys wait");
}

/* In a child, which has none of these threads, and libc has struck them off: to end one would end
 * the process. Stacks that no thread was left on still serve. The lock may have been held: end_next
 * is no section, which a fork would wait for. */
void bodies_forget(void) {
    bodies.lock = (Lock){0};
    bodies.ready = bodies.over = NULL;
    bodies.ends = bodies.count = 0;
    bodies.tids_begun = false;
    for (Body **at = &bodies.ended, *b; (b = *at) != NULL;) {
        if (load_acq(&b->left) == 0) {
            at = &b->next;
            bodies.count++;
        } else {
            *at = b->next;
        }
    }
}

/* A destructor of the program's may wait for ever. */
#define SETTLE_ROUNDS 20000 /* of 50 us */
static bool settling(void) {
    M *m = enter();
    lock(&bodies.lock, RANK_LEAF);
    bool given = end_some_locked();
    Body *b = bodies.ended;
    while (b && load_acq(&b->left) == 0) b = b->next;
    bool more = b != NULL || (given && bodies.over);
    unlock(&bodies.lock);
    leave(m);
    return more;
}
void bodies_settle(void) {
    for (int i = 0; i < SETTLE_ROUNDS && settling(); i++) os_nap(50 * GORT_US);
}

#else

void *body_context(Stack *s) { return NULL; }
Stack *body_take(size_t size, int *error) {
    *error = -ENOTSUP;
    return NULL;
}
void body_untake(Stack *s) {}
void body_attach(body_nudged_fn *nudged, body_attends_fn *attends, body_passed_fn *passed) {}
BodySignals *body_signals(G *gp, const int32_t *cause, uint64_t mask) { return NULL; }
body_handler *body_sigaction(int signo, body_handler *handler) { return NULL; }
void body_interrupt(M *m, G *gp) {}
void body_nudge(M *m) {}
void body_alone(G *gp, bool yes) {}
void body_wear(M *m, G *gp) {}
void body_doff(M *m, G *gp) {}
void body_exit(G *gp) { __builtin_trap(); }
int body_tid(G *gp) { return 0; }
int body_anew(G *gp) { return 0; }
void body_over(G *gp) {}
int body_lead(void *room, char *lo, void (*host)(void), Stack **stack) { return -ENOTSUP; }
void body_lead_back(Stack *s, int error) { __builtin_trap(); }
void body_forked(char *was) {}
int64_t body_cpu(G *gp) { return 0; }
void body_release(Stack *s, bool lost) {}
void bodies_settle(void) {}
void bodies_forget(void) {}

#endif
