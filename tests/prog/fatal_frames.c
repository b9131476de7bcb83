// status: abort
// stderr: show_it+
// stderr: goroutine 1 [running
// stderr: unlock_it+
// no-stderr: dump_
// no-stderr: say+
// no-stderr: speak+
// no-stderr: fatal+
/* A trace begins where the program called the library, not with the functions that print it. */
#include "../lib/test.h"

__attribute__((noinline)) static void show_it(void) {
    gort_dump(2);
    __asm__ volatile(""); /* no tail call */
}

__attribute__((noinline)) static void unlock_it(gort_mutex *m) {
    gort_mutex_unlock(m);
    __asm__ volatile("");
}

static int body(int argc, char **argv) {
    gort_mutex m = {0};
    show_it();
    unlock_it(&m);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
