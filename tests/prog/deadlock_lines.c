// status: 2
// stderr: gort: fatal: all goroutines are asleep - deadlock!
// stderr:  gort_chan_recv
// stderr:  deadlock_lines.c:23 (deadlock_lines)
// stderr:  deadlock_lines.c:22 (deadlock_lines)
// stderr:   ... 998 more of these frames
// stderr:  deadlock_lines.c:28 (deadlock_lines)
// stderr: created by body+0x
// stderr:  deadlock_lines.c:34 (deadlock_lines) in goroutine 1 with deep
// no-stderr: goroutine_entry
// no-stderr: arch_entry
// no-stderr: main_goroutine
// no-stderr: chan.c:
/* A report tells the lines of the program's frames, and of the library's frames only the call that
 * the program made; a recursion is folded. */
#include "../lib/test.h"

#define KEEP __attribute__((noinline)) static
#define NO_TAIL __asm__ volatile("") /* keeps the frame of the function it ends */

KEEP void inner(gort_chan *c, int n) {
    if (n > 0) inner(c, n - 1);
    else gort_chan_recv(c, NULL);
    NO_TAIL;
}

KEEP void deep(void *c) {
    inner(c, 1001);
    NO_TAIL;
}

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    gort_go(deep, c);
    gort_chan_recv(c, NULL);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
