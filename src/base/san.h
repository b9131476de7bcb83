/* What the sanitizers have to be told: ASan and TSan about changes of stacks, TSan about the
 * synchronisation of the primitives, since the library is not instrumented for it. All of it is in
 * every build (tsan_key.h). */
#ifndef SAN_H
#define SAN_H

#include "base/base.h"

#ifdef GORT_TSAN
#define TSANS
#else
#define TSANS __attribute__((weak)) /* there in a program compiled for TSan (tsan_key.h) */
#endif
TSANS void *__tsan_get_current_fiber(void);
TSANS void *__tsan_create_fiber(unsigned flags);
TSANS void __tsan_destroy_fiber(void *fiber);
TSANS void __tsan_switch_to_fiber(void *fiber, unsigned flags);
TSANS void __tsan_acquire(void *addr);
TSANS void __tsan_release(void *addr);
TSANS void __tsan_read_range(void *at, long size);
TSANS void __tsan_write_range(void *at, long size);
TSANS void AnnotateBenignRaceSized(const char *file, int line, const volatile void *mem,
                                   size_t size, const char *why);
#define tsan_acquire(addr) TSAN_TELL(__tsan_acquire, (void *)(addr))
#define tsan_release(addr) TSAN_TELL(__tsan_release, (void *)(addr))
/* Goroutines that take turns on a thread share its errno, saved and restored at each switch: a race
 * to TSan, which sees no order between them. */
#define tsan_own_errno(at) \
    (tsan_on() ? AnnotateBenignRaceSized(__FILE__, __LINE__, (at), sizeof(int), "errno") : (void)0)
/* TSan's sigaction holds a signal back until the thread is in a libc call that TSan knows, and the
 * runtime's threads wait in bare system calls. Handlers that touch nothing of the program's are
 * installed by libc's other name. */
struct sigaction;
TSANS int __sigaction(int signo, const struct sigaction *sa, struct sigaction *old);
#define sigaction_at_once(signo, sa, old) \
    (tsan_on() && __sigaction ? __sigaction((signo), (sa), (old)) : sigaction((signo), (sa), (old)))

#define ASANS __attribute__((weak)) /* there in a program compiled for ASan */
ASANS void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
ASANS void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old,
                                           size_t *size_old);

ASANS void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
/* Frames that never returned (a goroutine ended) have left their red zones on the stack. */
INLINE void asan_forget(void *addr, size_t size) {
    if (san_on() && __asan_unpoison_memory_region) __asan_unpoison_memory_region(addr, size);
}

/* A sanitizer, of any kind, whose handlers tell of crashes. */
__attribute__((weak)) void __sanitizer_print_stack_trace(void);
INLINE bool sanitizer_there(void) { return __sanitizer_print_stack_trace != NULL; }

/* Valgrind takes a large move of the stack pointer for frames coming and going, unless it knows
 * both stacks. Its client request does nothing elsewhere. */
#if defined(__x86_64__)
INLINE uintptr_t valgrind_request(uintptr_t code, uintptr_t a, uintptr_t b) {
    uintptr_t request[6] = {code, a, b, 0, 0, 0};
    uintptr_t result = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(request)
                     : "cc", "memory");
    return result;
}
#else
INLINE uintptr_t valgrind_request(uintptr_t code, uintptr_t a, uintptr_t b) { return 0; }
#endif
INLINE void valgrind_stack_register(void *lo, void *hi) {
    valgrind_request(0x1501 /* STACK_REGISTER */, (uintptr_t)lo, (uintptr_t)hi);
}
INLINE bool valgrind_runs(void) {
    return valgrind_request(0x1001 /* RUNNING_ON_VALGRIND */, 0, 0) != 0;
}
/* Memory below returned frames may be written to again. */
INLINE void valgrind_anew(void *at, size_t size) {
    valgrind_request(0x4d430001 /* memcheck's MAKE_MEM_UNDEFINED */, (uintptr_t)at, size);
}
/* What stands there counts: the kernel has written it, or valgrind takes its frame for gone. */
INLINE void valgrind_written(void *at, size_t size) {
    valgrind_request(0x4d430002 /* memcheck's MAKE_MEM_DEFINED */, (uintptr_t)at, size);
}
/* After a handler on the alternate stack valgrind takes the next frame for a move to another stack,
 * and its memory for nobody's. So there, handlers that return run on the stack they interrupt. */
#define HANDLER_STACK (valgrind_runs() ? 0 : SA_ONSTACK)

#endif
