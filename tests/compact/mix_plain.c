/* The half of mix.c that is built without -fsplit-stack. */
#include "mix.h"
#include <string.h>

int plain_goroutines;

__attribute__((noinline)) long plain_use(long bytes) {
    volatile char room[20000];
    for (int i = 0; i < 20000; i += 100) room[i] = (char)i;
    return bytes + room[0];
}

long plain_calls_back(long depth) { return checked_sum(depth, plain_use); }

void plain_goroutine(void *wg) {
    volatile char room[100000];
    room[0] = 1;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 100000; k += 1000) room[k] = (char)i;
        if (checked_sum(1000, 0) != 1000) return;
        gort_yield();
    }
    __atomic_add_fetch(&plain_goroutines, room[0] == 19, __ATOMIC_SEQ_CST);
    gort_wg_done(wg);
}
