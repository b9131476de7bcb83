/* The words every room uses. Internal names are Go's own, without a prefix; the linker does not see
 * them (-fvisibility=hidden in the shared library, local symbols in the archive). */
#ifndef BASE_H
#define BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define GORT_INSIDE_ 1
#define GORT_KEEP_ERRNO 1 /* system calls here return -errno, and errno is saved by hand */
#include <gort.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#define NORETURN _Noreturn
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CACHE_LINE 64
#define ALIGNED(n) __attribute__((aligned(n)))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define count_of(a) (sizeof(a) / sizeof((a)[0]))

#ifndef __has_feature /* clang has it */
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define GORT_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define GORT_ASAN 1
#endif

/* The library is not instrumented for TSan, but TSan intercepts libc's copying. It does not know
 * our locks, so a copy under one would be a race to it. A few bytes are no call. */
#include "base/tsan_key.h"
void unseen_copy_slow(void *to, const void *from, size_t n); /* tsan_key.c */
void unseen_set_slow(void *to, long c, size_t n);
INLINE void *unseen_copy(void *to, const void *from, size_t n) {
    TSAN_CALL(unseen_copy_slow, to, from, n);
    return to;
}
INLINE void *unseen_set(void *to, int c, size_t n) {
    TSAN_CALL(unseen_set_slow, to, (long)c, n);
    return to;
}
#define FEW_BYTES(n) (__builtin_constant_p(n) && (n) <= 64)
#define memcpy(to, from, n)                                           \
    (FEW_BYTES(n) || !tsan_on() ? __builtin_memcpy((to), (from), (n)) \
                                : unseen_copy((to), (from), (n)))
#define memset(to, c, n) \
    (FEW_BYTES(n) || !tsan_on() ? __builtin_memset((to), (c), (n)) : unseen_set((to), (c), (n)))

/* One line "gort: fatal: ..." on stderr, the dump, abort(). Any thread, any lock: see fatal.c. */
NORETURN void fatal(const char *format, ...) PRINTF(1, 2);
/* For such a line: the name of the errno of a call that gave r, below 0. No lock (print.c). */
const char *errno_word(long r);

/* Invariants as code, evaluated in a debug build only. */
#ifdef GORT_CHECKED
#define check(cond)                                                                             \
    do {                                                                                        \
        if (unlikely(!(cond))) fatal("%s:%d: invariant broken: %s", __FILE__, __LINE__, #cond); \
    } while (0)
#else
#define check(cond) \
    do {            \
    } while (0)
#endif

#endif
