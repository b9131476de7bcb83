// status: abort
// stderr: gort: fatal:
// procs: none
/* Misuse is loud from any thread, also with no runtime at all. */
#include "../lib/test.h"

int main(void) {
    gort_mutex m = {0};
    gort_mutex_unlock(&m);
    return 0;
}
