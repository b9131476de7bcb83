/*
 * Mutexes with a priority protocol, where the program's threads are goroutines.
 *
 * The kernel lends priorities to kernel threads: FUTEX_LOCK_PI writes the caller's number into the
 * mutex and looks for the thread of the number that it finds there. A goroutine's number is no
 * kernel thread's (sched/body.c), and it has no priority. So such a mutex is made without its
 * protocol: all else that it is (recursive, error-checking, robust, shared) it keeps, and a thread
 * of another process that shares it finds it so, too.
 *
 * Mutexes that libraries make before main count among them. An initializer without a call has no
 * protocol.
 */
#include "threads/threads.h"

HOOK int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr) {
    int protocol = PTHREAD_PRIO_NONE;
    pthread_mutexattr_t plain;
    if (attr) pthread_mutexattr_getprotocol(attr, &protocol);
    if (protocol != PTHREAD_PRIO_NONE && threads_asked_for()) {
        plain = *attr;
        pthread_mutexattr_setprotocol(&plain, PTHREAD_PRIO_NONE);
        attr = &plain;
    }
    return libc(pthread_mutex_init)(mutex, attr);
}
