/*
 * Exceptions through calls of ours.
 *
 * gort_blocking and gort_once_do run a function of the program, which may be C++ and throw. What
 * their frames hold (a P to get back, a mutex) must be given back while the stack is unwound
 * through them. The library needs nothing of libgcc, so there is no landing pad: the function runs
 * in the frame of arch_call_guarded, whose personality routine, guard_personality, says that no
 * handler is here (first phase), then calls the newest hook (goexit.h). That may come back on
 * another thread: the unwinder's state, and C++'s (switch_from_catch), travel with the goroutine.
 *
 * pthread_exit and cancellation unwind by force. A plain thread may end so, and a goroutine that is
 * a thread to libc (body.c). Another may not: its thread is not its own. (m.c says so as well, but
 * there the hooks would already have run.)
 */
#include "base/upstairs.h"

enum { VERSION = 1, CLEANUP_PHASE = 2, FORCE_UNWIND = 8 }; /* the Itanium C++ ABI's words */
enum { FATAL_PHASE1_ERROR = 3, CONTINUE_UNWIND = 8 };

int guard_personality(int version, int actions, uint64_t language, void *exception, void *context);

int guard_personality(int version, int actions, uint64_t language, void *exception, void *context) {
    if (version != VERSION) return FATAL_PHASE1_ERROR;
    if (!(actions & CLEANUP_PHASE)) return CONTINUE_UNWIND;
    M *m = getm();
    G *gp = m->curg;
    bool own = m->plain || ARCH_THREAD_POINTER() != m->tp;
    if ((actions & FORCE_UNWIND) && !own)
        fatal("pthread_exit or pthread_cancel of a thread that runs goroutines: gort_exit ends a "
              "goroutine");
    upstairs.unwound(gp);
    return CONTINUE_UNWIND;
}
