/*
 * A library on a goroutine that brings an alternate stack for its handlers, and disables it at the
 * end, sees what it has set. The thread keeps the runtime's: handlers run there. On plain threads
 * the call is libc's.
 */
#include "hook.h"

#define SIZE 65536
static char *mine;
static int handled;

static stack_t kernels(void) {
    stack_t ss;
    CHECK_EQ(syscall(SYS_sigaltstack, NULL, &ss), 0);
    return ss;
}

static void handler(int signo) {
    stack_t ss, off = {.ss_flags = SS_DISABLE};
    char here;
    CHECK_EQ(sigaltstack(NULL, &ss), 0);
    CHECK_EQ(ss.ss_flags, SS_ONSTACK);
    CHECK((uintptr_t)&here - (uintptr_t)ss.ss_sp < ss.ss_size);
    CHECK((uintptr_t)&here - (uintptr_t)mine >= SIZE);
    CHECK_FAILS(sigaltstack(&off, NULL), EPERM);
    handled++;
}

static void check_noted(const void *sp, size_t size, int flags) {
    stack_t ss;
    CHECK_EQ(sigaltstack(NULL, &ss), 0);
    CHECK_EQ(ss.ss_flags, flags);
    if (flags == SS_DISABLE) return;
    CHECK(ss.ss_sp == sp);
    CHECK_EQ(ss.ss_size, size);
}

static void errors(void) {
    stack_t small = {.ss_sp = mine, .ss_size = 100},
            odd = {.ss_sp = mine, .ss_size = SIZE, .ss_flags = 77};
    CHECK_FAILS(sigaltstack(&small, NULL), ENOMEM);
    CHECK_FAILS(sigaltstack(&odd, NULL), EINVAL);
}

static void as_a_library(void) {
    stack_t ss = {.ss_sp = mine, .ss_size = SIZE}, off = {.ss_flags = SS_DISABLE}, old;
    stack_t before = kernels();
    CHECK_GE(before.ss_size, 262144);
    check_noted(NULL, 0, SS_DISABLE);
    CHECK_EQ(sigaltstack(&ss, &old), 0);
    CHECK_EQ(old.ss_flags, SS_DISABLE);
    check_noted(mine, SIZE, 0);
    errors();
    check_noted(mine, SIZE, 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(sigaltstack(&off, &old), 0);
    CHECK(old.ss_sp == mine);
    check_noted(NULL, 0, SS_DISABLE);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(handled, 2);
    stack_t after = kernels();
    CHECK(after.ss_sp == before.ss_sp && after.ss_size == before.ss_size);
    CHECK_EQ(after.ss_flags, 0);
}

static void *plain(void *arg) {
    stack_t ss = {.ss_sp = mine, .ss_size = SIZE}, off = {.ss_flags = SS_DISABLE};
    CHECK_EQ(sigaltstack(&ss, NULL), 0);
    CHECK(kernels().ss_sp == mine);
    errors();
    CHECK_EQ(sigaltstack(&off, NULL), 0);
    CHECK_EQ(kernels().ss_flags, SS_DISABLE);
    return NULL;
}

static int run(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = handler};
    pthread_t t;
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    mine = malloc(SIZE);
    gort_lock_thread(); /* each thread has its own */
    as_a_library();
    gort_unlock_thread();
    CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    free(mine);
    return 0;
}

HOOK_MAIN(run)
