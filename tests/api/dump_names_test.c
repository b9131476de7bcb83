/* A dump is text, a goroutine's head one line of it, whatever the program calls its goroutines. A
 * call is shown by its name, without what the library appends to that for its parts. */
#include "../lib/test.h"

#include <unistd.h>

static gort_chan *never;
static void waiter(void *arg) { gort_chan_recv(never, NULL); }

static int run(int argc, char **argv) {
    static char text[1 << 16];
    int p[2];
    never = gort_chan_new(0, 0);
    gort_go_with(&(gort_attr){.name = "a \"b\"\n\xff\xc3\xa4"}, waiter, NULL);
    gort_yield();
    CHECK_EQ(pipe(p), 0);
    gort_dump(p[1]);
    close(p[1]);
    size_t n = 0;
    for (ssize_t r; (r = read(p[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)r;
    char *at = strstr(text, "goroutine 2 \"a "), *end = at ? strchr(at, '\n') : NULL;
    CHECKF(end, "%s", text);
    *end = 0;
    CHECKF(strstr(at, "\\xff\xc3\xa4\" [chan receive, "), "%s", at);
    end = strchr(at = end + 1, '\n');
    CHECK(end);
    *end = 0;
    CHECKF(strstr(at, " gort_chan_recv+0x"), "%s", at);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
