/*
 * Attributes: of a thread that lives, and for those to come.
 *
 * A program may compute its stack's bounds from them (collectors and virtual machines do): main's
 * are as libc reads them from the kernel. Another's stack ends where its goroutine's does, with its
 * variables and descriptor at the top, as libc's; from there down it has the size that was asked
 * for, in whole pages. Below is what the body takes besides, and then the guard. A guard larger
 * than that which each stack has takes more room, and is there while the thread lives, from what is
 * said to be the stack's end on.
 */
#include "threads/threads.h"

#include <sys/mman.h>

void defaults_noted(void) {
    pthread_attr_t attr;
    sigset_t mask;
    pthread_attr_init(&attr);
    pthread_attr_getstacksize(&attr, &threads.stack_size);
    pthread_attr_getguardsize(&attr, &threads.guard);
    pthread_attr_destroy(&attr);
    if (pthread_getattr_default_np(&attr) != 0) return;
    threads.masked = pthread_attr_getsigmask_np(&attr, &mask) == 0;
    __builtin_memcpy(&threads.mask, &mask, sizeof threads.mask);
    pthread_attr_destroy(&attr);
}

HOOK int pthread_setattr_default_np(const pthread_attr_t *attr) {
    int r = libc(pthread_setattr_default_np)(attr);
    if (r == 0 && threads.stack_size != 0) defaults_noted();
    return r;
}

/* ---- guards ---------------------------------------------------------------------------------- */

size_t guard_extra(size_t guard) {
    return guard > GUARD_NEAR ? (guard - GUARD_NEAR + PAGE_MASK) & ~PAGE_MASK : 0;
}

static char *told_hi(const Thread *t) { return (char *)(t->gp->stack + 1); }
/* Where the size that was asked for begins. */
static char *told_lo(const Thread *t) {
    size_t asked = t->stack_size - guard_extra(t->guard);
    return told_hi(t) - ((asked + PAGE_MASK) & ~PAGE_MASK);
}

void guard_change(Thread *t, bool on) {
    if (guard_extra(t->guard) == 0) return;
    char *lo = t->gp->stack->lo;
    mprotect(lo, (size_t)(told_lo(t) - lo), on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

/* ---- of one that lives ----------------------------------------------------------------------- */

typedef struct Seen {
    char *lo, *hi;
    size_t guard;
    bool first, detached;
} Seen;

static bool stack_seen(pthread_t id, Seen *s) {
    M *m = threads_lock();
    Thread *t = thread_find(id);
    if (t) *s = (Seen){told_lo(t), told_hi(t), t->guard, t == &first_thread, t->detached};
    threads_unlock(m);
    return t != NULL;
}

/* The scheduling: what the calls for it say. */
static int scheduling_filled(pthread_t id, pthread_attr_t *attr) {
    unsigned char cpus[sizeof(Will){0}.cpus];
    struct sched_param param;
    int policy, r = pthread_getschedparam(id, &policy, &param);
    if (r == 0) r = pthread_attr_setschedpolicy(attr, policy);
    if (r == 0) r = pthread_attr_setschedparam(attr, &param);
    if (r == 0) r = pthread_getaffinity_np(id, sizeof cpus, (cpu_set_t *)(void *)cpus);
    return r ? r : pthread_attr_setaffinity_np(attr, sizeof cpus, (cpu_set_t *)(void *)cpus);
}

HOOK int pthread_getattr_np(pthread_t id, pthread_attr_t *attr) {
    Seen s;
    if (!as_goroutines() || !stack_seen(id, &s)) return libc(pthread_getattr_np)(id, attr);
    int r = s.first ? libc(pthread_getattr_np)(id, attr) : pthread_attr_init(attr);
    if (r != 0) return r;
    if (!s.first) r = pthread_attr_setstack(attr, s.lo, (size_t)(s.hi - s.lo));
    if (r == 0 && !s.first) r = pthread_attr_setguardsize(attr, s.guard);
    if (r == 0)
        pthread_attr_setdetachstate(attr,
                                    s.detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    if (r == 0) r = scheduling_filled(id, attr);
    if (r != 0) pthread_attr_destroy(attr);
    return r;
}
