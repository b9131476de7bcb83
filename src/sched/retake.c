/*
 * Retake without a signal (docs/DESIGN.md has the laws).
 *
 * A thread that blocks in the kernel, announced or not, still holds its P. To take it, the monitor
 * has to know that the thread is in no section now and will see, before its next one, that the P is
 * gone. M's side stays a plain increment and a plain load:
 *
 *   M, enter                         monitor
 *   locks++                          R1  CAS PENDING into attn
 *   (compiler barrier)               R2  membarrier: every CPU that runs a thread of ours passes
 *   if (attn) slow                       a full barrier
 *                                    R3  locks == 0, and the thread has not run; else withdraw
 *                                    R4  read m->p
 *                                    R5  CAS PENDING → TAKEN; PENDING gone: M came back first
 *                                    R6  p is the monitor's
 *
 * Each load of attn on M falls before or after R2 on M's CPU. Before: its locks++ is visible at
 * R3, or M has left the section again and the release of locks orders its work before the take.
 * After: it sees PENDING or TAKEN, and exactly one of the two CASes on PENDING wins.
 *
 * In a checked build GORT_DEBUG=break=N leaves step N out, and a test sees each trip an invariant.
 */
#include "sched/retake.h"
#include "sched/threadstate.h"
#include "sched/sched.h"
#include "base/warn.h"

bool retake_works;

static struct {
    uint32_t next, serving; /* a ticket lock: the hammer must not starve stop-the-world */
} turn;

void retaker_lock(void) {
    uint32_t mine = __atomic_fetch_add(&turn.next, 1, __ATOMIC_RELAXED);
    for (int i = 0; load_acq(&turn.serving) != mine; i++)
        if (i < 100) arch_pause();
        else if (i < 200) os_yield();
        else os_nap(50 * GORT_US);
}

void retaker_unlock(void) { store_rel(&turn.serving, turn.serving + 1); }

void retake_start(void) { retake_works = os_membarrier_register() == 0; }

#ifdef GORT_CHECKED
#define broken(step) (settings.break_step == (step))
#else
#define broken(step) false
#endif

static void retake_withdraw(M *m) { and_seq(&m->attn, ~(uint32_t)ATTN_PENDING); }

static void warn_no_membarrier(void) {
    warn_once(
        WARN_RETAKE,
        "the kernel refuses membarrier(2): a goroutine that sleeps in a call it has not announced "
        "(gort_blocking) holds up the others");
}

/* R1 to R5. still(m, arg), called after the barrier: the thread has not come back. */
static P *take(M *m, bool (*still)(M *m, int64_t arg), int64_t arg) {
    uint32_t attn = load_rlx(&m->attn);
    if (!retake_works || (attn & (ATTN_PENDING | ATTN_TAKEN | ATTN_EXIT))) return NULL;
    if (!cas_seq(&m->attn, &attn, attn | ATTN_PENDING)) return NULL; /* R1 */
    bool passed = broken(1) || os_membarrier() == 0;                 /* R2 */
    if (unlikely(!passed)) warn_no_membarrier();
    if (!passed || (!broken(2) && load_acq(&m->locks) != 0) || (still && !still(m, arg))) { /* R3 */
        retake_withdraw(m);
        return NULL;
    }
    P *p = load_rlx(&m->p); /* R4 */
    if (p == NULL) {
        retake_withdraw(m);
        return NULL;
    }
    add_seq(&sched.taken, 1); /* before TAKEN: the deadlock detector must not miss it */
    if (broken(3)) {
        or_seq(&m->attn, ATTN_TAKEN);
        and_seq(&m->attn, ~(uint32_t)ATTN_PENDING);
    } else {
        attn = load_rlx(&m->attn);
        do {
            if (!(attn & ATTN_PENDING)) {
                sub_seq(&sched.taken, 1);
                return NULL; /* M came back first and keeps its P */
            }
        } while (!cas_seq(&m->attn, &attn, (attn & ~(uint32_t)ATTN_PENDING) | ATTN_TAKEN)); /* R5 */
    }
    store_rlx(&p->m, NULL);
    add_rlx(&sched.other.retakes, 1);
    return p;
}

static bool clock_stands(M *m, int64_t cpu) { return os_thread_cpu(m->clock) == cpu; }

static bool in_call(M *m, int64_t tick) {
    G *gp = m->curg;
    return gp && load_rlx(&gp->status) == G_SYSCALL && load_rlx(&m->syscalltick) == (uint32_t)tick;
}

P *retake_announced(M *m, uint32_t tick) {
    if (load_rlx(&m->locks) != 0) return NULL;
    return take(m, in_call, tick);
}

P *retake_if_asleep(M *m, bool at_once) {
    if (load_rlx(&m->locks) != 0 || settings.retake == 1) return NULL;
    int64_t cpu = os_thread_cpu(m->clock);
    if (!at_once && cpu != m->seen_cpu) { /* it ran since the last look */
        thread_seen(m, cpu);
        return NULL;
    }
    if (!thread_asleep(m, cpu)) return NULL;
    if (unlikely(!retake_works)) warn_no_membarrier();
    return take(m, clock_stands, cpu);
}

P *retake_hammer(M *m) { return take(m, NULL, 0); }
