/*
 * Backtraces through code without frame pointers, through a realigned stack, through a signal
 * handler, with names of static functions; and of garbage, which must end and not fault.
 */
#include "../lib/white.h"
#include "unwind/symbols.h"
#include "unwind/unwind.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define NOFP __attribute__((noinline, noclone, optimize("omit-frame-pointer")))

static uintptr_t pcs[64];
static int count;
static volatile int sink;

static bool has_frame(const char *name) {
    for (int i = 0; i < count; i++) {
        Named n = symbol_of(i == 0 ? pcs[i] : pcs[i] - 1);
        if (n.name && strcmp(n.name, name) == 0) return true;
    }
    return false;
}

static void show(void) {
    char buf[512];
    Out o = OUT(2, buf);
    for (int i = 0; i < count; i++) {
        out_fmt(&o, "  %p ", (void *)pcs[i]);
        symbol_print(&o, pcs[i] - 1);
        out_str(&o, "\n");
    }
    out_flush(&o);
}

#define CHECK_FRAME(name)                                \
    do {                                                 \
        if (!has_frame(name)) show();                    \
        CHECKF(has_frame(name), "no frame of %s", name); \
    } while (0)

static __attribute__((noinline)) void take(void) {
    Regs r;
    ucontext_t here;
    getcontext(&here);
    regs_context(&r, &here);
    count = unwind(&r, 0, 0, pcs, 64);
    sink++;
}

static NOFP int plain_leaf(int n) {
    volatile char room[200];
    room[n] = 1;
    take();
    return room[n] + n;
}
static NOFP int recursive(int n) {
    volatile int keep = n;
    int r = n == 0 ? plain_leaf(3) : recursive(n - 1);
    return r + keep;
}
static NOFP int realigned(int n) {
    volatile char room[64] __attribute__((aligned(64)));
    room[n] = 2;
    int r = recursive(n);
    return r + room[n];
}
static NOFP int with_alloca(int n) {
    volatile char *room = __builtin_alloca((size_t)n * 40 + 8);
    room[0] = 1;
    return realigned(n) + room[0];
}

static __attribute__((noinline)) void plain_frames(void) {
    sink += with_alloca(5);
    CHECK_FRAME("plain_leaf");
    CHECK_FRAME("recursive");
    CHECK_FRAME("realigned");
    CHECK_FRAME("with_alloca");
    CHECK_FRAME("plain_frames");
    CHECK_FRAME("main");
    CHECK_GE(count, 10);
}

static void on_signal(int signo, siginfo_t *info, void *uc) {
    Regs r;
    (void)info;
    if (signo == SIGUSR1) regs_context(&r, uc);
    else regs_frame(&r, (uintptr_t)__builtin_frame_address(0));
    count = unwind(&r, 0, 0, pcs, 64);
}
static NOFP void interrupted(int signo) {
    volatile char room[100];
    room[3] = 1;
    raise(signo);
    sink += room[3];
}

/* From the context, and through the trampoline from inside the handler, on another stack. */
static __attribute__((noinline)) void signal_frames(void) {
    static char alt[32768];
    stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaltstack(&ss, NULL), 0);
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);
    for (int i = 0; i < 2; i++) {
        count = 0;
        interrupted(i ? SIGUSR1 : SIGUSR2);
        CHECK_FRAME("interrupted");
#ifdef __aarch64__
        if (i == 0) continue; /* the trampoline may have no tables (an emulator's) */
#endif
        CHECK_FRAME("signal_frames");
        CHECK_FRAME("main");
    }
}

#ifdef __x86_64__
/* A frame that its tables call a signal's, in a way that is not understood: the frame pointer leads
 * to the caller, whose pc is a return address. It stands behind the caller's last instruction. */
void last_is_a_call(void);
void leaves_by_jump(void);
static jmp_buf back;
void leaves_by_jump(void) {
    take();
    longjmp(back, 1);
}
__asm__(".text\n"
        ".type strange_tables, @function\n"
        "strange_tables:\n"
        ".cfi_startproc\n"
        ".cfi_signal_frame\n"
        ".cfi_escape 0x0f, 1, 0xe0\n" /* the CFA: an expression of an unknown operator */
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        "call leaves_by_jump\n"
        "ud2\n"
        ".cfi_endproc\n"
        ".size strange_tables, . - strange_tables\n"
        ".globl last_is_a_call\n"
        ".type last_is_a_call, @function\n"
        "last_is_a_call:\n"
        ".cfi_startproc\n"
        "sub $24, %rsp\n"
        ".cfi_adjust_cfa_offset 24\n"
        "call strange_tables\n"
        ".cfi_endproc\n"
        ".size last_is_a_call, . - last_is_a_call\n"
        "ud2\n");

static __attribute__((noinline)) void strange_signal_frame(void) {
    count = 0;
    if (setjmp(back) == 0) last_is_a_call();
    CHECK_FRAME("strange_tables");
    CHECK_FRAME("last_is_a_call");
    CHECK_FRAME("strange_signal_frame");
    CHECK_FRAME("main");
}
#else
static void strange_signal_frame(void) {}
#endif

/* A sandbox or an emulator may forbid the checked reads; then nothing protects from garbage. */
static bool reads_are_checked(void) {
    char a, b = 1;
    struct iovec to = {&a, 1}, from = {&b, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

/* Random stacks with plausible code addresses: the trace ends, nothing faults. */
static void garbage(void) {
    if (!reads_are_checked()) return;
    static uintptr_t words[512];
    uint64_t x = 88172645463325252u;
    uintptr_t hole = (uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < 512; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            unsigned pick = (unsigned)(x >> 60);
            words[i] = pick < 6    ? (uintptr_t)plain_frames + (x & 0xfff)
                       : pick < 11 ? (uintptr_t)&words[x & 511]
                       : pick < 12 ? hole + (x & 4088)
                       : pick < 13 ? (uintptr_t)memcpy + (x & 0xffff)
                                   : x;
        }
        Regs r;
        regs_at(&r, (uintptr_t)plain_frames + (x & 0xfff), (uintptr_t)words,
                (uintptr_t)&words[x & 255]);
        int n = unwind(&r, round & 1 ? (uintptr_t)words : 0,
                       round & 1 ? (uintptr_t)(words + 512) : 0, pcs, 64);
        CHECK(n >= 1 && n <= 64);
    }
}

static void names(void) {
    Named n = symbol_of((uintptr_t)plain_frames + 1);
    CHECK(n.name && strcmp(n.name, "plain_frames") == 0 && n.offset == 1);
    CHECK(symbol_of(12345).module == NULL);
    n = symbol_of((uintptr_t)fopen);
    CHECK(n.module != NULL && n.name != NULL);
    uintptr_t bad;
    CHECK(!read_memory(8, &bad, sizeof bad));
    CHECK(!read_memory((uintptr_t)-16, &bad, 64));
    /* nobody's memory, though it does not wrap around */
    CHECK(!read_memory((uintptr_t)-16, &bad, 8));
}

int main(void) {
    names();
    plain_frames();
    signal_frames();
    strange_signal_frame();
    garbage();
    return 0;
}
