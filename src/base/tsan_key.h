/*
 * Does a sanitizer watch the program? The installed library is compiled without one, but must tell
 * ThreadSanitizer of goroutines and their order, and AddressSanitizer of stacks (san.h), since a
 * program compiled with -fsanitize links the same library. The fastest paths ask; the answer is
 * known once the library is loaded.
 *
 * On x86-64 the question is a no-op of five bytes whose place is recorded in a section. Where one
 * of the two is there, tsan_key.c overwrites each with a jump to the answer "yes". Elsewhere it is
 * a load and a branch, which would cost x86-64 0.7 of the 3.8 ns of a mutex's lock and unlock.
 *
 *   san_on()    one of the two
 *   tsan_on()   ThreadSanitizer
 */
#ifndef TSAN_KEY_H
#define TSAN_KEY_H

#include <stdbool.h>
#include <stddef.h>

#if defined(GORT_TSAN)
#define san_on() true
#define tsan_on() true
#elif defined(GORT_ASAN)
#define san_on() true
#define tsan_on() false
#elif defined(MODEL_H) /* tests/model: nobody watches */
#define san_on() false
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
#define san_on() __builtin_expect(key_turned(), 0)
#define tsan_on() (san_on() && tsan_there)
#else
#define san_on() __builtin_expect(san_there, 0)
#define tsan_on() (san_on() && tsan_there)
#endif
extern bool san_there, tsan_there; /* tsan_key.c, before main */

/* With TSan, or with any: fn(...), with one to three arguments, pointers or longs, and no result.
 * The compiler does not know of the call (arch/x86_64/tsan.S), so it saves nothing around it. */
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
#define SAN_TELL(fn, ...)                         \
    do {                                          \
        if (san_on()) TSAN_CALL(fn, __VA_ARGS__); \
    } while (0)

#endif
