/*
 * Children: waitpid and system. A wait for the end of one child parks on a pidfd; any other wait is
 * libc's, in gort_blocking, or under a context in use by looks.
 *
 * A child that this process traces (ptrace(2)) is waited for when it stops, too, without a word in
 * `options`, and a pidfd says nothing of that. The child may have become one by itself, during the
 * wait. So the waiter looks, at intervals that double up to 128 ms; once a look has found a child
 * stopped, the process is a tracer, and its waits are libc's.
 *
 * The pidfd is opened and closed in a section each; in between the end of
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

#define LOOK_FIRST GORT_MS
#define LOOK_MOST (128 * GORT_MS)

static uint32_t is_tracer; /* atomic: a child of this process was found stopped, unasked */

static long wait_now(pid_t pid, int *status, int options) {
    return sys(SYS_wait4, pid, status, options | WNOHANG, NULL, 0, 0);
}

/* A result of wait4 for a child that the caller did not ask to hear of when it stops. */
static long note_stop(long r, const int *status) {
    if (r > 0 && status && WIFSTOPPED(*status)) store_rlx(&is_tracer, 1);
    return r;
}

static long pid_look(pid_t pid, int *status) {
    int own;
    if (status == NULL) status = &own;
    return note_stop(wait_now(pid, status, 0), status);
}

/* Until the child has ended or is found stopped: its number, or -errno. 0: libc is to wait, as this
 * kernel has no pidfd, or the program has closed it. Valgrind would tell the user of a bug. */
static long pid_wait(pid_t pid, int *status) {
    PidFd p = {.hook = {.abandon = pid_close}};
    if (load_rlx(&is_tracer) || core->in_valgrind || !pid_open(&p, pid)) return 0;
    long r = 0, ended = -ETIMEDOUT;
    for (int64_t pause = LOOK_FIRST; r == 0 && ended == -ETIMEDOUT;) {
        int64_t until = deadline_after(pause);
        ended = core->own_wait(&p.own, until);
        if (ended == -ETIMEDOUT && until > gort_now()) break; /* the context's */
        r = ended == 0 || ended == -ETIMEDOUT ? pid_look(pid, status) : 0;
        if (pause < LOOK_MOST) pause *= 2;
    }
    M *m = core->enter();
    exit_hook_pop(self(m), &p.hook);
    pid_close(&p.hook);
    core->leave(m);
    return r == 0 && ended != -EBADF ? ended : r;
}

/* Under a context in use, where no descriptor tells: looks. */
static long wait_looks(pid_t pid, int *status, int options, const int32_t *cause) {
    long r;
    for (int64_t pause = LOOK_FIRST; (r = wait_now(pid, status, options)) == 0;) {
        int done = cause_now(cause);
        if (done) return done;
        core->sleep_until(deadline_after(pause));
        if (pause < PAUSE_MOST) pause *= 2;
    }
    return r;
}

/* On a goroutine; 0: libc is to wait. */
static long wait_parked(pid_t pid, int *status, int options) {
    long done = pid > 0 && options == 0 ? pid_wait(pid, status) : 0;
    const int32_t *cause = done == 0 ? core->cause() : NULL;
    return cause ? wait_looks(pid, status, options, cause) : done;
}

HOOK pid_t waitpid(pid_t pid, int *status, int options) {
    if (!runner(waitpid) || (options & WNOHANG)) return libc(waitpid)(pid, status, options);
    pid_t r = (pid_t)wait_now(pid, status, options);
    if (r > 0 && options == 0) note_stop(r, status);
    if (r != 0) return (pid_t)returned(r);
    if (!here()) return libc(waitpid)(pid, status, options);
    long done = staying(wait_parked(pid, status, options));
    return (pid_t)(done != 0 ? returned(done)
                             : libc_blocking(waitpid, pid, status, options, 0, 0, 0));
}

HOOK int system(const char *command) {
    if (!here() || command == NULL) return libc(system)(command);
    return (int)libc_blocking(system, command, 0, 0, 0, 0, 0);
}
