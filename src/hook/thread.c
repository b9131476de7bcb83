/*
 * pthread_once and pthread_join.
 *
 * An init routine may park. Another goroutine that comes meanwhile must not wait in libc, on the
 * very thread the first one has to come back to: goroutines that run an init routine are noted
 * here, and the others park until that note is gone. A routine that a plain thread runs is waited
 * for in libc.
 */
#include "inside.h"

typedef struct Running {
    struct Running *next;
    pthread_once_t *once;
} Running;

static struct {
    Lock lock;
    uint32_t life;  /* lock: see queue.c */
    Running *first; /* lock */
} running;

static void lock_running(void) {
    core->lock(&running.lock);
    if (running.life != core->life()) running.first = NULL;
    running.life = core->life();
}

/* EBUSY while a goroutine runs it; 0: r is noted, it is ours to run. */
static int note_once(Running *r) {
    Stay s;
    stay(&s);
    M *m = core->enter();
    lock_running();
    Running *at = running.first;
    while (at && at->once != r->once) at = at->next;
    if (at == NULL) {
        r->next = running.first;
        running.first = r;
    }
    core->unlock(&running.lock);
    core->leave(m);
    stay_end(&s);
    return at ? EBUSY : 0;
}

static void forget_once(Running *r) {
    Stay s;
    stay(&s);
    M *m = core->enter();
    lock_running();
    Running **at = &running.first;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    core->unlock(&running.lock);
    core->leave(m);
    stay_end(&s);
    released(r->once, true);
}

static int busy(void *once) {
    int r = 0;
    M *m = core->enter();
    lock_running();
    for (Running *at = running.first; at; at = at->next)
        if (at->once == once) r = EBUSY;
    core->unlock(&running.lock);
    core->leave(m);
    return r;
}

#define ONCE_DONE 2 /* glibc */

HOOK int pthread_once(pthread_once_t *once, void (*init)(void)) {
    if (likely(load_acq(once) & ONCE_DONE)) return 0;
    if (!here()) return libc(pthread_once)(once, init);
    Running mine = {.once = once};
    Stay s;
    stay(&s);
    while (note_once(&mine) == EBUSY) wait_for(once, busy, WAIT_SEMA, GORT_FOREVER);
    int r = libc(pthread_once)(once, init);
    forget_once(&mine);
    stay_end(&s);
    return r;
}

typedef struct Join {
    pthread_t thread;
    void **result;
} Join;

static long join_blocking(void *arg) {
    Join *j = arg;
    return libc(pthread_join)(j->thread, j->result);
}

HOOK int pthread_join(pthread_t thread, void **value) {
    if (!here()) return libc(pthread_join)(thread, value);
    int r = pthread_tryjoin_np(thread, value);
    if (r != EBUSY) return r;
    Join j = {thread, value};
    Stay s;
    stay(&s);
    r = (int)gort_blocking(join_blocking, &j);
    stay_end(&s);
    return r;
}
