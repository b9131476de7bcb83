// not-with: valgrind (it keeps neither flags nor flush to zero)
/* The floating-point environment is the thread's: rounding, flags, traps, flush to zero. It begins
 * with its creator's, whatever ran on the same body before. */
#include "threads_test.h"

#include <fenv.h>

enum { PAIRS = 3, ROUNDS = 100 };

static void *run(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, fn, arg) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

static void *sets_rounding(void *mode) {
    fesetround((int)(intptr_t)mode);
    return NULL;
}
static void *rounding(void *arg) { return (void *)(intptr_t)fegetround(); }

static volatile double zero = 0, quotient;
static void divide(void) { quotient = 1 / zero; }
static void *divides(void *arg) {
    feclearexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < ROUNDS; i++) {
        divide();
        usleep(50);
        CHECK(fetestexcept(FE_DIVBYZERO));
    }
    return NULL;
}
static void *does_not(void *arg) {
    feclearexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < ROUNDS; i++) {
        usleep(50);
        CHECK(!fetestexcept(FE_DIVBYZERO));
    }
    return NULL;
}
static void *traps(void *arg) {
    feenableexcept(FE_DIVBYZERO); /* -1 where the processor has none */
    return NULL;
}
static void *divides_once(void *arg) {
    divide();
    return NULL;
}

#ifdef __x86_64__
#define FLUSHES 0x8040u
static unsigned flushes(void) { return __builtin_ia32_stmxcsr() & FLUSHES; }
static void flush(unsigned how) {
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~FLUSHES) | how);
}
static void *flush_is(void *how) {
    CHECK(flushes() == (uintptr_t)how);
    return NULL;
}
static void *flush_kept(void *how) {
    flush((unsigned)(uintptr_t)how);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(flushes() == (uintptr_t)how);
        usleep(50);
    }
    return NULL;
}
static void check_flush(void) {
    run(flush_kept, (void *)FLUSHES);
    run(flush_is, NULL);
    flush(FLUSHES);
    run(flush_is, (void *)FLUSHES);
    flush(0);
}
#else
#define FLUSHES 0u
static void *flush_kept(void *how) { return NULL; }
static void check_flush(void) {}
#endif

int main(void) {
    static pthread_t threads[4 * PAIRS];
    run(sets_rounding, (void *)FE_UPWARD);
    CHECK(run(rounding, NULL) == (void *)FE_TONEAREST);
    fesetround(FE_DOWNWARD);
    CHECK(run(rounding, NULL) == (void *)FE_DOWNWARD);
    fesetround(FE_TONEAREST);
    CHECK(run(rounding, NULL) == (void *)FE_TONEAREST);
    check_flush();
    for (int i = 0; i < 4 * PAIRS; i += 4) {
        CHECK(pthread_create(&threads[i], NULL, divides, NULL) == 0);
        CHECK(pthread_create(&threads[i + 1], NULL, does_not, NULL) == 0);
        CHECK(pthread_create(&threads[i + 2], NULL, flush_kept, (void *)FLUSHES) == 0);
        CHECK(pthread_create(&threads[i + 3], NULL, flush_kept, NULL) == 0);
    }
    for (int i = 0; i < 4 * PAIRS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    run(traps, NULL);
    run(divides_once, NULL);
    return 0;
}
