/* What libc does by the number of a kernel thread: a thread that is a goroutine has none. */
#include "threads/threads.h"

HOOK pid_t gettid(void) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? t->tid : (pid_t)sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
}
