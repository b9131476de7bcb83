// not-with: valgrind (the faults are errors to it)
/* A program that has handlers before its first thread gets its faults as ever, those of a full
 * stack, too, and SIGQUIT, and nothing is printed: null references of virtual machines, their stack
 * overflows. */
#include "threads_test.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>

static __thread sigjmp_buf back;
static int quits; /* atomic */

static void on_fault(int signo) { siglongjmp(back, signo); }
static void on_quit(int signo) { __atomic_add_fetch(&quits, 1, __ATOMIC_SEQ_CST); }

static int deep(int levels) {
    volatile int room[1000];
    room[0] = levels;
    return levels == 0 ? 0 : deep(levels - 1) + room[0];
}
static int *volatile nowhere;

static void *faults(void *arg) {
    enum { SIZE = 65536 };
    stack_t own = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
    CHECK(own.ss_sp && sigaltstack(&own, NULL) == 0);
    for (volatile int round = 0; round < 3; round++) {
        int signo = sigsetjmp(back, 1);
        if (signo == 0) *nowhere = 1;
        CHECK(signo == SIGSEGV);
        signo = sigsetjmp(back, 1);
        if (signo == 0) deep(1 << 30);
        CHECK(signo == SIGSEGV || signo == SIGBUS);
    }
    own.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&own, NULL) == 0);
    free(own.ss_sp);
    return NULL;
}

static void handle(int signo, void (*fn)(int), int flags) {
    struct sigaction act = {.sa_handler = fn, .sa_flags = flags};
    CHECK(sigaction(signo, &act, NULL) == 0);
}

int main(void) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    struct stat said;
    FILE *words = tmpfile();
    int console = dup(2);
    CHECK(words && console >= 0 && dup2(fileno(words), 2) == 2);
    handle(SIGSEGV, on_fault, SA_ONSTACK);
    handle(SIGBUS, on_fault, SA_ONSTACK);
    handle(SIGQUIT, on_quit, 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, faults, NULL) == 0);
    CHECK(kill(getpid(), SIGQUIT) == 0);
    wait_until(__atomic_load_n(&quits, __ATOMIC_SEQ_CST) == 1);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(dup2(console, 2) == 2);
    CHECK(fstat(fileno(words), &said) == 0 && said.st_size == 0);
    return 0;
}
