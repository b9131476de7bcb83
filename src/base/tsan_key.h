/*
 * Does ThreadSanitizer watch the program? The question is answered once, when the library is
 * loaded, and asked on the fastest paths. The installed library is compiled without TSan but must
 * tell it of goroutines and their order (san.h), since a user's program compiled with
 * -fsanitize=thread is linked with the same library.
 *
 * On x86-64 the question is a no-op of five bytes whose place is recorded in a section. Where TSan
 * is there, tsan_key.c overwrites each with a jump to the answer "yes", as the kernel does for its
 * trace points. Elsewhere it is a load of a flag and a branch. On x86-64 that was measured to cost
 * 3 of 41 instructions and 0.7 of 3.8 ns for an uncontended lock and unlock of a mutex, and 4 of
 * 632 and 2.7 of 55 ns for a select.
 */
#ifndef TSAN_KEY_H
#define TSAN_KEY_H

#include <stdbool.h>
#include <stddef.h>

#if defined(GORT_TSAN)
#define tsan_on() true
#elif defined(GORT_ASAN) || defined(MODEL_H) /* tests/model: nobody watches */
#define tsan_on() false
#elif defined(__x86_64__)
static inline __attribute__((always_inline)) bool key_turned(void) {
    __asm__ goto("1:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
                 ".pushsection gort_keys, \"a\"\n\t"
                 ".balign 4\n\t"
                 ".long 1b - ., %l0 - .\n\t"
                 ".popsection"
                 :
                 :
                 :
                 : yes);
    return false;
yes:
    return true;
}
#define tsan_on() __builtin_expect(key_turned(), 0)
#else
extern bool tsan_there; /* tsan_key.c, before main */
#define tsan_on() __builtin_expect(tsan_there, 0)
#endif

/* Where somebody watches: fn(...), with one to three arguments, pointers or longs, and no result.
 * Unknown to the compiler (arch/x86_64/tsan.S), or else what it has to save around the call costs
 * those who never make it. */
#if defined(__x86_64__) && !defined(GORT_TSAN) && !defined(GORT_ASAN) && !defined(MODEL_H) && \
    !defined(__AVX__)
#define TSAN_ASM(fn, a, b, c, ...) \
    __asm__ volatile("call tsan_call" : : "a"(fn), "D"(a), "S"(b), "d"(c) : "memory", "cc")
#define TSAN_CALL(fn, ...) TSAN_ASM(fn, __VA_ARGS__, 0L, 0L, 0L)
#else
#define TSAN_CALL(fn, ...) fn(__VA_ARGS__)
#endif
#define TSAN_TELL(fn, ...)                         \
    do {                                           \
        if (tsan_on()) TSAN_CALL(fn, __VA_ARGS__); \
    } while (0)

#endif
