/* A guarantee that is gone, said once on stderr: "gort: warning: ..." (warn.c). */
#ifndef WARN_H
#define WARN_H

#include "base/base.h"

enum {
    WARN_THREADS,  /* no thread to be had */
    WARN_SIGNAL,   /* no preemption by signal */
    WARN_HANDLER,  /* the program has replaced the handler that preempts */
    WARN_RETAKE,   /* no membarrier */
    WARN_DEADLOCK, /* it is not known which threads there are */
    WARN_GUARD,    /* a stack without a guard region */
    WARN_FUTEX,    /* no thread can be woken */
    WARN_BLIND,    /* it is not known whether a thread computes or sleeps */
    WARN_STAYS,    /* a goroutine that does not stop with its runtime */
    WARN_LEAN,     /* asked to look inside a program without that floor */
    WARN_MODULES,  /* no room to note a library: libc is not recognised */
    WARN_KEYS,     /* the end of a thread is not seen */
    WARN_BODY,     /* a goroutine that is a thread to libc ends late (body.c) */
    WARN_EARLY,    /* a call that needs a runtime came before it (hint.c) */
    WARN_DURATION, /* a deadline that looks like a duration (hint.c) */
    WARNINGS
};

/* Any thread, any lock, in a handler: one write, no lock, nothing allocated. */
void warn_once(int which, const char *format, ...) PRINTF(2, 3);

#endif
