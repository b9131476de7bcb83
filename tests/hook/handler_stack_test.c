/*
 * A handler on an alternate stack that the program has brought itself, behind the hook's back,
 * never parks: the next signal would run on that stack. Its thread waits, as in libc, and runs
 * nobody else. A coroutine's stack is no such stack: it parks.
 */
#include "hook.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset */
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <ucontext.h>

#define STACK 65536
#define ROUNDS 300
static int inside, stop, handled, ends[2], epoll_fd, how;
static sem_t sem;

static void w_read(void) {
    char b;
    CHECK_EQ(read(ends[0], &b, 1), 1);
}
static void w_poll(void) {
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    CHECK_EQ(poll(&p, 1, -1), 1);
    w_read();
}
static void w_select(void) {
    fd_set r;
    FD_ZERO(&r);
    FD_SET(ends[0], &r);
    CHECK_EQ(select(ends[0] + 1, &r, NULL, NULL, NULL), 1);
    w_read();
}
static void w_epoll(void) {
    struct epoll_event ev;
    CHECK_EQ(epoll_wait(epoll_fd, &ev, 1, -1), 1);
    w_read();
}
static void w_sem(void) {
    CHECK_EQ(sem_wait(&sem), 0);
    w_read();
}
static void w_sleep(void) {
    struct timespec ts = {0, 20000000};
    nanosleep(&ts, NULL);
    w_read();
}
static void (*const waits[])(void) = {w_read, w_poll, w_select, w_epoll, w_sem, w_sleep};
#define WAITS ((int)(sizeof waits / sizeof *waits))

static void handler(int signo) {
    set(&inside, (int)syscall(SYS_gettid));
    waits[how]();
    add(&handled, 1);
    set(&inside, 0);
}

/* Runs while the handler waits, and then lets it go on. */
static void other(void *arg) {
    for (int i = 0, done = -1; !get(&stop); gort_yield()) {
        int tid = get(&inside);
        if (tid == 0 || get(&handled) == done) continue;
        CHECK_NE((int)syscall(SYS_gettid), tid);
        /* as a preemption: what it interrupts is made again */
        if (i == ROUNDS / 2) syscall(SYS_tgkill, getpid(), tid, SIGURG);
        if (++i < ROUNDS) continue;
        i = 0;
        done = get(&handled);
        CHECK_EQ(sem_post(&sem), 0);
        CHECK_EQ(write(ends[1], "x", 1), 1);
    }
}

static void on_a_stack_of_its_own(void) {
    stack_t st = {.ss_sp = malloc(STACK), .ss_size = STACK}, old;
    CHECK_EQ(syscall(SYS_sigaltstack, &st, &old), 0);
    for (how = 0; how < WAITS; how++) {
        while (sem_trywait(&sem) == 0) {}
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(get(&handled), how + 1);
    }
    CHECK_EQ(syscall(SYS_sigaltstack, &old, NULL), 0);
    free(st.ss_sp);
}

/* By whatever name it was installed, and before the hook was loaded. */
sighandler_t bsd_signal(int signo, sighandler_t handler);
static sighandler_t (*const installers[])(int, sighandler_t) = {
    signal, ssignal, bsd_signal, sysv_signal, __sysv_signal, sigset};
static void early(void) {
    struct sigaction sa = {.sa_handler = handler};
    sigaction(SIGUSR2, &sa, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*const first_of_all)(void) = early;
static void by_every_name(void) {
    int before = get(&handled), n = (int)(sizeof installers / sizeof *installers);
    how = 0;
    for (int i = 0; i < n; i++) {
        CHECK(installers[i](SIGUSR1, handler) != SIG_ERR);
        CHECK_EQ(raise(SIGUSR1), 0);
    }
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(get(&handled) - before, n + 1);
}

static ucontext_t outside, coroutine;
static void body(void) { w_read(); }
static void run_coroutine(void *arg) {
    char *stack = malloc(STACK);
    CHECK_EQ(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK;
    coroutine.uc_link = &outside;
    makecontext(&coroutine, body, 0);
    CHECK_EQ(swapcontext(&outside, &coroutine), 0);
    free(stack);
}
static void on_a_coroutines_stack(void) {
    CHECK_EQ(gort_go(run_coroutine, NULL), 0);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    wait_until(gort_count() == 1);
}

static int run(int argc, char **argv) {
    struct epoll_event ev = {.events = EPOLLIN};
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(sem_init(&sem, 0, 0), 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_GE(epoll_fd = epoll_create1(0), 0);
    CHECK_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends[0], &ev), 0);
    CHECK_EQ(gort_go(other, NULL), 0);
    on_a_stack_of_its_own();
    by_every_name();
    set(&stop, 1);
    wait_until(gort_count() == 1);
    on_a_coroutines_stack();
    return 0;
}

HOOK_MAIN(run)
