/*
 * A child of vfork that has a child of vfork and is killed meanwhile: the parent goes on as if
 * nothing had been, a thread that runs goroutines.
 */
#include "hook.h"
#include <sys/syscall.h>

static int pipes[2];

static void reads(void *arg) {
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
}

#ifdef __x86_64__
/* Without a stack, since the parent goes on with it. */
static inline __attribute__((always_inline, noreturn)) void kill_and_exit(long pid) {
    __asm__ volatile(
        "syscall\n\tmovl %1, %%eax\n\txorl %%edi, %%edi\n\tsyscall" ::"a"((long)SYS_kill),
        "i"(SYS_exit), "D"(pid), "S"((long)SIGKILL)
        : "rcx", "r11", "memory");
    __builtin_unreachable();
}

static __attribute__((noinline)) pid_t lose_a_child(void) {
    pid_t pid = vfork();
    if (pid != 0) return pid;
    if (vfork() == 0) kill_and_exit(syscall(SYS_getppid));
    _exit(7); /* nobody comes here */
}
#else
static pid_t lose_a_child(void) {
    pid_t pid = fork();
    if (pid == 0) raise(SIGKILL);
    return pid;
}
#endif

static void forks_and_reads(void *arg) {
    int status;
    pid_t pid = lose_a_child();
    CHECK_GT(pid, 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    reads(NULL);
}

static int run(int argc, char **argv) {
    CHECK_EQ(pipe(pipes), 0);
    gort_go(forks_and_reads, NULL);
    wait_until(waiting_for("IO wait") == 1); /* and not a thread in the kernel */
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    wait_until(gort_count() == 1);
    return 0;
}

int main(int argc, char **argv) {
    check_hooked();
    return gort_main(run, argc, argv);
}
