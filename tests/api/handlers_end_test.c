/* Handlers that the program installs while a runtime runs are still there when it has ended, and
 * those from before are back. A SIGSEGV that was sent, and is no fault, does what it does without a
 * runtime. */
#include "../lib/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const int signals[] = {SIGPIPE, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define MANY ((int)(sizeof signals / sizeof *signals))

static struct sigaction found;
static int hits;
static void before(int signo) { hits++; }
static void inside(int signo) { hits++; }

/* Passes on to what it has found, as libraries do. */
static void passes_on(int signo, siginfo_t *info, void *context) {
    hits++;
    if (hits < 100 && (found.sa_flags & SA_SIGINFO)) found.sa_sigaction(signo, info, context);
}

static int nothing(int argc, char **argv) { return 0; }
static int installs(int argc, char **argv) {
    for (int i = 0; i < MANY; i++) signal(signals[i], i % 2 ? inside : SIG_IGN);
    return 0;
}
static int installs_chain(int argc, char **argv) {
    struct sigaction sa = {.sa_sigaction = passes_on, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSEGV, &sa, &found), 0);
    return 0;
}

static void handlers_stay(int argc, char **argv) {
    struct sigaction now;
    for (int i = 0; i < MANY; i++) signal(signals[i], SIG_DFL);
    CHECK_EQ(gort_main(installs, argc, argv), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sigaction(signals[i], NULL, &now), 0);
        CHECK(now.sa_handler == (i % 2 ? inside : SIG_IGN));
        signal(signals[i], i % 2 ? before : SIG_DFL);
    }
    CHECK_EQ(gort_main(nothing, argc, argv), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(sigaction(signals[i], NULL, &now), 0);
        CHECK(now.sa_handler == (i % 2 ? before : SIG_DFL));
        signal(signals[i], SIG_DFL);
    }
}

static int raises(int argc, char **argv) {
    raise(SIGSEGV);
    return 0;
}

/* How a child ends in which a SIGSEGV is sent in a runtime: the signal, or 100 and the hits. */
static int sent(void (*handler)(int), int argc, char **argv) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (handler) signal(SIGSEGV, handler);
        hits = 0;
        CHECK_EQ(gort_main(raises, argc, argv), 0);
        _exit(hits);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status)
           : WIFEXITED(status) ? 100 + WEXITSTATUS(status)
                               : -1;
}

int main(int argc, char **argv) {
    handlers_stay(argc, argv);
    CHECK_EQ(sent(SIG_DFL, argc, argv), SIGSEGV);
    CHECK_EQ(sent(SIG_IGN, argc, argv), 100);
    CHECK_EQ(sent(before, argc, argv), 101);
    /* a handler that passes on to the one of a runtime that has ended: each runs once */
    CHECK_EQ(gort_main(installs_chain, argc, argv), 0);
    CHECK_EQ(sent(NULL, argc, argv), SIGSEGV);
    return 0;
}
