// status: segv
// stderr: SIGSEGV in goroutine 1: nothing is mapped at address 0x10
// stderr: ; the program's handler is called
// stderr: the handler of the program
// stderr: gort: fatal: SIGSEGV in goroutine 1
// not-with: address thread undefined valgrind
/* A handler with SA_RESETHAND is called once, and returns to the fault, which ends the program. */
#include "../lib/test.h"

#include <signal.h>
#include <unistd.h>

static volatile uintptr_t nowhere = 16;

static void on_segv(int signo) {
    static int calls;
    static const char text[] = "the handler of the program\n";
    if (++calls > 1 || write(2, text, sizeof text - 1) < 0) _exit(7);
}

static int body(int argc, char **argv) {
    *(volatile int *)nowhere = 1;
    return 0;
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = on_segv, .sa_flags = SA_RESETHAND};
    CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
    return gort_main(body, argc, argv);
}
