// status: abort
// stderr: gort: fatal: gort_group_go: all 2 members of the group wait for a place in it
/* Misuse is loud: every member of a full group starts another. Others run on, so no deadlock would
 * be reported. */
#include "../lib/test.h"

static gort_group *group;
static int ready;

static int nothing(gort_ctx *ctx, void *arg) { return 0; }

static int starts_another(gort_ctx *ctx, void *arg) {
    add(&ready, 1);
    wait_until(get(&ready) == 2);
    return gort_group_go(group, nothing, NULL);
}

static int body(int argc, char **argv) {
    group = gort_group_new(NULL, 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(gort_group_go(group, starts_another, NULL), 0);
    for (;;) gort_sleep(GORT_MS);
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
