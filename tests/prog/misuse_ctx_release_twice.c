// status: abort
// stderr: gort: fatal: gort_ctx_release: context 0x
// stderr: is released twice
// procs: 1 2
// not-with: address thread valgrind
/* Misuse is loud: a context that was released, once while one below it keeps it, once when it is
 * gone. Where the first is not seen, the status is another one. */
#include "../lib/test.h"
#include <sys/wait.h>
#include <unistd.h>

static int body(int argc, char **argv) {
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_ctx_release(ctx);
    gort_ctx_release(ctx);
    return 0;
}

static int kept(int argc, char **argv) {
    gort_ctx *ctx = gort_ctx_new(NULL), *below = gort_ctx_new(ctx);
    CHECK(below != NULL);
    gort_ctx_release(ctx);
    gort_ctx_release(ctx);
    return 0;
}

int main(int argc, char **argv) {
    int status;
    pid_t child = fork();
    if (child == 0) return gort_main(kept, argc, argv);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return gort_main(body, argc, argv);
}
