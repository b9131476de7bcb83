/*
 * The alternate stack of a thread that runs goroutines is the runtime's: all handlers run there,
 * with 256 KB and a guard, and the report of a stack overflow, too. A library that brings its own,
 * and disables it at the end, would take it away. So on such a thread the library's is noted
 * only, and reported back as the kernel would; as there, each thread has its own.
 */
#include "hook/hook_internal.h"

static __thread stack_t noted; /* ss_size 0: none */

void altstack_forget(void) { noted = (stack_t){.ss_size = 0}; }

/* main's, which was the kernel's to know until now. */
void altstack_adopt(void) {
    stack_t now;
    if (libc(sigaltstack)(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
        noted = (stack_t){.ss_sp = now.ss_sp, .ss_size = now.ss_size};
}

uintptr_t altstack_for(uintptr_t sp) {
    uintptr_t lo = (uintptr_t)noted.ss_sp;
    return noted.ss_size == 0 || sp - lo < noted.ss_size ? 0 : lo + noted.ss_size;
}

/* Of a thread that is a goroutine, whose handlers run there. */
static bool on_noted(void) {
    return known.threads && stack_pointer() - (uintptr_t)noted.ss_sp < noted.ss_size;
}

/* In a handler. The kernel knows its stack, and does not let it be changed. */
static bool on_alternate(int *r, const stack_t *ss, stack_t *old) {
    stack_t now;
    if (libc(sigaltstack)(NULL, &now) < 0 || !(now.ss_flags & SS_ONSTACK)) return false;
    if (ss) set_errno(EPERM);
    else if (old) *old = now;
    *r = ss ? -1 : 0;
    return true;
}

#define AUTODISARM ((int)(1u << 31)) /* a flag of Linux's beside the others */
static int altstack_error(const stack_t *ss) {
    int mode = ss->ss_flags & ~AUTODISARM;
    if (mode != 0 && mode != SS_DISABLE && mode != SS_ONSTACK) return EINVAL;
    return mode != SS_DISABLE && ss->ss_size < (size_t)MINSIGSTKSZ ? ENOMEM : 0;
}

static int note_altstack(const stack_t *ss, stack_t *old) {
    stack_t was = noted;
    if (on_noted()) was.ss_flags |= SS_ONSTACK;
    if (ss && on_noted()) {
        set_errno(EPERM);
        return -1;
    }
    if (ss) {
        int e = altstack_error(ss);
        if (e != 0) {
            set_errno(e);
            return -1;
        }
        bool off = (ss->ss_flags & ~AUTODISARM) == SS_DISABLE;
        noted = off ? (stack_t){.ss_size = 0} : *ss;
        noted.ss_flags &= AUTODISARM;
    }
    if (old) *old = was;
    if (old && was.ss_size == 0) old->ss_flags = SS_DISABLE;
    return 0;
}

HOOK int sigaltstack(const stack_t *restrict ss, stack_t *restrict old) {
    int r;
    if (runner(sigaltstack) == NULL || vforked()) return libc(sigaltstack)(ss, old);
    return on_alternate(&r, ss, old) ? r : note_altstack(ss, old);
}
