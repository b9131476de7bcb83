/* Children: waitpid and system. A wait for the end of one child parks on a pidfd; any other wait is
 * libc's, in gort_blocking. The pidfd is opened and closed in a section each; in between the end of
 * the runtime closes it (goexit.h), unless the number has another owner by then (HookOwn). */
#include "hook/hook_internal.h"

typedef struct PidFd {
    ExitHook hook;
    HookOwn own;
} PidFd;

/* In a section. */
static void pid_close(ExitHook *h) {
    M *m = core->enter();
    m->pins++; /* the close does not park (close.c) */
    core->own_close(&container_of(h, PidFd, hook)->own);
    m->pins--;
    core->leave(m);
}

static bool pid_open(PidFd *p, pid_t pid) {
    M *m = core->enter();
    p->own.fd = (int)sys(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
    bool there = p->own.fd >= 0;
    if (there) core->forget(p->own.fd);
    there = there && core->own(&p->own);
    if (there) exit_hook_push(self(m), &p->hook);
    core->leave(m);
    return there;
}

/* Until the child has ended. False: this kernel has no pidfd, or the program has closed it. */
static bool pid_wait(pid_t pid) {
    PidFd p = {.hook = {.abandon = pid_close}};
    if (!pid_open(&p, pid)) return false;
    long r = core->own_wait(&p.own);
    M *m = core->enter();
    exit_hook_pop(self(m), &p.hook);
    pid_close(&p.hook);
    core->leave(m);
    return r == 0;
}

HOOK pid_t waitpid(pid_t pid, int *status, int options) {
    if (!runner(waitpid) || (options & WNOHANG)) return libc(waitpid)(pid, status, options);
    pid_t r = (pid_t)sys(SYS_wait4, pid, status, options | WNOHANG, NULL, 0, 0);
    if (r != 0) return (pid_t)returned(r);
    if (!here()) return libc(waitpid)(pid, status, options);
    bool mine = stay();
    if (pid > 0 && options == 0 && pid_wait(pid)) r = libc(waitpid)(pid, status, WNOHANG);
    if (r == 0) r = (pid_t)libc_blocking(waitpid, pid, status, options, 0, 0, 0);
    stay_end(mine);
    return r;
}

HOOK int system(const char *command) {
    if (!here() || command == NULL) return libc(system)(command);
    return (int)libc_blocking(system, command, 0, 0, 0, 0, 0);
}
