/* The floating-point environment of <fenv.h> belongs to the goroutine: each keeps its rounding mode
 * over switches, whatever the others set, and a new one starts with the default. */
#include "../lib/test.h"
#include <fenv.h>

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
static gort_chan *ball;

/* 1/3 in double (SSE) and long double (x87) as the mode at this moment has it. */
static double third(void) {
    volatile double one = 1, three = 3;
    return one / three;
}
static long double long_third(void) {
    volatile long double one = 1, three = 3;
    return one / three;
}

static void keeps(void *arg) {
    int mode = modes[(intptr_t)arg];
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK_EQ(fesetround(mode), 0);
    double d = third();
    long double l = long_third();
    for (int i = 0; i < 2000; i++) {
        if (i % 3 == 0) gort_yield();
        else if (i % 3 == 1) CHECK_EQ(gort_chan_send(ball, NULL), 0);
        else CHECK_EQ(gort_chan_recv(ball, NULL), 0);
        CHECK_EQ(fegetround(), mode);
        CHECK(third() == d && long_third() == l);
    }
}

/* Each begins on the stack of the one before it, which has left another mode behind. */
static void leaves_behind(void *arg) {
    intptr_t i = (intptr_t)arg;
    double d = 1.0 / 3;
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK(third() == d);
    CHECK_EQ(fesetround(modes[i % 4]), 0);
    if (i % 7 == 6) gort_exit();
}

static int body(int argc, char **argv) {
    gort_wg wg = {0};
    ball = gort_chan_new(0, 64);
    for (int i = 0; i < 32; i++) CHECK_EQ(gort_chan_send(ball, NULL), 0);
    for (intptr_t i = 0; i < 12; i++) CHECK_EQ(gort_wg_go(&wg, keeps, (void *)(i % 4)), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(fegetround(), FE_TONEAREST);
    CHECK_EQ(fesetround(FE_UPWARD), 0); /* not the creator's either */
    for (intptr_t i = 0; i < 1000; i++) CHECK_EQ(gort_wg_go(&wg, leaves_behind, (void *)i), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(fegetround(), FE_UPWARD);
    gort_chan_release(ball);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
