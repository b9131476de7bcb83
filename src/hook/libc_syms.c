/*
 * libc's own functions, and the core, are found when the library is loaded; an earlier call, from
 * another library's constructor, finds libc's itself.
 *
 * That caller may be the program's malloc in the middle of its first call, with its lock held. The
 * loader calls malloc for the text of an error, so such a call looks up its own name and no other,
 * and nothing asks for a version that is perhaps not there. dlsym(RTLD_NEXT) gives the oldest
 * version of a name; that is wrong for x86-64's condition variables of before 2003 only.
 */
#include "hook/hook_internal.h"

#include <dlfcn.h>

/* Stands in for a function until it is found: finds it, and jumps to libc's. */
#ifdef __x86_64__
#define STUB(name)                                                                               \
    static COLD __attribute__((used)) void *found_##name(void) {                                 \
        return *(void **)(void *)&real.name.fn = libc_find(#name);                               \
    }                                                                                            \
    void early_##name(void);                                                                     \
    __asm__(".pushsection .text.unlikely,\"ax\",@progbits\n"                                     \
            "early_" #name ":\n\t"                                                               \
            "pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9; pushq %rax\n" \
            "call found_" #name "\n\tmovq %rax, %r11\n\t"                                        \
            "popq %rax; popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi\n\t"      \
            "jmp *%r11\n"                                                                        \
            ".popsection");
EVERY_NAME(STUB)
#define UNKNOWN(name) .name = {.tls = NO_TLS, .fn = (__typeof__(&name))(void *)early_##name},
#else
#define UNKNOWN(name) .name = {.tls = NO_TLS},
#endif
Real real = {EVERY_NAME(UNKNOWN)};
#undef UNKNOWN
const HookCore *core;
Known known = {.tls = NO_TLS};

#ifdef __x86_64__
static bool is_from_2003(const char *name) {
    return strcmp(name, "pthread_cond_wait") == 0 || strcmp(name, "pthread_cond_timedwait") == 0 ||
           strcmp(name, "pthread_cond_signal") == 0 || strcmp(name, "pthread_cond_broadcast") == 0;
}
#else
static bool is_from_2003(const char *name) { return false; }
#endif

COLD void *libc_find(const char *name) {
    return is_from_2003(name) ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : dlsym(RTLD_NEXT, name);
}

static void libc_find_all(void) {
#define FIND(name) *(void **)(void *)&real.name.fn = libc_find(#name);
    EVERY_NAME(FIND)
#undef FIND
}

static void pay_all(M *m) {
    waitq_pay(m);
    if (known.threads) signals_pay(m);
}

static __attribute__((constructor(101))) void hook_load(void) {
    libc_find_all();
    const HookCore *c = gort_hook_core();
    if (c->size == sizeof(HookCore) && c->size_m == sizeof(M) && c->size_g == sizeof(G)) {
        core = c;
        known.taken = c->taken; /* one by one: an earlier constructor's thread may read them */
        known.looks = c->looks;
        known.descs = c->descs;
        c->attach(&known.retakes, (DescNote *)(void *)fd_hints, pay_all, points_tell,
                  mutex_waited_for);
        allocator_find();
        c->attach_values(values_run_out, values_free, values_to_thread);
        known.tls_vforks = c->tls_vforks;
        known.tls = c->tls_runner;
        points_tell(known.simulated);
        handlers_adopt();
    }
}

long libc_call(void *call) {
    const LibcCall *k = call;
    const long *a = k->args;
    return k->fn(a[0], a[1], a[2], a[3], a[4], a[5]);
}

COLD long errno_failed(long r) {
    *__errno_location() = (int)-r;
    return -1;
}
COLD void set_errno(int e) { *__errno_location() = e; }
NOINLINE int get_errno(void) { return *__errno_location(); }
