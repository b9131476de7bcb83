/* The environment is read by gort_main: values in range, values out of range, and nonsense. */
#include "../lib/test.h"
#include <fcntl.h>
#include <unistd.h>

static int body(int argc, char **argv) { return gort_maxprocs(0); }

static char said[4000];

/* Runs a runtime with GORT_MAXPROCS set so, stderr caught in said[]; the number of Ps. */
static int procs_with(const char *value) {
    FILE *catch = tmpfile();
    CHECK(catch != NULL);
    fflush(stderr);
    int keep = dup(2);
    dup2(fileno(catch), 2);
    if (value) setenv("GORT_MAXPROCS", value, 1);
    else unsetenv("GORT_MAXPROCS");
    int n = gort_main(body, 0, NULL);
    fflush(stderr);
    dup2(keep, 2);
    close(keep);
    rewind(catch);
    said[fread(said, 1, sizeof said - 1, catch)] = 0;
    fclose(catch);
    return n;
}

int main(void) {
    int by_default = procs_with(NULL);
    CHECK_GE(by_default, 1);
    CHECK_STR(said, "");
    CHECK_EQ(procs_with("1"), 1);
    CHECK_EQ(procs_with("3"), 3);
    CHECK_EQ(procs_with("1024"), 1024);
    CHECK_EQ(procs_with("1025"), 1024);
    CHECK_EQ(procs_with("99999999999999999999999"), 1024);
    CHECK_STR(said, "");
    static const char *nonsense[] = {"abc", "0", "-1", "4x", "x4", "2.5", "-99999999999999999999"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        CHECK_EQ(procs_with(nonsense[i]), by_default);
        CHECKF(strstr(said, "GORT_MAXPROCS") != NULL, "nothing was said about \"%s\"", nonsense[i]);
        CHECK(strchr(said, '\n') == said + strlen(said) - 1); /* one line */
    }
    unsetenv("GORT_MAXPROCS");
    return 0;
}
