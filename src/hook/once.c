/*
 * pthread_once.
 *
 * An init routine may park. Another goroutine that comes meanwhile must not wait in libc, on the
 * thread that the first has to come back to: it parks, also where a plain thread runs the routine.
 *
 * The control word is libc's, where threads wait for a goroutine's routine. glibc's values: 0, not
 * yet; 2, done; in progress, 4 times the number of forks that led to this process plus 1
 * (once_begun asks libc); what was in progress in a parent is not yet. A goroutine takes the word
 * in a section, and ends it in a section: to "done", or if the routine does not return (an
 * exception, gort_exit, the end of the runtime: goexit.h) to "not yet", as libc on cancellation.
 *
 * libstdc++'s call_once passes its function in two variables of the thread, which the init routine
 * reads first. So nothing yields between the call and the routine, and a goroutine that had to wait
 * puts the two back: others have run on its thread meanwhile. One that is a thread to libc has the
 * two to itself, and its routine is the program's code as any other: handlers and cancellation come
 * to it.
 */
#include "hook/hook_internal.h"

#include <dlfcn.h>
#include <linux/futex.h>

#ifndef __GLIBC__
#error pthread_once: the control word of this libc is not known
#endif
enum { ONCE_NOT_YET = 0, ONCE_DONE = 2 };

static struct {
    Lock lock;
    pthread_once_t once; /* lock */
    int begun;           /* lock */
} probe;

static void probe_look(void) { probe.begun = probe.once; }

/* The word of a once that is in progress in this process. In a section. */
static int once_begun(void) {
    core->lock(&probe.lock);
    probe.once = PTHREAD_ONCE_INIT;
    libc(pthread_once)(&probe.once, probe_look);
    int begun = probe.begun;
    core->unlock(&probe.lock);
    return begun;
}

/* In a section. Wakes the threads that wait in libc. */
static void once_over(ExitHook *h, int state) {
    pthread_once_t *once = h->object;
    store_rel(once, state); /* pairs with the acquire of a caller that finds it done */
    sys(SYS_futex, once, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
static void once_undo(ExitHook *h) { once_over(h, ONCE_NOT_YET); }
static void once_end(ExitHook *h, int state) {
    bool mine = stay();
    M *m = core->enter();
    exit_hook_pop(self(m), h);
    once_over(h, state);
    core->leave(m);
    stay_end(mine);
    released(h->object, true);
}
static void once_fails(ExitHook *h) { once_end(h, ONCE_NOT_YET); }

/* True: the caller runs the routine, with h pushed; else it is in progress, or done. */
static bool once_take(ExitHook *h) {
    pthread_once_t *once = h->object;
    M *m = core->enter_anywhere();    /* which does not yield: see call_once above */
    if (m == NULL) m = core->enter(); /* the runtime ends */
    int begun = once_begun(), was = load_acq(once);
    while (was != begun && !(was & ONCE_DONE) && !cas_acq(once, &was, begun)) {}
    bool mine = was != begun && !(was & ONCE_DONE);
    if (mine) exit_hook_push(self(m), h);
    core->leave_anywhere(m);
    return mine;
}

static int once_busy(void *once) {
    M *m = core->enter();
    int r = load_acq((pthread_once_t *)once) == once_begun() ? EBUSY : 0;
    core->leave(m);
    return r;
}

NORETURN void hook_jumped(void) {
    core->jumped();
    __builtin_unreachable();
}

static long once_run(void *init) {
    ((void (*)(void))init)();
    return 0;
}

/* libstdc++'s two variables of this thread; NULL: there is no such library. One that came with a
 * plugin is perhaps not in the global scope, and found by its name only. */
static void **handed_over(int which) {
    static const char *const names[] = {"_ZSt15__once_callable", "_ZSt11__once_call"};
    void *at = dlsym(RTLD_DEFAULT, names[which]), *lib = NULL;
    if (at == NULL) lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (lib == NULL) return at;
    at = dlsym(lib, names[which]);
    dlclose(lib);
    return at;
}

static COLD void once_wait(pthread_once_t *once) {
    void *kept[2], **at;
    for (int i = 0; i < 2; i++) kept[i] = (at = handed_over(i)) ? *at : NULL;
    waitq_acquire(once, once_busy, WAIT_SEMA, GORT_FOREVER);
    for (int i = 0; i < 2; i++)
        if ((at = handed_over(i)) != NULL) *at = kept[i];
}

static COLD void once_enter(pthread_once_t *once, void (*init)(void)) {
    ExitHook hook = {.fn = once_fails, .abandon = once_undo, .object = once};
    bool stays = !is_thread_to_libc() && stay(), mine;
    while (!(mine = once_take(&hook)) && !(load_acq(once) & ONCE_DONE)) once_wait(once);
    if (mine) {
        core->guarded(once_run, (void *)init);
        once_end(&hook, ONCE_DONE);
    }
    stay_end(stays);
}

HOOK int pthread_once(pthread_once_t *once, void (*init)(void)) {
    if (likely(load_acq(once) & ONCE_DONE)) return 0;
    if (is_thread_to_libc()) POINT(pthread_once); /* whose variables are its own */
    if (!here()) {
        if (!called_by_allocator()) waitq_sees_less(); /* libc tells its own waiters of the end */
        return libc(pthread_once)(once, init);
    }
    once_enter(once, init);
    return 0;
}
