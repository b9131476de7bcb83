// status: abort
// stderr: gort: fatal: gort_group_wait: group 0x
// stderr: is used after gort_group_wait
// procs: 1 2
// not-with: address thread valgrind
/* Misuse is loud: a group that has been waited for, which is over. */
#include "../lib/test.h"

static int nothing(gort_ctx *ctx, void *arg) { return 0; }

static int body(int argc, char **argv) {
    gort_group *group = gort_group_new(NULL, 0);
    CHECK_EQ(gort_group_go(group, nothing, NULL), 0);
    CHECK_EQ(gort_group_wait(group), 0);
    return gort_group_wait(group);
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
