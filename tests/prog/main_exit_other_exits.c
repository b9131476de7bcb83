// status: 9
/* After gort_exit in main another goroutine may end the program. */
#include "../lib/test.h"

static void ends_it(void *arg) {
    wait_until(gort_count() == 1);
    exit(9);
}

static int body(int argc, char **argv) {
    gort_go(ends_it, NULL);
    gort_exit();
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
