/*
 * What libc does by the number of a kernel thread, which a thread that is a goroutine has not:
 * gettid, the word that tells a thread's end, names. CPUs, priorities, rights and clocks are in
 * scheduling.c.
 *
 * A name is kept here and shown as the goroutine's, in dumps, traces, on the page. One with only
 * its maker's, as threads do in Linux, is shown by its function. main's name is also the process's,
 * and that of a bound thread its kernel thread's: those the kernel hears.
 */
#include "threads/threads.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>

HOOK pid_t gettid(void) {
    Thread *t = as_goroutines() ? thread_me() : NULL;
    return t ? t->tid : (pid_t)sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* ---- the word that tells its end ------------------------------------------------------------- */

/* The kernel thread's own word is libc's, and stays: by it libc knows when that has ended. */

void tid_word_is(Thread *t, int *word) { t->cleared = word; }

/* As the kernel does it: one waiter, by a futex of any process. A bad address is nothing. */
void tid_word_cleared(Thread *t) {
    int *word = t->cleared;
    if (word == &t->tid) return;
    syscall(SYS_futex, word, FUTEX_WAKE_OP, 1, 0, word,
            FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_LT, 0));
}

/* ---- names ----------------------------------------------------------------------------------- */

static void kernel_hears(int tid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    long fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0) return;
    sys(SYS_write, fd, name, __builtin_strlen(name), 0, 0, 0);
    sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

void name_shown(Thread *t, const char *name) {
    M *m = core->enter();
    core->rename(m, t->gp, name);
    core->leave(m);
}

/* threads.lock. */
static void name_put(Thread *t, const char *name) {
    snprintf(t->name, sizeof t->name, "%s", name);
    t->named = true;
}

/* Its maker is the caller. */
void name_inherited(Thread *t) {
    Thread *maker = thread_me();
    t->named = false;
    if (maker) __builtin_memcpy(t->name, maker->name, sizeof t->name);
    else libc(prctl)(PR_GET_NAME, t->name);
}

static void own_name(Thread *t, const char *name) {
    char shown[NAME_BYTES];
    M *m = threads_lock();
    name_put(t, name);
    __builtin_memcpy(shown, t->name, sizeof shown);
    core->unlock(&threads.lock);
    core->rename(m, t->gp, shown);
    core->leave(m);
    if (is_real_name(shown)) thread_bind(t);
    if (t == &first_thread) kernel_hears(t->tid, shown);
    if (t->kernel) kernel_hears(t->kernel, shown);
}

/* Another's: it may end just now, and its goroutine begin another life. */
static bool other_name(pthread_t id, const char *name, int *kernel) {
    M *m = threads_lock();
    Thread *t = thread_find(id);
    if (t) name_put(t, name);
    if (t && t->state == THREAD_LIVES) core->rename(m, t->gp, t->name);
    *kernel = t == NULL ? 0 : t == &first_thread ? t->tid : t->kernel;
    threads_unlock(m);
    return t != NULL;
}

HOOK int pthread_setname_np(pthread_t id, const char *name) {
    int kernel;
    if (!as_goroutines()) return libc(pthread_setname_np)(id, name);
    if (__builtin_strlen(name) >= NAME_BYTES) return ERANGE;
    Thread *own = thread_me();
    if (own && own->id == id) own_name(own, name);
    else if (!other_name(id, name, &kernel)) return libc(pthread_setname_np)(id, name);
    else if (kernel) kernel_hears(kernel, name);
    return 0;
}

HOOK int pthread_getname_np(pthread_t id, char *name, size_t size) {
    if (!as_goroutines()) return libc(pthread_getname_np)(id, name, size);
    if (size < NAME_BYTES) return ERANGE;
    M *m = threads_lock();
    Thread *t = thread_find(id);
    if (t) __builtin_memcpy(name, t->name, NAME_BYTES);
    threads_unlock(m);
    return t ? 0 : libc(pthread_getname_np)(id, name, size);
}

/* ---- prctl ----------------------------------------------------------------------------------- */

static long own_name_from(const char *name) {
    char first[NAME_BYTES]; /* the kernel takes that much */
    if (!can_read(name, 1)) return -EFAULT;
    snprintf(first, sizeof first, "%.*s", NAME_BYTES - 1, name);
    own_name(thread_me(), first);
    return 0;
}

static long tid_word_told(int **to) {
    if (!can_read(to, sizeof *to)) return -EFAULT;
    *to = thread_me()->cleared;
    return 0;
}

bool prctl_binds(int option) {
    switch (option) {
    case PR_SET_SECCOMP:
    case PR_SET_NO_NEW_PRIVS:
    case PR_SET_KEEPCAPS:
    case PR_SET_SECUREBITS:
    case PR_CAPBSET_DROP:
    case PR_CAP_AMBIENT:
    case PR_SET_TIMERSLACK:
    case PR_SET_SPECULATION_CTRL:
    case PR_SET_TSC:
    case PR_SET_UNALIGN:
    case PR_MCE_KILL: return true;
    default: return false;
    }
}

HOOK int prctl(int option, ...) {
    va_list more;
    va_start(more, option); /* as libc: four, given or not */
    unsigned long a = va_arg(more, unsigned long), b = va_arg(more, unsigned long);
    unsigned long c = va_arg(more, unsigned long), d = va_arg(more, unsigned long);
    va_end(more);
    Thread *t = as_goroutines() ? thread_me() : NULL;
    if (t && option == PR_SET_NAME) return (int)returned(own_name_from((const char *)a));
    if (t && option == PR_GET_NAME) return -pthread_getname_np(t->id, (char *)a, NAME_BYTES);
    if (t && option == PR_GET_TID_ADDRESS) return (int)returned(tid_word_told((int **)a));
    if (t && prctl_binds(option)) thread_bind(t);
    return libc(prctl)(option, a, b, c, d);
}
