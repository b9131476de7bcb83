/*
 * Does a thread compute, or does it sleep in the kernel?
 *
 * Preemption needs the first: a signal to one that sleeps makes a call of the program return EINTR.
 * Retake needs the second. The kernel tells it in /proc/self/task/TID/stat, to whoever has a
 * descriptor left to open it, in a process that has a /proc. A descriptor kept open for each thread
 * would be ten thousand of them in the worst case, the first thing that closefrom(3) takes, and no
 * help without /proc. The thread's CPU clock needs none of it, and costs less:
 *
 *   1  Two readings that differ: it is on a CPU at this moment. The kernel brings the clock of a
 *      running thread up to date at each reading. Two system calls of 0.3 us; the file takes ten
 *      times that.
 *   2  They are the same: asleep, or waiting for a CPU. The file knows.
 *   3  There is no file. Who asks a thread to stop compares with the clock at the time of the
 *      request: USED of CPU time since, with no call into gort and no look that found it asleep for
 *      STANDS (its P would be gone by then), is a thread that computes and has to share its CPU.
 *      Who wants its P waits for a clock that has stood still for STANDS. Both may be wrong about a
 *      thread that is starved or dozes, and both are harmless: a P may be taken from anybody
 *      outside of a section (GORT_DEBUG=retake=hammer does), and libc's calls are sent back after
 *      the signal (arch_repair_eintr).
 *
 * seen_cpu, seen_at and asked_cpu are notes of whoever has the retaker's turn.
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

/* Neither a clock nor a file. Of a thread that has just gone it is no wonder; of our own it is. */
static bool warn_blind(void) {
    if (os_thread_cpu(CLOCK_THREAD_CPUTIME_ID) < 0)
        warn_once(WARN_BLIND, "neither /proc nor clock_gettime(2) tells what a thread does: a "
                              "goroutine that computes or "
                              "sleeps without calling gort may hold up the others");
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
