/*
 * Nobody is stopped inside libc with its locks: not under a handler of the program's on the
 * alternate stack, not in a coroutine of the program's; and who jumps out of a callback of libc's
 * at the end of the runtime runs no further. Exceptions: tests/script/throw_libc.sh. end_stress
 * mixes them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static FILE *null;
static int stop, tid, entered;

static void print_until_stopped(void) {
    char big[2000] = {0};
    memset(big, 'x', sizeof big - 1);
    while (!get(&stop)) {
        set(&tid, (int)syscall(SYS_gettid));
        for (int i = 0; i < 50; i++) fprintf(null, "%s %d %f %s\n", big, i, 1.5 * i, big);
    }
}

static void stop_and_print(void) {
    gort_stop_world();
    fprintf(null, "with the world stopped\n"); /* hangs where somebody has the lock */
    gort_start_world();
    gort_sleep(GORT_MS);
}

/* ---- under a handler ------------------------------------------------------------------------- */

static void handler(int signo) {
    add(&entered, 1);
    for (volatile int i = 0; i < 3000000; i++) continue;
}

static void prints(void *arg) {
    print_until_stopped();
    add(&stop, 1);
}

/* The printer's thread is in the handler. */
static void interrupt_printer(void) {
    int before = get(&entered);
    syscall(SYS_tgkill, getpid(), get(&tid), SIGUSR1);
    while (get(&entered) == before) continue;
}

static int handler_beside_world(int argc, char **argv) {
    CHECK_EQ(gort_go(prints, NULL), 0);
    wait_until(get(&tid));
    for (int i = 0; i < 20; i++) {
        interrupt_printer();
        stop_and_print();
    }
    set(&stop, 1);
    wait_until(get(&stop) == 2);
    return 0;
}

static int handler_at_end(int argc, char **argv) {
    CHECK_EQ(gort_go(prints, NULL), 0);
    wait_until(get(&tid));
    interrupt_printer();
    return 0;
}

/* ---- in a coroutine -------------------------------------------------------------------------- */

static ucontext_t coroutine, back;
static char coroutine_stack[256 << 10];

static void prints_apart(void *arg) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = coroutine_stack;
    coroutine.uc_stack.ss_size = sizeof coroutine_stack;
    coroutine.uc_link = &back;
    makecontext(&coroutine, print_until_stopped, 0);
    swapcontext(&back, &coroutine);
    add(&stop, 1);
}

static int coroutine_beside_world(int argc, char **argv) {
    CHECK_EQ(gort_go(prints_apart, NULL), 0);
    wait_until(get(&tid));
    for (int i = 0; i < 50; i++) stop_and_print();
    set(&stop, 1);
    wait_until(get(&stop) == 2);
    return 0;
}

static int coroutine_at_end(int argc, char **argv) {
    CHECK_EQ(gort_go(prints_apart, NULL), 0);
    wait_until(get(&tid));
    gort_sleep(GORT_MS);
    return 0;
}

/* ---- a jump out of a callback ---------------------------------------------------------------- */

static jmp_buf out;
static uint64_t steps;

static int sleeps_and_jumps(const void *a, const void *b) {
    set(&entered, 1);
    poll(NULL, 0, -1); /* the end interrupts it */
    for (volatile int i = 0; i < 3000000; i++) continue;
    longjmp(out, 1);
}

static void runs_on(void *arg) {
    int a[2] = {2, 1};
    if (setjmp(out) == 0) qsort(a, 2, sizeof a[0], sleeps_and_jumps);
    for (;;) __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
}

static int jump_at_end(int argc, char **argv) {
    set(&entered, 0);
    CHECK_EQ(gort_go(runs_on, NULL), 0);
    wait_until(get(&entered));
    return 0;
}

static void run(int (*body)(int, char **)) {
    set(&stop, 0);
    set(&tid, 0);
    CHECK_EQ(gort_main(body, 0, NULL), 0);
    fprintf(null, "after the end\n"); /* hangs where somebody has the lock */
}

int main(void) {
#if !defined __x86_64__ || defined __SANITIZE_THREAD__
    SKIP("nobody is trapped there (src/sched/inlibc.c)");
#endif
    if (test_simulated()) SKIP("one thread");
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    null = fopen("/dev/null", "w");
    CHECK(null != NULL);
    run(handler_beside_world);
    for (int i = 0; i < 5; i++) run(handler_at_end);
    if (!SANITIZED) run(coroutine_beside_world);
    for (int i = 0; i < 20 && !SANITIZED; i++) run(coroutine_at_end);
    run(jump_at_end);
    uint64_t before = __atomic_load_n(&steps, __ATOMIC_RELAXED);
    usleep(20000); /* time to show for one that goes on */
    CHECKF(__atomic_load_n(&steps, __ATOMIC_RELAXED) == before, "it runs on after the end");
    return 0;
}
