// status: 2
// stderr: goroutine 1 [
// stderr: "idle" [chan receive
/* SIGQUIT shows every goroutine and ends the program with status 2. */
#define _GNU_SOURCE
#include "../lib/test.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void idle(void *arg) { gort_chan_recv(arg, NULL); }

/* What a dump says now. */
static const char *dump(void) {
    static char text[16384];
    int fd = memfd_create("dump", 0);
    CHECK(fd >= 0);
    gort_dump(fd);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static int body(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "idle"}, idle, c), 0);
    while (strstr(dump(), "[chan receive") == NULL) gort_yield();
    kill(getpid(), SIGQUIT);
    gort_sleep(3600 * GORT_SEC);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
