// env: GORT_DEBUG=nonsense=1,schedtrace=0
// stderr: nonsense
// no-stderr: fatal
/* An unknown setting gets a line on stderr, and the program runs. */
#include "../lib/test.h"

static int body(int argc, char **argv) { return 0; }

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
