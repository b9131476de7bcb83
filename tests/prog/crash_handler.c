// status: 7
// stderr: gort: SIGSEGV in goroutine 1: nothing is mapped at address 0x10
// stderr: ; the program's handler is called
// stderr: the handler of the program
// no-stderr: fatal
// no-stderr: SIGABRT
// not-with: address thread undefined valgrind
/* A handler that the program had before gort_main runs once the crash is told; it may end the
 * program in its own way. What it does itself, here abort(), is not told a second time. */
#include "../lib/test.h"

#include <signal.h>
#include <unistd.h>

static volatile uintptr_t nowhere = 16;

static void aborted(int signo) { _exit(7); }
static void on_segv(int signo, siginfo_t *info, void *context) {
    static const char text[] = "the handler of the program\n";
    ssize_t n = write(2, text, sizeof text - 1);
    if (n > 0 && info->si_addr == (void *)nowhere) abort();
}

static int body(int argc, char **argv) {
    *(volatile int *)nowhere = 1;
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
    signal(SIGABRT, aborted);
    return gort_main(body, argc, argv);
}
