/*
 * A function of gort_blocking that goes on behind the end of its runtime may still take contexts
 * into use. The end does not meddle with that, and the use ends with the function: who is on that
 * stack later does not hear of the context.
 */
#include "../lib/test.h"

#include <sched.h>

enum { LEFT = 8, LATER = 400, RUNTIMES = 20 };
static gort_ctx *first, *second;
static gort_chan *never;
static gort_wg wg;
static int in, over, done, waiting;

static long uses(void *again) {
    gort_ctx_use(first);
    add(&in, 1);
    while (!get(&over)) {
        if (again) gort_ctx_use(NULL), gort_ctx_use(first);
        else sched_yield();
    }
    gort_ctx_use(NULL);
    gort_ctx_use(first);
    add(&done, 1);
    return 0;
}
static void calls(void *again) { gort_blocking(uses, again); }
static int leaves_them(int argc, char **argv) {
    for (int i = 0; i < LEFT; i++) CHECK_EQ(gort_go(calls, i % 2 ? &in : NULL), 0);
    wait_until(get(&in) == LEFT);
    return 3;
}

static void waits(void *arg) {
    gort_ctx_use(second);
    add(&waiting, 1);
    CHECK_EQ(gort_chan_recv(never, NULL), -ECANCELED);
    CHECK_EQ(gort_ctx_err(second), -ECANCELED); /* not before */
    gort_wg_done(&wg);
}
static int comes_later(int argc, char **argv) {
    gort_wg_add(&wg, LATER);
    for (int i = 0; i < LATER; i++) CHECK_EQ(gort_go(waits, NULL), 0);
    wait_until(get(&waiting) == LATER);
    gort_ctx_cancel(first);
    for (int i = 0; i < 100; i++) gort_yield(); /* whoever was woken by that complains */
    gort_ctx_cancel(second);
    gort_wg_wait(&wg);
    return 4;
}

int main(int argc, char **argv) {
    never = gort_chan_new(0, 0);
    for (int i = 0; i < RUNTIMES; i++) {
        in = over = done = waiting = 0;
        first = gort_ctx_new(NULL);
        second = gort_ctx_new(NULL);
        CHECK_EQ(gort_main(leaves_them, 0, NULL), 3);
        set(&over, 1);
        wait_until(get(&done) == LEFT);
        CHECK_EQ(gort_main(comes_later, 0, NULL), 4);
        gort_ctx_release(first);
        gort_ctx_release(second);
    }
    return 0;
}
