/*
 * Children: waitpid and system.
 *
 * One child that is waited for until it ends is a descriptor (pidfd), which costs no thread; any
 * other wait is libc's on a handed-off thread.
 */
#include "inside.h"

#include <sys/syscall.h>

typedef struct Child {
    pid_t pid;
    int *status, options;
} Child;

static long wait_blocking(void *arg) {
    Child *c = arg;
    return libc(waitpid)(c->pid, c->status, c->options);
}

static int open_pid(pid_t pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0) core->forget(fd);
    return fd;
}

HOOK pid_t waitpid(pid_t pid, int *status, int options) {
    if (!runner(waitpid) || (options & WNOHANG)) return libc(waitpid)(pid, status, options);
    pid_t r = (pid_t)sys(SYS_wait4, pid, status, options | WNOHANG, NULL, 0, 0);
    if (r != 0) return (pid_t)returned(r);
    if (!here()) return libc(waitpid)(pid, status, options);
    Child c = {pid, status, options};
    Stay s;
    stay(&s);
    int fd = pid > 0 && options == 0 ? open_pid(pid) : -1;
    if (fd >= 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        gort_poll(&p, 1, -1);
        gort_close(fd);
        r = libc(waitpid)(pid, status, WNOHANG);
    }
    if (r == 0) r = (pid_t)gort_blocking(wait_blocking, &c);
    stay_end(&s);
    return r;
}

static long system_blocking(void *arg) { return libc(system)(arg); }

HOOK int system(const char *command) {
    if (!here() || command == NULL) return libc(system)(command);
    Stay s;
    stay(&s);
    int r = (int)gort_blocking(system_blocking, (void *)command);
    stay_end(&s);
    return r;
}
