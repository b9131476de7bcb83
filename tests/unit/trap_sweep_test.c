// not-with: emulation
/* Traps that were jumped over leave their records behind (inlibc.c). There are only so many: they
 * are swept, and a world that stops beside a goroutine inside libc goes on being told where that
 * one leaves. */
#include "runtime.h"
#include "../lib/test.h"

#include <setjmp.h>
#include <stdlib.h>

#if defined(ARCH_RETURN_TRAPS) && !defined(__SANITIZE_THREAD__)

enum { ROUNDS = ARCH_RETURN_TRAPS + 50 };
static int inside;
static _Thread_local jmp_buf out;

/* Inside libc until a world has begun to stop beside it, and out by a jump. */
static int jumps(const void *a, const void *b) {
    uint64_t before = load_rlx(&sched.trapped);
    set(&inside, 1);
    while (load_rlx(&sched.trapped) == before) {}
    longjmp(out, 1);
}
static void calls(void *arg) {
    int a[2] = {2, 1};
    if (setjmp(out) == 0) qsort(a, 2, sizeof a[0], jumps);
}

static int body(int argc, char **argv) {
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = load_rlx(&sched.trapped);
        gort_wg wg = {0};
        set(&inside, 0);
        CHECK_EQ(gort_wg_go(&wg, calls, NULL), 0);
        wait_until(get(&inside));
        gort_stop_world();
        CHECKF(load_rlx(&sched.trapped) > before, "round %d: no record was free", i);
        gort_start_world();
        gort_wg_wait(&wg);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (test_valgrind()) SKIP("valgrind runs one thread at a time");
    setenv("GORT_MAXPROCS", "2", 1);
    return gort_main(body, argc, argv);
}

#else
int main(void) { SKIP("there are no traps here"); }
#endif
