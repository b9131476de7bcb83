#include "lock.h"
#include "os.h"

/* Waits in three steps of growing patience; see lock.h. */
NOINLINE void lock_slow(Lock *l) {
    for (int round = 0;; round++) {
        for (int i = 0; i < 40; i++) {
            if (load_rlx(&l->word) == 0 && xchg_acq(&l->word, 1) == 0) return;
            arch_pause();
        }
        if (round < 20) os_yield();
        else os_nap(20 * GORT_US);
    }
}

void note_wake(Note *n) {
    /* Release: what the waker wrote before is seen by the sleeper. */
    if (xchg_rel(&n->word, 1) == 0) os_futex_wake(&n->word, 1);
}

void note_sleep(Note *n) {
    while (load_acq(&n->word) == 0) os_futex_wait(&n->word, 0, GORT_FOREVER);
}

bool note_sleep_until(Note *n, int64_t deadline) {
    while (load_acq(&n->word) == 0)
        if (os_futex_wait(&n->word, 0, deadline) == -ETIMEDOUT) return load_acq(&n->word) != 0;
    return true;
}
