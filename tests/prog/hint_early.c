// env: GORT_DEBUG=hints=1
// stderr: gort: warning: gort_go before gort_main returns -ENOTCONN, and nothing runs: call it from
// no-stderr: gort_wg_go
// procs: 2
/* A goroutine that is started too early, once in words. */
#include "../lib/test.h"

static void never(void *arg) { abort(); }
static int body(int argc, char **argv) { return 0; }

int main(int argc, char **argv) {
    gort_wg wg = {0};
    CHECK_EQ(gort_go(never, NULL), -ENOTCONN);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "early"}, never, NULL), -ENOTCONN);
    CHECK_EQ(gort_wg_go(&wg, never, NULL), -ENOTCONN);
    return gort_main(body, argc, argv);
}
