/*
 * A plain thread with an alternate stack of its own, a small one: a handler that did not ask for it
 * runs on the stack that it has interrupted, however much it needs. The alternate stack stays free
 * for the next signal, also after a longjmp; registers, the red zone and the mask come back.
 */
#include "hook.h"
#include <setjmp.h>
#include <ucontext.h>

#ifdef __x86_64__
#define ALT 16384
#define BELOW 120000
#define ROUNDS 1000
static __thread char *arena, *alt;
static __thread volatile int depth, handled, nested, jumps; /* raise is a "leaf" to compilers */
static __thread sigjmp_buf out;

static bool on_alt(const void *at) { return (uintptr_t)at - (uintptr_t)alt < ALT; }

static void nested_handler(int signo) {
    char here;
    CHECK(on_alt(&here)); /* it asked for it */
    memset(alt, 'n', ALT / 4);
    nested++;
}

static void big_handler(int signo, siginfo_t *info, void *context) {
    volatile char frame[BELOW - 20000];
    const ucontext_t *c = context;
    for (size_t i = 0; i < sizeof frame; i++) frame[i] = 'X';
    CHECK(!on_alt((const void *)frame) && !on_alt(info) && !on_alt(context));
    CHECK(!on_alt(c->uc_mcontext.fpregs));
    CHECK_EQ(info->si_signo, SIGUSR1);
    CHECK(info->si_pid == getpid());
    __asm__ volatile("pxor %%xmm15, %%xmm15" ::: "xmm15");
    handled++;
    raise(SIGUSR2);
    memset(alt, 'h', ALT); /* nothing of this signal is there */
    if (jumps) siglongjmp(out, 1);
    if (depth++ == 0) raise(SIGUSR1); /* SA_NODEFER */
    depth--;
}

/* A signal between two instructions: what they rely on is there afterwards. */
static void check_registers(void) {
    long tid = syscall(SYS_gettid), pid = getpid(), r, x = 0x1122334455667788, got, zone;
    __asm__ volatile("leaq -1024(%%rsp), %%rsp\n\t"
                     "movq %[x], %%xmm15\n\t"
                     "movq %[x], -128(%%rsp)\n\t"
                     "syscall\n\t"
                     "movq %%xmm15, %[got]\n\t"
                     "movq -128(%%rsp), %[zone]\n\t"
                     "leaq 1024(%%rsp), %%rsp"
                     : "=a"(r), [got] "=&r"(got), [zone] "=&r"(zone)
                     : "a"(SYS_tgkill), "D"(pid), "S"(tid), "d"(SIGUSR1), [x] "r"(x)
                     : "rcx", "r11", "memory", "xmm15");
    CHECK_EQ(r, 0);
    CHECK_EQ(got, x);
    CHECK_EQ(zone, x);
}

static void check_unblocked(void) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK_EQ(sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGUSR2), 0);
}

static void *thread(void *arg) {
    stack_t ss = {.ss_size = ALT}, now;
    arena = calloc(1, BELOW + ALT); /* as two neighbours of malloc's */
    ss.ss_sp = alt = arena + BELOW;
    CHECK_EQ(sigaltstack(&ss, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int before = handled;
        check_registers();
        CHECK_EQ(handled, before + 2);
        check_unblocked();
    }
    for (jumps = 0; jumps++ < ROUNDS;)
        if (sigsetjmp(out, 1) == 0) raise(SIGUSR1);
    check_unblocked();
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK(now.ss_sp == alt && now.ss_size == ALT && now.ss_flags == 0);
    CHECK_EQ(handled, 3 * ROUNDS);
    CHECK_EQ(nested, handled);
    for (int i = 0; i < BELOW; i++) CHECK_EQ(arena[i], 0);
    free(arena);
    return NULL;
}

static int run(int argc, char **argv) {
    struct sigaction big = {.sa_flags = SA_SIGINFO | SA_NODEFER},
                     other = {.sa_handler = nested_handler, .sa_flags = SA_ONSTACK};
    pthread_t t[2];
    big.sa_sigaction = big_handler;
    CHECK_EQ(sigaction(SIGUSR1, &big, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR2, &other, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, thread, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    return 0;
}
#else
static int run(int argc, char **argv) { return 77; } /* docs/hook.md */
#endif

HOOK_MAIN(run)
