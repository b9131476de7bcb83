/*
 * What ends a program with words, in a child: SIGQUIT, a stack overflow, a misuse. The child ends
 * as any other would, by the default action or with the line alone (and status 2 where it shares
 * the memory); it does not list its parent's goroutines. And the parent, which shared its memory
 * with some of them, can still say its own last words.
 */
#include "hook.h"
#include <sys/syscall.h>

enum { FORK, BARE_CLONE, VFORK, BARE_VFORK, KINDS };
static const char *const kinds[] = {"fork", "bare clone", "vfork", "bare vfork"};
static gort_mutex never_locked;

static void quits(void) { kill((pid_t)syscall(SYS_getpid), SIGQUIT); }
static int deeper(volatile char *up) {
    volatile char room[4096];
    room[1] = 0;
    room[0] = *up;
    return room[0] == 0 ? deeper(room) + room[1] : 0;
}
static void overflows(void) { deeper(&(volatile char){0}); }
static void misuses(void) { gort_mutex_unlock(&never_locked); }

static const struct Fault {
    const char *name;
    void (*fn)(void);
    int status[KINDS]; /* as waitpid has it */
} faults[] = {
    {"SIGQUIT", quits, {SIGQUIT, SIGQUIT, SIGQUIT, SIGQUIT}},
    {"a stack overflow", overflows, {SIGSEGV, SIGSEGV, SIGSEGV, SIGSEGV}},
    {"a misuse", misuses, {SIGABRT, SIGABRT, 2 << 8, 2 << 8}},
};

static inline __attribute__((always_inline)) pid_t bare_vfork(void) {
#ifdef __x86_64__
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_vfork) : "rcx", "r11", "memory");
    return (pid_t)r;
#else
    return vfork();
#endif
}

static __attribute__((noinline)) pid_t start(int kind, void (*fn)(void)) {
    pid_t pid;
    switch (kind) {
    case FORK: pid = fork(); break;
    case BARE_CLONE: pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); break;
    case VFORK: pid = vfork(); break;
    default: pid = bare_vfork();
    }
    if (pid == 0) {
        alarm(100);
        fn();
        syscall(SYS_exit_group, 0);
    }
    return pid;
}

static int parent(int argc, char **argv) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            int status;
            pid_t pid = start(kind, faults[i].fn);
            CHECK_GT(pid, 0);
            while (syscall(SYS_wait4, pid, &status, 0, NULL) < 0) {}
            if ((status & ~0x80) != faults[i].status[kind])
                fprintf(stderr, "wrong: %s in a child (%s): status 0x%x\n", faults[i].name,
                        kinds[kind], status);
        }
    }
    misuses();
    return 0;
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (; (text = strstr(text, word)) != NULL; text++) n++;
    return n;
}

int main(int argc, char **argv) {
    static char text[1 << 16];
    int ends[2], status;
    size_t n = 0;
    check_hooked();
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(100);
        dup2(ends[1], 2);
        close(ends[1]);
        _exit(gort_main(parent, argc, argv));
    }
    close(ends[1]);
    for (ssize_t r; n < sizeof text - 1 && (r = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    bool good = count(text, "wrong: ") == 0 && count(text, "goroutine 1 [") == 1 &&
                count(text, "stack overflow (") == KINDS && WIFSIGNALED(status) &&
                WTERMSIG(status) == SIGABRT;
    if (!good) fprintf(stderr, "status 0x%x\n%s", status, text);
    return !good;
}
