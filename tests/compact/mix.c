/*
 * Code with checks and code without in one program: this file is built with -fsplit-stack,
 * mix_plain.c without. Calls go both ways, and goroutines start in both.
 */
#include "../lib/test.h"
#include "mix.h"

static gort_wg wg;

long checked_sum(long depth, long (*next)(long)) {
    volatile char frame[120];
    frame[0] = 1;
    if (depth == 0) return next ? next(0) : 0;
    return checked_sum(depth - 1, next) + frame[0];
}

static void compact(void *arg) {
    for (int depth = 0; depth < 60; depth++) {
        CHECK_EQ(plain_use(20000), 20000);              /* 20 KB without a check */
        CHECK_EQ(plain_calls_back(depth), depth);       /* and back into checked code */
        CHECK_EQ(checked_sum(depth, plain_use), depth); /* through a pointer the linker sees */
        gort_yield();
    }
    gort_wg_done(&wg);
}

static int body(int argc, char **argv) {
    gort_wg_add(&wg, 40);
    for (int i = 0; i < 20; i++) {
        gort_go(compact, NULL);
        gort_go(plain_goroutine, &wg); /* starts in unchecked code: gets a lazy stack */
    }
    gort_wg_wait(&wg);
    CHECK_EQ(plain_goroutines, 20);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
