/*
 * CPUs, priorities, rights, CPU time: what the kernel keeps for each of its threads.
 *
 * A goroutine runs on whatever kernel thread there is. One that changes such a thing for itself is
 * bound to a kernel thread from then on, until it ends, and that one ends with it (thread_bind).
 * So the change is really that, and nobody else's. A call that would change nothing binds nothing.
 * Threads that a bound one makes inherit its CPUs and priority, and are bound too; attributes with
 * CPUs likewise.
 *
 * One that is not bound is like the process's first kernel thread: what that has, main had when it
 * made the first thread, and all of the runtime's have it.
 *
 * For another thread: a bound one's kernel thread is told. One that is not bound gets a Will, which
 * it does when it next asks for, or changes, something here; until then only the answers are new.
 *
 * CPU time is counted where the runtime changes goroutines, by the kernel's clock of the kernel
 * thread, from the first question for any (body_cpu): two system calls a change, for programs that
 * ask. Before it is at most the time since the thread began, and what the process had used. So it
 * never runs back, and differences are exact.
 */
#include "threads/threads.h"

#include <string.h>
#include <sys/sysinfo.h>

_Static_assert(PRIO_PROCESS == 0, "");
#define KERNEL_NICE(r) (20 - (int)(r)) /* the kernel's getpriority has no negative results */

/* ---- which thread ---------------------------------------------------------------------------- */

Thread *thread_by_tid(int tid) {
    if (tid < BODY_TIDS && tid != first_thread.tid) return NULL;
    for (uint32_t i = 0; i < THREAD_BUCKETS; i++)
        for (Thread *t = threads.buckets[i]; t; t = t->next)
            if (t->tid == tid && t->state == THREAD_LIVES) return t;
    return NULL;
}

/* threads.lock. The kernel thread that has what an unbound one has. */
static int kernel_like(const Thread *t) { return t->kernel ? t->kernel : first_thread.tid; }

/* threads.lock held, if not NULL. tid: a thread by that number, 0: the caller; else by id. NULL:
 * the kernel's. */
static Thread *thread_meant(M **m, int tid, const pthread_t *id) {
    Thread *own = thread_me(), *t;
    if (!threads.on || hook_in_child() || (own == NULL && tid == 0 && id == NULL)) return NULL;
    *m = threads_lock();
    if (id) t = thread_find(*id);
    else t = tid == 0 || (own && own->tid == tid) ? own : thread_by_tid(tid);
    if (t == NULL) threads_unlock(*m);
    return t;
}

/* ---- bound ones ------------------------------------------------------------------------------ */

bool thread_bind(Thread *t) {
    if (t->kernel) return false;
    gort_lock_thread();
    M *m = threads_lock();
    t->kernel = (int)sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
    threads_unlock(m);
    return true;
}

/* A change has failed: it was for nothing. */
static void thread_unbind(Thread *t) {
    M *m = threads_lock();
    t->kernel = 0;
    threads_unlock(m);
    gort_unlock_thread();
}

static long told(int tid, const Will *w) {
    long r = 0;
    struct sched_param param = {w->priority};
    if (w->cpus_set) r = sys(SYS_sched_setaffinity, tid, sizeof w->cpus, w->cpus, 0, 0, 0);
    if (r == 0 && w->policy_set) r = sys(SYS_sched_setscheduler, tid, w->policy, &param, 0, 0, 0);
    if (r == 0 && w->nice_set) r = sys(SYS_setpriority, PRIO_PROCESS, tid, w->nice, 0, 0, 0);
    return r;
}

int will_done(Thread *t) {
    M *m = threads_lock();
    Will *w = t->will;
    t->will = NULL;
    threads_unlock(m);
    if (w == NULL) return 0;
    bool fresh = thread_bind(t);
    long r = told(0, w);
    if (r < 0 && fresh) thread_unbind(t);
    gort_free(w);
    return (int)-r;
}

static void will_merge(Will *to, const Will *w) {
    if (w->cpus_set) __builtin_memcpy(to->cpus, w->cpus, sizeof w->cpus);
    if (w->nice_set) to->nice = w->nice;
    if (w->policy_set) to->policy = w->policy, to->priority = w->priority;
    to->cpus_set |= w->cpus_set;
    to->nice_set |= w->nice_set;
    to->policy_set |= w->policy_set;
}

/* What the kernel has for tid, that differs from what an unbound one has. */
static bool will_read(int tid, Will *w) {
    static const Will none;
    Will usual = none;
    struct sched_param param = {0}, like = {0};
    int first = first_thread.tid;
    *w = none;
    sys(SYS_sched_getaffinity, tid, sizeof w->cpus, w->cpus, 0, 0, 0);
    sys(SYS_sched_getaffinity, first, sizeof usual.cpus, usual.cpus, 0, 0, 0);
    w->nice = KERNEL_NICE(sys(SYS_getpriority, PRIO_PROCESS, tid, 0, 0, 0, 0));
    usual.nice = KERNEL_NICE(sys(SYS_getpriority, PRIO_PROCESS, first, 0, 0, 0, 0));
    w->policy = (int)sys(SYS_sched_getscheduler, tid, 0, 0, 0, 0, 0);
    usual.policy = (int)sys(SYS_sched_getscheduler, first, 0, 0, 0, 0, 0);
    sys(SYS_sched_getparam, tid, &param, 0, 0, 0, 0);
    sys(SYS_sched_getparam, first, &like, 0, 0, 0, 0);
    w->priority = param.sched_priority;
    w->cpus_set = memcmp(w->cpus, usual.cpus, sizeof w->cpus) != 0;
    w->nice_set = w->nice != usual.nice;
    w->policy_set = w->policy != usual.policy || w->priority != like.sched_priority;
    return w->cpus_set || w->nice_set || w->policy_set;
}

/* Attributes without CPUs say all. */
static bool attr_cpus(const pthread_attr_t *attr, Will *w) {
    if (attr == NULL) return false;
    if (pthread_attr_getaffinity_np(attr, sizeof w->cpus, (cpu_set_t *)(void *)w->cpus) != 0)
        return false;
    for (size_t i = 0; i < sizeof w->cpus; i++)
        if (w->cpus[i] != 0xff) return w->cpus_set = true;
    return false;
}

Will *will_of(const pthread_attr_t *attr, int *error) {
    Will w, asked = {0};
    Thread *maker = thread_me();
    *error = 0;
    if (maker) will_done(maker);
    bool any = maker && maker->kernel && will_read(maker->kernel, &w);
    if (!any) w = (Will){0};
    if (attr_cpus(attr, &asked)) will_merge(&w, &asked);
    else if (!any) return NULL;
    Will *given = gort_alloc(sizeof w);
    if (given) *given = w;
    else *error = EAGAIN;
    return given;
}

/* A change, or a question, that means thread t (with threads.lock, which it gives back). */
static long kernel_told(M *m, Thread *t, const Will *w) {
    Will now;
    if (t == thread_me()) {
        threads_unlock(m);
        will_done(t);
        bool fresh = t->kernel == 0;
        if (fresh) {
            will_read(first_thread.tid, &now);
            if ((!w->cpus_set || memcmp(now.cpus, w->cpus, sizeof w->cpus) == 0) &&
                (!w->nice_set || now.nice == w->nice) &&
                (!w->policy_set || (now.policy == w->policy && now.priority == w->priority)))
                return 0;
            thread_bind(t);
        }
        long r = told(0, w);
        if (r < 0 && fresh) thread_unbind(t);
        return r;
    }
    long r = t->kernel ? told(t->kernel, w) : 0;
    Will *noted = t->will;
    if (t->kernel == 0 && noted) will_merge(noted, w);
    threads_unlock(m);
    if (t->kernel || noted) return r;
    noted = gort_alloc(sizeof *noted);
    if (noted == NULL) return -ENOMEM;
    *noted = *w;
    m = threads_lock();
    Will *late = t->will;
    if (late == NULL) t->will = noted;
    else will_merge(late, w);
    threads_unlock(m);
    if (late) gort_free(noted);
    return 0;
}

static void state_read(M *m, Thread *t, Will *w) {
    will_read(kernel_like(t), w);
    if (t->will) will_merge(w, t->will);
    threads_unlock(m);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static bool cpus_given(Will *w, size_t size, const cpu_set_t *set) {
    *w = (Will){.cpus_set = true};
    if (!can_read(set, size)) return false;
    size_t there = (size_t)get_nprocs_conf();
    if (size > sizeof w->cpus) size = sizeof w->cpus;
    for (size_t i = 0; i < 8 * size && i < there; i++)
        if (CPU_ISSET_S(i, size, set)) w->cpus[i / 8] |= (unsigned char)(1 << i % 8);
    return true;
}

static bool cpus_none(const Will *w) {
    for (size_t i = 0; i < sizeof w->cpus; i++)
        if (w->cpus[i]) return false;
    return true;
}

static long cpus_change(M *m, Thread *t, size_t size, const cpu_set_t *set) {
    Will w;
    bool ok = cpus_given(&w, size, set);
    if (ok && !cpus_none(&w)) return kernel_told(m, t, &w);
    threads_unlock(m);
    return ok ? -EINVAL : -EFAULT;
}

static long cpus_read(M *m, Thread *t, size_t size, cpu_set_t *set) {
    Will w;
    state_read(m, t, &w);
    long n = sys(SYS_sched_getaffinity, 0, size, set, 0, 0, 0); /* its bytes, or EINVAL */
    if (n < 0) return n;
    __builtin_memset(set, 0, size);
    __builtin_memcpy(set, w.cpus, size < sizeof w.cpus ? size : sizeof w.cpus);
    return n;
}

HOOK int pthread_setaffinity_np(pthread_t id, size_t size, const cpu_set_t *set) {
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    return t ? (int)-cpus_change(m, t, size, set) : libc(pthread_setaffinity_np)(id, size, set);
}
HOOK int pthread_getaffinity_np(pthread_t id, size_t size, cpu_set_t *set) {
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    if (t == NULL) return libc(pthread_getaffinity_np)(id, size, set);
    long r = cpus_read(m, t, size, set);
    return r < 0 ? (int)-r : 0;
}
HOOK int sched_setaffinity(pid_t tid, size_t size, const cpu_set_t *set) {
    M *m;
    Thread *t = thread_meant(&m, tid, NULL);
    return (int)returned(t ? cpus_change(m, t, size, set)
                           : sys(SYS_sched_setaffinity, tid, size, set, 0, 0, 0));
}
HOOK int sched_getaffinity(pid_t tid, size_t size, cpu_set_t *set) {
    M *m;
    Thread *t = thread_meant(&m, tid, NULL);
    long r = t ? cpus_read(m, t, size, set) : sys(SYS_sched_getaffinity, tid, size, set, 0, 0, 0);
    if (r < 0) return (int)returned(r);
    __builtin_memset((char *)set + r, 0, size - (size_t)r);
    return 0;
}

/* ---- policies -------------------------------------------------------------------------------- */

static long policy_change(M *m, Thread *t, int policy, int priority) {
    int plain = policy & ~SCHED_RESET_ON_FORK;
    int least = sched_get_priority_min(plain), most = sched_get_priority_max(plain);
    if (least < 0 || priority < least || priority > most) {
        threads_unlock(m);
        return -EINVAL;
    }
    return kernel_told(m, t, &(Will){.policy_set = true, .policy = policy, .priority = priority});
}

static int policy_of(M *m, Thread *t, int *priority) {
    Will w;
    state_read(m, t, &w);
    if (priority) *priority = w.priority;
    return w.policy;
}

HOOK int pthread_setschedparam(pthread_t id, int policy, const struct sched_param *param) {
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    return t ? (int)-policy_change(m, t, policy, param->sched_priority)
             : libc(pthread_setschedparam)(id, policy, param);
}
/* A goroutine with gort_attr.thread, of a program that knows gort: its kernel thread's. libc would
 * ask by a number that the kernel does not know. */
static int policy_here(int *policy, struct sched_param *param) {
    *policy = (int)sys(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);
    return (int)-sys(SYS_sched_getparam, 0, param, 0, 0, 0, 0);
}
HOOK int pthread_getschedparam(pthread_t id, int *policy, struct sched_param *param) {
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    if (t == NULL && is_thread_to_libc() && id == pthread_self()) return policy_here(policy, param);
    if (t == NULL) return libc(pthread_getschedparam)(id, policy, param);
    *policy = policy_of(m, t, &param->sched_priority);
    return 0;
}
HOOK int pthread_setschedprio(pthread_t id, int priority) {
    struct sched_param param;
    int policy;
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    if (t == NULL) return libc(pthread_setschedprio)(id, priority);
    threads_unlock(m);
    int r = pthread_getschedparam(id, &policy, &param);
    param.sched_priority = priority;
    return r ? r : pthread_setschedparam(id, policy, &param);
}

HOOK int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param) {
    M *m;
    Thread *t = param ? thread_meant(&m, tid, NULL) : NULL;
    return t ? (int)returned(policy_change(m, t, policy, param->sched_priority))
             : libc(sched_setscheduler)(tid, policy, param);
}
HOOK int sched_getscheduler(pid_t tid) {
    M *m;
    Thread *t = thread_meant(&m, tid, NULL);
    return t ? policy_of(m, t, NULL) : libc(sched_getscheduler)(tid);
}
HOOK int sched_setparam(pid_t tid, const struct sched_param *param) {
    int policy = param ? sched_getscheduler(tid) : -1;
    return policy < 0 ? libc(sched_setparam)(tid, param) : sched_setscheduler(tid, policy, param);
}
HOOK int sched_getparam(pid_t tid, struct sched_param *param) {
    M *m;
    Thread *t = param ? thread_meant(&m, tid, NULL) : NULL;
    if (t == NULL) return libc(sched_getparam)(tid, param);
    policy_of(m, t, &param->sched_priority);
    return 0;
}
HOOK int sched_rr_get_interval(pid_t tid, struct timespec *ts) {
    M *m;
    Thread *t = thread_meant(&m, tid, NULL);
    if (t == NULL) return libc(sched_rr_get_interval)(tid, ts);
    int kernel = kernel_like(t);
    threads_unlock(m);
    return libc(sched_rr_get_interval)(kernel, ts);
}

/* ---- nice ------------------------------------------------------------------------------------ */

#define NICE_LEAST (-20)
#define NICE_MOST 19

static Thread *thread_niced(M **m, int which, id_t who) {
    return which == PRIO_PROCESS ? thread_meant(m, (int)who, NULL) : NULL;
}

HOOK int setpriority(__priority_which_t which, id_t who, int value) {
    M *m;
    Thread *t = thread_niced(&m, (int)which, who);
    if (t == NULL) return libc(setpriority)(which, who, value);
    if (value < NICE_LEAST) value = NICE_LEAST;
    if (value > NICE_MOST) value = NICE_MOST;
    return (int)returned(kernel_told(m, t, &(Will){.nice_set = true, .nice = value}));
}
HOOK int getpriority(__priority_which_t which, id_t who) {
    M *m;
    Thread *t = thread_niced(&m, (int)which, who);
    if (t == NULL) return libc(getpriority)(which, who);
    Will w;
    state_read(m, t, &w);
    return w.nice;
}
HOOK int nice(int more) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t == NULL) return libc(nice)(more);
    int value = getpriority(PRIO_PROCESS, 0) + more;
    if (setpriority(PRIO_PROCESS, 0, value) < 0) {
        if (get_errno() == EACCES) set_errno(EPERM); /* as nice has it */
        return -1;
    }
    return getpriority(PRIO_PROCESS, 0);
}

/* ---- what else a kernel thread has ----------------------------------------------------------- */

/* The call changes it for the caller. */
static void own_kernel_thread(void) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t) thread_bind(t);
}

HOOK int unshare(int flags) {
    own_kernel_thread();
    return libc(unshare)(flags);
}
HOOK int setns(int fd, int type) {
    own_kernel_thread();
    return libc(setns)(fd, type);
}
HOOK int setfsuid(uid_t id) {
    if (id != (uid_t)-1) own_kernel_thread();
    return libc(setfsuid)(id);
}
HOOK int setfsgid(gid_t id) {
    if (id != (gid_t)-1) own_kernel_thread();
    return libc(setfsgid)(id);
}
HOOK int personality(unsigned long persona) {
    if (persona != 0xffffffff) own_kernel_thread();
    return libc(personality)(persona);
}
HOOK int capset(void *header, const void *data) {
    own_kernel_thread();
    return libc(capset)(header, data);
}

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446 /* everywhere */
#endif
#ifdef SYS_arch_prctl
#define CALL_OF_SEGMENTS SYS_arch_prctl
#else
#define CALL_OF_SEGMENTS (-1)
#endif
enum { SET_GS = 0x1001, SET_CPUID = 0x1012 };               /* the kernel's */
enum { JOIN_SESSION_KEYRING = 1, SET_REQKEY_KEYRING = 14 }; /* likewise */

static bool number_binds(long number, long a) {
    switch (number) {
    case CALL_OF_SEGMENTS: return a == SET_GS || a == SET_CPUID;
    case SYS_keyctl: return a == JOIN_SESSION_KEYRING || a == SET_REQKEY_KEYRING;
    case SYS_prctl: return prctl_binds((int)a);
    case SYS_landlock_restrict_self:
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_unshare:
    case SYS_setns:
    case SYS_capset:
    case SYS_seccomp:
    case SYS_personality:
    case SYS_set_mempolicy:
    case SYS_ioprio_set:
    case SYS_sched_setattr: return true;
    default: return false;
    }
}

bool thread_syscall(long number, long a, long b, long c, long *r) {
    M *m;
    Thread *own = thread_me(), *t;
    if (own && number == SYS_gettid) *r = gettid();
    else if (own && number == SYS_set_tid_address && !hook_in_child()) {
        tid_word_is(own, (int *)a);
        *r = own->tid;
    } else if (own && number == SYS_prctl && (a == PR_SET_NAME || a == PR_GET_NAME)) {
        *r = prctl((int)a, b) == 0 ? 0 : -get_errno();
    } else if (number == SYS_sched_setaffinity && (t = thread_meant(&m, (int)a, NULL)) != NULL)
        *r = cpus_change(m, t, (size_t)b, (cpu_set_t *)c);
    else if (number == SYS_sched_getaffinity && (t = thread_meant(&m, (int)a, NULL)) != NULL)
        *r = cpus_read(m, t, (size_t)b, (cpu_set_t *)c);
    else {
        if (signals_syscall(number, a, b, c, r)) return true;
        if (own && number_binds(number, a) && !hook_in_child()) thread_bind(own);
        return false;
    }
    return true;
}

/* ---- CPU time -------------------------------------------------------------------------------- */

static struct {
    bool asked;        /* threads.lock, with the others */
    int64_t at, spent; /* when it was first asked for; the process's CPU time then */
} cpu;

void cpu_begins(Thread *t) {
    t->began = gort_now();
    t->cpu_before = t == &first_thread ? 0 : core->body_cpu(t->gp);
    t->cpu_shown = 0;
}

static int64_t process_cpu(void) {
    struct timespec ts;
    sys(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ts, 0, 0, 0, 0);
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

static void cpu_count(void) {
    M *m = threads_lock();
    bool begins = !cpu.asked;
    if (begins) cpu.at = gort_now(), cpu.spent = process_cpu();
    cpu.asked = true;
    threads_unlock(m);
    if (begins) core->body_cpu(NULL);
}

/* threads.lock. */
static int64_t cpu_of(Thread *t) {
    int64_t before = cpu.at - t->began, ran = core->body_cpu(t->gp) - t->cpu_before;
    if (before < 0) before = 0;
    if (before > cpu.spent) before = cpu.spent;
    if (before + ran > t->cpu_shown) t->cpu_shown = before + ran;
    return t->cpu_shown;
}

/* The clock of a thread: main's as the kernel encodes that of a number; another's has 28 bits of
 * its number, and a kind that libc gives no clock of a thread (those are 6). */
#define CLOCK_KIND 7
static clockid_t clock_of(const Thread *t) {
    if (t == &first_thread) return (clockid_t)(~(unsigned)t->tid << 3 | 6);
    return (clockid_t)(1u << 31 | (unsigned)t->tid << 3 | 4);
}

bool is_own_clock(const Thread *t, clockid_t clock) {
    return clock == CLOCK_THREAD_CPUTIME_ID || clock == clock_of(t);
}

/* threads.lock. */
static Thread *thread_by_clock(clockid_t clock) {
    if (clock == CLOCK_THREAD_CPUTIME_ID) return thread_me();
    if (clock == clock_of(&first_thread)) return &first_thread;
    if ((clock & CLOCK_KIND) != 4) return NULL;
    for (uint32_t i = 0; i < THREAD_BUCKETS; i++)
        for (Thread *t = threads.buckets[i]; t; t = t->next)
            if (clock_of(t) == clock && t->state == THREAD_LIVES) return t;
    return NULL;
}

/* -1: none of ours. */
static int64_t cpu_read(clockid_t clock) {
    int64_t ns = -1;
    if (!threads.on || hook_in_child()) return -1;
    if (clock == CLOCK_THREAD_CPUTIME_ID ? thread_me() == NULL : clock >= 0) return -1;
    cpu_count();
    M *m = threads_lock();
    Thread *t = thread_by_clock(clock);
    if (t) ns = cpu_of(t);
    threads_unlock(m);
    return ns;
}

HOOK int pthread_getcpuclockid(pthread_t id, clockid_t *clock) {
    M *m;
    Thread *t = thread_meant(&m, 0, &id);
    if (t == NULL) return libc(pthread_getcpuclockid)(id, clock);
    *clock = clock_of(t);
    threads_unlock(m);
    return 0;
}

HOOK int clock_gettime(clockid_t clock, struct timespec *at) {
    POINT(clock_gettime);
    if (simulated() && clock_virtual(clock, at)) return 0;
    if (likely(clock >= 0 && clock != CLOCK_THREAD_CPUTIME_ID) || !as_goroutines())
        return libc(clock_gettime)(clock, at);
    int64_t ns = cpu_read(clock);
    if (ns < 0) return libc(clock_gettime)(clock, at);
    *at = (struct timespec){ns / GORT_SEC, ns % GORT_SEC};
    return 0;
}
HOOK int clock_getres(clockid_t clock, struct timespec *at) {
    bool ours = unlikely(clock < 0) && as_goroutines() && cpu_read(clock) >= 0;
    return libc(clock_getres)(ours ? CLOCK_THREAD_CPUTIME_ID : clock, at);
}

HOOK int getrusage(__rusage_who_t who, struct rusage *usage) {
    int64_t ns =
        (int)who == RUSAGE_THREAD && as_goroutines() ? cpu_read(CLOCK_THREAD_CPUTIME_ID) : -1;
    if (ns < 0) return libc(getrusage)(who, usage);
    *usage = (struct rusage){.ru_utime = {ns / GORT_SEC, ns % GORT_SEC / 1000}};
    return 0;
}
