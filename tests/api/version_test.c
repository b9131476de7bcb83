/* The version as text, as a number, and that of the library agree; with and without a runtime. */
#include "../lib/test.h"

static void agree(void) {
    int major, minor, patch, end = 0;
    CHECK_EQ(sscanf(GORT_VERSION, "%d.%d.%d%n", &major, &minor, &patch, &end), 3);
    CHECK_EQ(end, strlen(GORT_VERSION));
    CHECK_LT(minor, 100);
    CHECK_LT(patch, 100);
    CHECK_EQ(GORT_VERSION_NUM, major * 10000 + minor * 100 + patch);
    CHECK_EQ(gort_version(), GORT_VERSION_NUM);
}

static int body(int argc, char **argv) {
    agree();
    return 0;
}

int main(int argc, char **argv) {
    agree();
    return gort_main(body, argc, argv);
}
