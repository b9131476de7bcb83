/*
 * Turning the key of tsan_key.h: before main, or when the library is loaded, on the only thread
 * that can be in it. A sanitizer is there where its functions are, which are weak references here.
 *
 * The code is written in place, on a private copy of its pages; no thread runs it meanwhile. Where
 * the system forbids that the library goes on as if there were none, with a word on stderr.
 */
#include "base/base.h"
#include "base/print.h"
#include "base/san.h"

#include <sys/mman.h>

#define PAGE 4096u

/* volatile: or the compiler calls memcpy and memset again */
void unseen_copy_slow(void *to, const void *from, size_t n) {
    volatile char *t = (volatile char *)to;
    for (const char *f = (const char *)from; n--;) *t++ = *f++;
}

void unseen_set_slow(void *to, long c, size_t n) {
    for (volatile char *t = (volatile char *)to; n--;) *t++ = (char)c;
}

bool san_there, tsan_there;

#if !defined(GORT_TSAN) && !defined(GORT_ASAN)

#if defined(__x86_64__)

typedef struct Place {
    int32_t at, yes; /* each relative to itself */
} Place;
extern const Place first[] __asm__("__start_gort_keys") __attribute__((visibility("hidden")));
extern const Place end[] __asm__("__stop_gort_keys") __attribute__((visibility("hidden")));

static char *target(const int32_t *offset) { return (char *)(uintptr_t)offset + *offset; }

static void jump(char *at, char *to) {
    int32_t distance = (int32_t)(to - (at + 5));
    at[0] = (char)0xe9;
    for (int i = 0; i < 4; i++) at[1 + i] = (char)(distance >> 8 * i);
}

static bool turn(void) {
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (const Place *p = first; p < end; p++) {
        uintptr_t at = (uintptr_t)target(&p->at);
        if (at < lo) lo = at;
        if (at + 5 > hi) hi = at + 5;
    }
    lo &= ~(uintptr_t)(PAGE - 1);
    hi = (hi + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    if (mprotect((void *)lo, hi - lo, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
    for (const Place *p = first; p < end; p++) jump(target(&p->at), target(&p->yes));
    mprotect((void *)lo, hi - lo, PROT_READ | PROT_EXEC);
    return true;
}

#else

static bool turn(void) { return true; }

#endif

__attribute__((constructor(101))) static void turn_key(void) {
    tsan_there = __tsan_create_fiber && __tsan_switch_to_fiber;
    if (!tsan_there && !__sanitizer_start_switch_fiber) return;
    if (!(san_there = turn()))
        print_fd(2, "gort: the sanitizer cannot be told of goroutines: "
                    "code may not be changed here\n");
}

#endif
