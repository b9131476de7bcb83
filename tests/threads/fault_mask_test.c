// not-with: valgrind (the faults are errors to it)
/* A signal for a fault, whose handler is set once there are threads, is blocked while that runs,
 * and not afterwards: each one comes. */
#include "threads_test.h"

#include <signal.h>
#include <sys/mman.h>

static volatile int hits, inside;
static char *page;

static bool blocks(int signo) {
    sigset_t now;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    return sigismember(&now, signo);
}
static void faulted(int signo, siginfo_t *info, void *context) {
    hits = hits + 1;
    inside = blocks(signo);
    if (info->si_addr == page) CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void *nothing(void *arg) { return arg; }
static void *faults(void *arg) {
    hits = 0;
    for (int i = 0; i < 5; i++) {
        CHECK(raise(SIGSEGV) == 0 && hits == 2 * i + 1);
        CHECK(inside && !blocks(SIGSEGV));
        CHECK(mprotect(page, 4096, PROT_NONE) == 0);
        *(volatile char *)page = 1;
        CHECK(hits == 2 * i + 2);
        CHECK(inside && !blocks(SIGSEGV));
    }
    return arg;
}

int main(void) {
    struct sigaction act = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(sigaction(SIGSEGV, &act, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, faults, NULL) == 0 && pthread_join(thread, NULL) == 0);
    faults(NULL);
    return 0;
}
