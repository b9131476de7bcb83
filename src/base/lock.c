#include "base/lock.h"
#include "os/os.h"
#include "base/san.h"

/*
 * Somebody else has it. Two threads that take a lock in turn spend their time passing its cache
 * line to and fro, five times as long as the work it protects; so the one that loses stays away for
 * about a microsecond, and longer the next time, without a look, and the other does dozens of
 * operations at full speed meanwhile. Then it yields the CPU, for the holder may not be running at
 * all, and naps in the end.
 *
 * Valgrind runs one thread at a time and takes each pause for a word to let the others run a whole
 * slice of its own: a thousand of them between two looks would be many seconds, so there it is one.
 */
/* not inline: lock_slow is at the end of every deep chain of calls */
static NOINLINE int pauses_before(int round) {
    return valgrind_runs() ? 1 : 16 << (round < 6 ? round : 6);
}

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
    /* Release: what the waker wrote before is seen by the sleeper. */
    if (xchg_rel(&n->word, 1) == 0) os_futex_wake(&n->word, 1);
}

/* The sleeper takes the wake-up back at once: it can be sent again only after the sleeper has told
 * somebody that it waits, so no later clearing can wipe out one that is meant for the next
 * sleep. */
void note_sleep(Note *n) {
    while (xchg_acq(&n->word, 0) == 0) os_futex_wait(&n->word, 0, GORT_FOREVER);
}

bool note_sleep_until(Note *n, int64_t deadline) {
    while (xchg_acq(&n->word, 0) == 0)
        if (os_futex_wait(&n->word, 0, deadline) == -ETIMEDOUT) return xchg_acq(&n->word, 0) != 0;
    return true;
}
