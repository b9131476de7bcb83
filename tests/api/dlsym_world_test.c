// not-with: emulation
/* dlsym looks who calls it. A world that stops while a goroutine is about to enter it, at its first
 * instruction, must not stand in the way with a return address of its own (src/sched/inlibc.c): one
 * in libgort.so, from where the next gort_now is none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

#ifdef __x86_64__

#define TRAP_FLAG 0x100
static uintptr_t first_instruction;
static int there, found, right;

/* Steps up to dlsym, and stands there for as long as the world takes to notice. */
static void step(int signo, siginfo_t *info, void *context) {
    greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
    if ((uintptr_t)reg[REG_RIP] != first_instruction) return;
    reg[REG_EFL] &= ~TRAP_FLAG;
    add(&there, 1);
    for (int64_t until = gort_now() + 5 * GORT_MS; gort_now() < until;) continue;
}

static void looks_up(void *wanted) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                     "lea 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
    void *at = dlsym(RTLD_NEXT, "gort_now");
    if (at == wanted) add(&right, 1);
    add(&found, 1);
}

static int body(int argc, char **argv) {
    struct sigaction sa = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    void *wanted = dlsym(RTLD_NEXT, "gort_now"); /* NULL: of libgort.a */
    first_instruction = (uintptr_t)dlsym(RTLD_NEXT, "dlsym");
    CHECK(first_instruction != 0);
    sigaction(SIGTRAP, &sa, NULL);
    for (int i = 1; i <= 10; i++) {
        CHECK_EQ(gort_go(looks_up, wanted), 0);
        wait_until(get(&there) == i);
        gort_stop_world();
        gort_start_world();
        wait_until(get(&found) == i);
        CHECK_EQ(get(&right), i);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (test_valgrind()) SKIP("valgrind has no trap flag");
    setenv("GORT_MAXPROCS", "2", 1);
    return gort_main(body, argc, argv);
}

#else
int main(void) { SKIP("nobody is trapped here"); }
#endif
