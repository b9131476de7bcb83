/*
 * Children: waitpid and system.
 *
 * A wait for the end of one child parks on a descriptor (pidfd); any other wait is libc's on a
 * handed-off thread. The descriptor is opened and closed in a section each; in between the end of
 * the runtime closes it (goexit.h).
 */
#include "hook/hook_internal.h"

typedef struct WaitChild {
    pid_t pid;
    int *status, options;
} WaitChild;

static long waitpid_blocking(void *arg) {
    WaitChild *c = arg;
    return libc(waitpid)(c->pid, c->status, c->options);
}

typedef struct PidFd {
    ExitHook hook;
    int fd;
} PidFd;

/* In a section. */
static void pid_close(PidFd *p) {
    M *m = core->enter();
    m->pins++; /* it closes at once (close.c) */
    gort_close(p->fd);
    m->pins--;
    core->leave(m);
}
static void pid_abandon(ExitHook *h) { pid_close(container_of(h, PidFd, hook)); }

static bool pid_open(PidFd *p, pid_t pid) {
    M *m = core->enter();
    p->fd = (int)sys(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
    if (p->fd >= 0) {
        core->forget(p->fd);
        exit_hook_push(self(m), &p->hook);
    }
    core->leave(m);
    return p->fd >= 0;
}

static void pid_over(PidFd *p) {
    M *m = core->enter();
    exit_hook_pop(self(m), &p->hook);
    pid_close(p);
    core->leave(m);
}

/* Until the child has ended. False: this kernel has no pidfd. */
static bool pid_wait(pid_t pid) {
    PidFd p = {.hook = {.abandon = pid_abandon}};
    if (!pid_open(&p, pid)) return false;
    struct pollfd one = {.fd = p.fd, .events = POLLIN};
    gort_poll(&one, 1, -1);
    pid_over(&p);
    return true;
}

HOOK pid_t waitpid(pid_t pid, int *status, int options) {
    if (!runner(waitpid) || (options & WNOHANG)) return libc(waitpid)(pid, status, options);
    pid_t r = (pid_t)sys(SYS_wait4, pid, status, options | WNOHANG, NULL, 0, 0);
    if (r != 0) return (pid_t)returned(r);
    if (!here()) return libc(waitpid)(pid, status, options);
    WaitChild c = {pid, status, options};
    Stay s;
    stay(&s);
    if (pid > 0 && options == 0 && pid_wait(pid)) r = libc(waitpid)(pid, status, WNOHANG);
    if (r == 0) r = (pid_t)gort_blocking(waitpid_blocking, &c);
    stay_end(&s);
    return r;
}

static long system_blocking(void *arg) { return libc(system)(arg); }

HOOK int system(const char *command) {
    if (!here() || command == NULL) return libc(system)(command);
    return (int)stay_blocking(system_blocking, (void *)command);
}
