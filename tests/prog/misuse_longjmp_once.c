// procs: 1
// status: abort
// stderr: gort: fatal: longjmp out of a function of gort_once_do
/* The function of a once is left by longjmp, and its frame is used by others: whoever waits for the
 * once would wait for ever, and the end of the runtime would find the remains of its hook. */
#include "../lib/test.h"

#include <setjmp.h>

static jmp_buf out;
static gort_once once;
static gort_chan *never;
static int waits;

static void jumps(void *arg) { longjmp(out, 1); }
static void __attribute__((noinline)) begins_once(void) { gort_once_do(&once, jumps, NULL); }
static void __attribute__((noinline)) writes_over(void) {
    volatile char room[4096];
    memset((void *)room, 0x41, sizeof room);
}

static void leaves(void *arg) {
    if (setjmp(out) == 0) begins_once();
    writes_over();
    set(&waits, 1);
    gort_chan_recv(never, NULL);
}

static int body(int argc, char **argv) {
    never = gort_chan_new(0, 0);
    gort_go(leaves, NULL);
    wait_until(get(&waits));
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
