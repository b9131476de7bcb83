/*
 * Children: is this still the process that started the runtime?
 *
 * A child has the memory of the runtime and none of its threads. It must not run a goroutine, nor
 * take a lock that a thread of the parent held, nor write where it and the parent share.
 *
 * Children with a copy of the memory: fork, _Fork, a bare clone. process.same stands in a page that
 * the kernel clears in every such child (MADV_WIPEONFORK). It is 1 in the process itself, so a
 * public call asks by one load. At 0 forked_slow looks: a child made while no runtime ran is a
 * process like any other, and sets it again. There _Fork and clone called no handlers: the first
 * call outside of a section does what those of fork do. On older kernels fork is all.
 *
 * Children that share the memory: vfork, clone(CLONE_VM | CLONE_VFORK). Nothing in memory can tell
 * them, but the maker's thread stands still until the child has called execve or ended, and the
 * child has its thread-locals. So where libgort-hook.so sees the call (hook/vfork.c) vfork_begin
 * clears tls_runner, and every hooked function is libc's own in the child. It also sets ATTN_CHILD
 * in the M: a child that calls gort, which it may not, is stopped with a line (vfork_stops).
 *
 * in_any_child() tells all of them by a system call: the process has another number. It is asked
 * where a call is slow anyway: before a hooked call parks, wakes or closes what the runtime knows
 * (hook/hook_internal.h), and where the monitor has asked for something (preempt.c).
 */
#include "base/fork.h"
#include "base/upstairs.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct Process process;
/* vfork_begins without their vfork_end */
__thread uint32_t tls_vforks __attribute__((tls_model("initial-exec")));
static __thread M *tls_vfork_runner __attribute__((tls_model("initial-exec")));
static __thread uint32_t tls_vfork_locks __attribute__((tls_model("initial-exec")));
static __thread int tls_vfork_pid __attribute__((tls_model("initial-exec")));

static bool forked; /* in a child, once it is known */
static int pid;     /* of the process that has the runtime; 0: none */
static bool marked; /* atomic: process.same was set, here or in a parent */

/* pairs with gort_main, which set process.same before */
static bool runtime_busy(void) { return load_acq(&sched.busy); }

bool runtime_running(void) { return load_rlx(&sched.running) && !in_forked_child(); }

static void become_child(void) {
    forked = true;
    store_rlx(&process.same, false);
    tls_runner = NULL;
    /* A request of the parent's monitor was copied with the memory. Nobody waits for a P here, and
     * sched.lock may be held by a thread that does not exist. */
    M *m = getm();
    if (m == NULL) return;
    if (load_rlx(&m->attn) & ATTN_TAKEN) m->p = NULL;
    store_rlx(&m->attn, 0);
}

void fork_renumber(void) {
    M *m = getm();
    if (m == NULL) return;
    m->tid = os_gettid();
    m->clock = os_thread_clock(m->tid);
}

static void mark(void) {
    store_rlx(&process.same, true);
    store_rel(&marked, true); /* pairs with forked_slow: a thread that sees it sees `same` */
}

/* process.same was 0: in a child, or before the first gort_main. gort_main sees it set, or sets it
 * by this function, before its CAS of sched.busy, which runtime_busy acquires. So a thread that
 * sees a runtime and no mark is in a child. */
NOINLINE bool forked_slow(void) {
    if (forked) return true;
    bool child = load_acq(&marked) && !load_rlx(&process.same); /* pairs with mark */
    if (runtime_busy() && !load_rlx(&process.same)) {
        become_child();
        return true;
    }
    M *m = getm();
    if (child && m && m->locks > load_rlx(&m->rest)) return false; /* the next call looks again */
    mark();
    if (!child) return false;
    if (pid != 0) pid = os_getpid();
    fork_renumber();
    process.leaves = true;
    if (upstairs.bare_child) upstairs.bare_child();
    process.leaves = false;
    return false;
}

NOINLINE bool in_any_child(void) { return in_forked_child() || (pid != 0 && os_getpid() != pid); }

/* Values of the hook's go to the thread. A child of _Fork or a bare clone may not allocate. */
static void after_fork(void) {
    if (!runtime_busy()) {
        pid = os_getpid();
        mark();
        return;
    }
    if (upstairs.forked) upstairs.forked();
    become_child();
}

NORETURN void child_exits(void) {
    for (;;) os_sys(SYS_exit_group, 2, 0, 0, 0, 0, 0);
}

/* Neither fatal(), which asks whether this is a child, nor print_fd: the stack may be compact. */
NORETURN void child_ends(const char *why) {
    struct iovec line[] = {{"gort: fatal: ", 13}, {(void *)why, strlen(why)}, {"\n", 1}};
    os_sys(SYS_writev, 2, (long)line, 3, 0, 0, 0);
    child_exits();
}

void fork_begin(void) { pid = os_getpid(); }

void fork_watch(void) {
    pthread_atfork(NULL, NULL, after_fork);
    long size = sysconf(_SC_PAGESIZE);
    if (size > 0 && (size_t)size <= sizeof process)
        madvise(&process, sizeof process, MADV_WIPEONFORK); /* libc's: before all else */
}

/* ---- vfork ---------------------------------------------------------------------------------- */

void vfork_begin(void) {
    M *m = getm();
    if (tls_vforks++ != 0) return; /* a child has a child */
    tls_vfork_pid = os_getpid();
    tls_vfork_runner = tls_runner;
    tls_runner = NULL;
    if (m == NULL) return;
    tls_vfork_locks = m->locks;
    or_seq(&m->attn, ATTN_CHILD);
}

/* In the parent, on the same thread, when the child is gone: a section in between would have ended
 * the child. A killed child with children has not counted them down: its maker begins anew. */
void vfork_end(void) {
    M *m = getm();
    if (--tls_vforks != 0 && os_getpid() != tls_vfork_pid) return;
    tls_vforks = 0;
    tls_runner = tls_vfork_runner;
    if (m) and_seq(&m->attn, ~(uint32_t)ATTN_CHILD);
}

NOINLINE void vfork_stops(M *m) {
    if (m && (pid == 0 || os_getpid() == pid)) return;
    if (m) m->locks = tls_vforks ? tls_vfork_locks : m->locks - 1; /* as the parent had it */
    child_ends("a call into gort in a child of vfork, which may only call execve or _exit");
}
