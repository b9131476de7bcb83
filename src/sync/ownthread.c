/*
 * They count as the runtime's (sched.threads), and keep no report of a deadlock away (m_is_ours).
 *
 * The caller's signals stay masked until *pid is written: a goroutine that a signal stops earlier,
 * as its runtime ends, would leave an unknown thread behind.
 */
#include "sync/ownthread.h"
#include "sched/m.h"

#include <signal.h>

#define OWN_STACK ((size_t)256 << 10)

static void *own_main(void *fn) {
    m_is_ours();
    ((void (*)(void))fn)();
    sub_rlx(&sched.threads, 1);
    return NULL;
}

NOINLINE int own_thread_start(void (*fn)(void), int *pid) {
    int saved = errno;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = own_thread(NULL, OWN_STACK, own_main, (void *)fn);
    if (r == 0 && pid != NULL) *pid = os_getpid();
    errno = saved; /* before a signal can move the caller to another thread */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}
