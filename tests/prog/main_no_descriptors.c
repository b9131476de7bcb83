// stderr: gort: gort_main fails, EAGAIN: no descriptor
// env: LSAN_OPTIONS=detect_leaks=0
/* Where the runtime cannot start, a line says what was missing. LeakSanitizer needs descriptors. */
#include "../lib/test.h"

#include <sys/resource.h>

static int body(int argc, char **argv) { return 0; }

int main(int argc, char **argv) {
    struct rlimit none = {3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    return gort_main(body, argc, argv) == -EAGAIN ? 0 : 1;
}
