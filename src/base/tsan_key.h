/*
 * A question that is answered once, when the library is loaded, and asked on the fastest paths: is
 * the program watched by ThreadSanitizer? The library as it is installed is compiled without it,
 * and has to tell it of goroutines and their order all the same (san.h), since a user's program
 * compiled with -fsanitize=thread is linked with nothing else.
 *
 * A load and a branch would cost something at every switch and every lock. So the question is a
 * no-op of five bytes whose place is written down in a section, and which becomes a jump to the
 * answer "yes" where the answer is yes (tsan_key.c), as the kernel does for its trace points. Where
 * there is no such code, on other processors, it is a load and a branch.
 */
#ifndef KEY_H
#define KEY_H

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
