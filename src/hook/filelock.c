/*
 * flockfile, ftrylockfile, funlockfile: a FILE's lock, held over calls of the program's.
 *
 * libc takes the same lock in each of its own calls (printf, getc), and waits for it there with the
 * kernel thread. So a holder that parks needs one to come back to, though all that there may be
 * wait for it: it is bound to its own (gort_lock_thread) until it gives the lock back. That also
 * keeps other goroutines of the thread out, which libc would take for the holder. What waits here
 * is announced as blocking, and its P goes on at once.
 *
 * A lock that libc holds over a wait of its own (a read of a pipe) needs nothing: its holder sleeps
 * in the kernel, with its thread.
 */
#include "hook/hook_internal.h"

HOOK void flockfile(FILE *f) {
    if (!here()) {
        libc(flockfile)(f);
        return;
    }
    gort_lock_thread();
    if (libc(ftrylockfile)(f) != 0) libc_blocking(flockfile, f, 0, 0, 0, 0, 0);
}

HOOK int ftrylockfile(FILE *f) {
    if (!here()) return libc(ftrylockfile)(f);
    gort_lock_thread();
    int r = libc(ftrylockfile)(f);
    if (r != 0) gort_unlock_thread();
    return r;
}

/* One that was locked where nothing parks is libc's alone. */
HOOK void funlockfile(FILE *f) {
    libc(funlockfile)(f);
    M *m = here();
    if (m && m->curg->lock_depth > 0) gort_unlock_thread();
}
