// A stack that has only a canary has it again after its memory was given back: an overflow is still
// found.
// status: abort
// stderr: gort: warning: the kernel makes no guard region
// stderr: gort: fatal: stack overflow found by its canary
// stdout: given back
// env: GORT_DEBUG=sysfault=madvise:EINVAL:1+,sysfault=mprotect:ENOMEM:2+
// procs: 2
// not-with: address thread valgrind emulation
#include "../lib/test.h"

#define MANY 200
static gort_chan *c;
static int ran;

static void waits(void *arg) {
    add(&ran, 1);
    gort_chan_recv(c, NULL);
    add(&ran, -1);
}

static void crowd(int n) {
    CHECK((c = gort_chan_new(0, 0)) != NULL);
    for (int i = 0; i < n; i++) CHECK_EQ(gort_go(waits, NULL), 0);
    wait_until(get(&ran) == n);
}

static void disperse(void) {
    gort_chan_close(c);
    wait_until(get(&ran) == 0);
    gort_chan_release(c);
}

/* Every byte down to n KB below. */
static __attribute__((noinline)) int deeper(int n) {
    volatile char room[1024];
    for (size_t i = 0; i < sizeof room; i++) room[i] = (char)n;
    return n == 0 ? 0 : deeper(n - 1) + room[n];
}
static void overflows(void *arg) {
    waits(NULL);
    deeper(200);
}

static uint64_t cached(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.stack_bytes_cached;
}

static int app(int argc, char **argv) {
    crowd(2 * MANY);
    disperse();
    wait_until(cached() < 140 * 4096); /* all but what the two Ps keep */
    puts("given back");
    fflush(stdout);
    crowd(MANY); /* on those that the Ps have kept, with their memory, and some more */
    for (int i = 0; i < MANY / 2; i++) CHECK_EQ(gort_go(overflows, NULL), 0);
    wait_until(get(&ran) == MANY + MANY / 2);
    disperse();
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
