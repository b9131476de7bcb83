/*
 * CPU profile: where the CPU time goes, by goroutine and stack.
 *
 * Each thread of the runtime gets a timer on its own CPU clock, which sends it SIGPROF after every
 * 10 ms of work: a sleeping thread is not disturbed, and a sample belongs to the thread that used
 * the time. The handler adds the interrupted stack to the table; it neither locks nor allocates.
 *
 * The program must not notice. The handler runs on the alternate stack with every signal blocked,
 * so a preemption never falls into it. It changes nothing of the M, and repeats a system call that
 * it interrupted (preempt_mend_call). It stays when a profile ends: a deleted timer's signal may
 * still be pending, and the default action of SIGPROF ends the process. Signals of others go to the
 * program's own handler. With signal=prof the scheduler uses SIGPROF, and there is no CPU profile.
 *
 * Only the goroutine that began the profile, or the end of the runtime, touches the table of
 * timers. The timer of a thread that has ended never fires.
 */
#include "sched/preempt.h"
#include "inspect/profile.h"
#include "sched/capture.h"
#include "sched/describe.h"
#include "base/san.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#define PERIOD (10 * GORT_MS)
#define TIMERS 4096
#define PLACES (2 * TIMERS)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct {
    struct ProfTimer {
        int tid, timer;
    } at[PLACES]; /* open addressing by tid; 0: free */
    int count;
    char mark; /* its address marks our signals */
} timers;
static struct sigaction previous;

static void cpuprof_record(M *m, void *context, uint64_t count) {
    Sample s = {.status = G_RUNNING};
    bool on_g0 = false;
    s.depth = (uint8_t)capture_context(m, context, s.pcs, PROFILE_DEPTH, &on_g0);
    if (s.depth == 0) return;
    G *gp = load_rlx(&m->curg);
    if (on_g0 || gp == NULL) {
        memcpy(s.name, "(scheduler)", sizeof "(scheduler)");
    } else {
        g_name(gp, s.name);
        s.entry = g_entry(gp);
    }
    profile_add(&cpu_profile, &s, count, (int64_t)count * PERIOD);
}

static void chain_prof(int signo, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) {
        if (previous.sa_sigaction) previous.sa_sigaction(signo, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signo);
    }
}

/* Any thread, at any instruction, on the alternate stack, all signals blocked. */
static void on_prof(int signo, siginfo_t *info, void *context) {
    int err = *__errno_location();
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &timers.mark) {
        chain_prof(signo, info, context);
    } else {
        M *m = getm();
        preempt_mend_call(m, context);
        if (m && !m->plain && profile_enter(&cpu_profile)) {
            cpuprof_record(m, context, 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0));
            profile_leave(&cpu_profile);
        }
    }
    *__errno_location() = err;
}

static int install_prof(void) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | HANDLER_STACK | SA_RESTART}, now;
    sa.sa_sigaction = on_prof;
    sigfillset(&sa.sa_mask);
    if (settings.preempt_signal == SIGPROF) return -ENOTSUP;
    if (sigaction(SIGPROF, NULL, &now) < 0) return -EINVAL;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_prof) return 0;
    previous = now;
    return sigaction(SIGPROF, &sa, NULL) < 0 ? -EINVAL : 0;
}

/* The place of a thread's timer: with thousands of threads none can be looked for in a list. */
static struct ProfTimer *timer_place(int tid) {
    uint32_t i = (uint32_t)tid * 0x9E3779B1u >> 16;
    while (timers.at[i % PLACES].tid && timers.at[i % PLACES].tid != tid) i++;
    return &timers.at[i % PLACES];
}

static void add_timer(M *m) {
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct itimerspec every = {.it_interval.tv_nsec = PERIOD, .it_value.tv_nsec = PERIOD};
    int timer = 0, tid = m->tid;
    if (timers.count == TIMERS || tid == 0) return;
    struct ProfTimer *place = timer_place(tid);
    if (place->tid) return;
    ev.sigev_value.sival_ptr = &timers.mark;
    ev.sigev_notify_thread_id = tid;
    long r = os_sys(SYS_timer_create, m->clock, (long)&ev, (long)&timer, 0, 0, 0);
    if (r < 0) return; /* the thread has gone */
    *place = (struct ProfTimer){tid, timer};
    timers.count++;
    os_sys(SYS_timer_settime, timer, 0, (long)&every, 0, 0, 0);
}

/* For threads that are new. */
static void cpuprof_refresh(void) {
    for (M *m = load_acq(&sched.all_ms); m; m = m->all)
        if (load_acq(&m->alive) && !m->plain) add_timer(m);
}

static int cpuprof_begin(Profile *f) {
    int r = profile_begin(f);
    if (r < 0) return r;
    if ((r = install_prof()) < 0) {
        profile_end(f);
        profile_free(f);
        return r;
    }
    cpuprof_refresh();
    return 0;
}

static void cpuprof_end(Profile *f) {
    for (int i = 0; i < PLACES; i++) {
        if (timers.at[i].tid) os_sys(SYS_timer_delete, timers.at[i].timer, 0, 0, 0, 0, 0);
        timers.at[i].tid = 0;
    }
    timers.count = 0;
    if (load_acq(&f->state) == PROFILE_ON) profile_end(f);
}

static const ProfileKind cpu_time = {.count = "samples",
                                     .value = "cpu",
                                     .label = "goroutine",
                                     .period = PERIOD,
                                     .period_of_value = true,
                                     .begin = cpuprof_begin,
                                     .refresh = cpuprof_refresh,
                                     .end = cpuprof_end};
Profile cpu_profile = {.kind = &cpu_time};
