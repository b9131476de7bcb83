/*
 * Does a thread compute, or does it sleep in the kernel?
 *
 * Preemption must know the first: a signal to a sleeping thread makes the program's call return
 * EINTR. Retake must know the second. /proc/self/task/TID/stat tells, if there is a /proc and a
 * descriptor left to open it. (Descriptors kept open would be thousands, and closefrom(3) takes
 * them.) The thread's CPU clock needs neither, and costs a tenth of the file:
 *
 *   1  Two readings differ: the thread is on a CPU now. The kernel brings the clock of a running
 *      thread up to date at each reading.
 *   2  They are the same: it sleeps, or waits for a CPU. The file knows.
 *   3  There is no file. For a request to stop, the clock is compared with that at the request: a
 *      thread that has used USED of CPU time since computes, and shares its CPU. (It made no call
 *      into gort, and had it slept for STANDS its P would be gone.) For a retake, the thread sleeps
 *      if its clock has stood still for STANDS. Both may be wrong about a thread that is starved or
 *      dozes, without harm: a P may be taken from any thread outside of a section (retake=hammer
 *      does), and libc's calls are made again (arch_repair_eintr).
 *
 * seen_cpu, seen_at and asked_cpu belong to the holder of the retaker lock.
 */
#include "sched/threadstate.h"
#include "os/os.h"
#include "base/warn.h"

#include <time.h>

#define USED (2 * GORT_MS)
#define STANDS (2 * GORT_MS)

enum { ASLEEP, AWAKE, UNKNOWN };

static int state_of(M *m, int64_t *cpu) {
    int64_t before = os_thread_cpu(m->clock);
    *cpu = os_thread_cpu(m->clock);
    if (*cpu != before && before >= 0 && *cpu >= 0) return AWAKE;
    char state = os_thread_state(m->tid);
    return state == 0 ? UNKNOWN : state == 'R' ? AWAKE : ASLEEP;
}

/* There is neither clock nor file. For a thread that has just ended that is normal; so the caller's
 * own clock decides whether to warn. */
static bool warn_blind(void) {
    if (os_thread_cpu(CLOCK_THREAD_CPUTIME_ID) < 0)
        warn_once(WARN_BLIND,
                  "neither /proc nor clock_gettime(2) tells what a thread does: a goroutine that "
                  "computes or sleeps without calling gort may hold up the others");
    return false;
}

bool thread_awake(M *m) {
    int64_t cpu;
    return state_of(m, &cpu) == AWAKE;
}

bool thread_asked(M *m) {
    int64_t cpu;
    int state = state_of(m, &cpu);
    if (m->asked_cpu < 0) m->asked_cpu = cpu;
    if (state != UNKNOWN) return state == AWAKE;
    if (cpu < 0) return warn_blind();
    if (cpu - m->asked_cpu < USED) return false;
    m->asked_cpu = cpu;
    return true;
}

void thread_seen(M *m, int64_t cpu) {
    m->seen_cpu = cpu;
    m->seen_at = os_now();
}

bool thread_asleep(M *m, int64_t cpu) {
    char state = os_thread_state(m->tid);
    if (state != 0) return state == 'S' || state == 'D';
    if (cpu < 0) return warn_blind();
    if (cpu == m->seen_cpu) return os_now() - m->seen_at >= STANDS;
    thread_seen(m, cpu);
    return false;
}
