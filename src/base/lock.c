#include "base/lock.h"
#include "os/os.h"
#include "base/san.h"

/* Valgrind runs a whole slice of another thread at each pause: one must do. Not inline: lock_slow
 * ends every deep chain of calls. */
static NOINLINE int pauses_before(int round) {
    return valgrind_runs() ? 1 : 16 << (round < 6 ? round : 6);
}

/* Another thread has the lock. Two threads that take a lock in turn pass its cache line to and fro,
 * five times as long as the work it protects. So the loser stays away for about a microsecond, and
 * longer the next time, without a look, and the holder does dozens of operations at full speed.
 * Then it yields the CPU, since the holder may not be running, and naps in the end. */
NOINLINE void lock_slow(Lock *l) {
    for (int round = 0;; round++) {
        int pauses = pauses_before(round);
        for (int i = 0; i < pauses; i++) arch_pause();
        if (load_rlx(&l->word) == 0 && xchg_acq(&l->word, 1) == 0) return;
        if (round < 8) continue;
        if (round < 40) os_yield();
        else os_nap(20 * GORT_US);
    }
}

void note_wake(Note *n) {
    /* release, for note_sleep's acquire: the sleeper sees what the waker wrote before */
    if (xchg_rel(&n->word, 1) == 0) os_futex_wake(&n->word, 1);
}

/* The sleeper takes the wake-up at once. The next can come only after the sleeper has told a waker
 * that it waits, so this cannot wipe it out. */
void note_sleep(Note *n) {
    while (xchg_acq(&n->word, 0) == 0) os_futex_wait(&n->word, 0, GORT_FOREVER);
}

bool note_sleep_until(Note *n, int64_t deadline) {
    while (xchg_acq(&n->word, 0) == 0)
        if (os_futex_wait(&n->word, 0, deadline) == -ETIMEDOUT) return xchg_acq(&n->word, 0) != 0;
    return true;
}
