/* The fallback clock, where threads are short: a deadline that is set while the clock's thread is
 * being started does not rely on it, for it may not be had. */
#include "sync/clock.h"
#include "sched/sched.h"
#include "base/sysfault.h"
#include "../lib/test.h"

#define RULE "clone:EAGAIN:1"

static int fired[2];
static Timer e[2];

static void fires(M *m, void *arg, uint32_t seq) { set((int *)arg, 1); }

static bool adds(int i) {
    M *m = enter();
    e[i] = (Timer){.when = gort_now() + GORT_MS, .fn = fires, .arg = &fired[i]};
    bool start = clock_add(&e[i]);
    leave(m);
    return start;
}

int main(void) {
    CHECK(clock_prepare());
    CHECK(adds(0));
    CHECK(adds(1)); /* the first caller's thread is not there yet */
    CHECK(sysfault_rule(RULE, strlen(RULE)));
    sysfault_on = true;
    CHECK_EQ(clock_start(), -EAGAIN);
    M *m = enter();
    CHECK(timer_del(&e[0])); /* as a context does that is refused */
    leave(m);
    CHECK_EQ(clock_start(), 0);
    wait_until(get(&fired[1]));
    CHECK_EQ(get(&fired[0]), 0);
    return 0;
}
