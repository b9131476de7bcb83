/*
 * Cancellation.
 *
 * libc cancels a thread by a signal to a number that no kernel thread has. Here pthread_cancel only
 * marks the thread, and the thread tells libc itself: C1 to C4. From then on libc's own rules hold,
 * on the thread's own stack: cleanup handlers, unwinding, PTHREAD_CANCELED.
 *
 *   C1  pthread_cancel(t): t->cancelled; then t is woken as by a signal (signals.c). A wait of t
 *       ends only if the call is a cancellation point (`point`).
 *   C2  t, outside of the runtime, sends itself SIGCANCEL, as it does with signals, and on_cancel
 *       tells libc (cancel_tell). With the asynchronous type, which libc also sets while it blocks
 *       in the kernel at a cancellation point, that unwinds at once.
 *   C3  Else libc has a note (`noted`), and acts at the next cancellation point: t is `alone` from
 *       now on (body_alone). To the hook it is a thread that runs no goroutines, so that each
 *       function that it calls is libc's, which looks. This costs the others nothing. A call that
 *       C1 has ended acts itself (cancel_act).
 *   C4  PTHREAD_CANCEL_DISABLE (`shut`): t is marked only, and looks when it enables.
 *
 * Orders: the canceller sets `cancelled`, then reads `point` and `shut`, under sigs.lock; t sets
 * `point`, or clears `shut`, then reads `cancelled`. Two Dekker pairs: a cancel meets a wait that
 * it ends, or the wait meets it. Whoever else reads them under sigs.lock before the canceller has
 * it may miss the cancel, and is put right by it (cause_locked). A look by t alone needs no order:
 * what it misses comes later.
 */
#include "threads/signals.h"

bool cancel_due(Thread *t) {
    return load_rlx(&t->sig.cancelled) && !load_rlx(&t->sig.shut) && !t->sig.noted;
}

/* In glibc 2.36 a thread that cancels itself with the asynchronous type unwinds before it has the
 * note, and the first stdio in a cleanup handler waits for that without end. Disabled, it only gets
 * the note, and libc looks when it enables. Where libc itself has disabled it, it stays so. */
void cancel_tell(Thread *t) {
    uint32_t calls = t->sig.calls;
    int state;
    t->sig.noted = true;
    t->sig.calls = 0;
    core->body_alone(t->gp, true);
    libc(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &state);
    libc(pthread_cancel)(pthread_self());
    libc(pthread_setcancelstate)(state, NULL); /* may not return */
    t->sig.calls = calls;
}

static body_handler *libcs_handler; /* for threads that are the kernel's, and in children */

static void on_cancel(int signo, siginfo_t *info, void *context) {
    Thread *t = thread_me();
    if (t == NULL || hook_in_child()) {
        if (libcs_handler) libcs_handler(signo, info, context); /* may not return */
        return;
    }
    if (!t->sig.noted && load_rlx(&t->sig.cancelled)) cancel_tell(t);
}

/* Behind libc's, which it installs with the first that it cancels: the catcher, which never looks.
 * No thread is made for it: its end may hang beside setuid(2) and its like (glibc 2.36). */
static void cancel_prepare(void) {
    catcher_cancel();
    libcs_handler = core->raw_sigaction(SIGCANCEL, on_cancel);
}

void cancel_raise(void) {
    sys(SYS_tgkill, sys(SYS_getpid, 0, 0, 0, 0, 0, 0), sys(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGCANCEL,
        0, 0, 0);
}

void cancel_begin(Thread *t) {
    t->sig.noted = false;
    store_rlx(&t->sig.cancelled, 0);
    store_rlx(&t->sig.shut, 0);
    store_rlx(&t->sig.point, 0);
    store_rlx(&t->sig.async, 0);
    t->sig.calls = 0;
}

bool cancel_was_noted(Thread *t) { return t->sig.noted; }

void cancel_act(Thread *t) {
    if (cancel_due(t)) signals_deliver(t);
    if (t->sig.noted && !load_rlx(&t->sig.shut)) libc(pthread_testcancel)();
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void cancel_other(Thread *t, M *m) {
    store_rlx(&t->sig.cancelled, 1);
    fence_full(); /* Dekker pairs with thread_stay and pthread_setcancelstate */
    uint64_t old = sigs_lock();
    bool looks = cause_locked(t);
    sigs_unlock(old);
    if (looks) thread_wake(t, m);
}

HOOK int pthread_cancel(pthread_t id) {
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    if (!as_goroutines()) return libc(pthread_cancel)(id);
    Thread *t = thread_me();
    libc(pthread_once)(&prepared, cancel_prepare);
    if (t && t->id == id) {
        store_rlx(&t->sig.cancelled, 1);
        if (cancel_due(t)) signals_deliver(t);
        return 0;
    }
    M *m = threads_lock();
    t = thread_find(id);
    if (t && t->state == THREAD_LIVES) cancel_other(t, m);
    threads_unlock(m);
    return t ? 0 : libc(pthread_cancel)(id);
}

HOOK void pthread_testcancel(void) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t && unlikely(load_rlx(&t->sig.cancelled))) cancel_act(t);
    libc(pthread_testcancel)();
}

HOOK int pthread_setcancelstate(int state, int *old) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t == NULL) return libc(pthread_setcancelstate)(state, old);
    if (state == PTHREAD_CANCEL_DISABLE) {
        store_rlx(&t->sig.shut, 1);
        if (t->sig.noted) core->body_alone(t->gp, false);
    }
    int r = libc(pthread_setcancelstate)(state, old);
    if (r == 0 && state == PTHREAD_CANCEL_ENABLE) {
        store_rlx(&t->sig.shut, 0);
        fence_full(); /* a Dekker pair with cancel_other */
        if (cancel_due(t)) signals_deliver(t);
        else if (t->sig.noted) core->body_alone(t->gp, true);
    }
    return r;
}

/* Its change while a cancel waits: libc looks itself at what it knows. The canceller reads `async`
 * under sigs.lock, behind its mark: it sees the change, or this sees the mark. */
HOOK int pthread_setcanceltype(int type, int *old) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    int r = libc(pthread_setcanceltype)(type, old);
    if (t == NULL || r != 0) return r;
    uint64_t mask = sigs_lock();
    store_rlx(&t->sig.async, type == PTHREAD_CANCEL_ASYNCHRONOUS);
    sigs_unlock(mask);
    if (cancel_due(t)) signals_deliver(t);
    return r;
}
