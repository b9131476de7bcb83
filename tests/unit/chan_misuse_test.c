/* Misuse of channels is loud, from goroutines and plain threads, and says what it was; in a child
 * of fork every call says that there is no runtime, and touches nothing. White box only to know
 * when somebody waits. */
#include "sync/chan.h"
#include "../lib/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static gort_chan *c, *d;

/* ---- the crimes ------------------------------------------------------------------------------ */

enum { RECV, SEND, TIMED, SELECT, SELECT_TIMED, KINDS };
static int kind;
static bool by_thread;

static void wait_there(void *arg) {
    gort_case k[2] = {gort_on_recv(c, NULL), gort_on_recv(d, NULL)};
    int64_t late = gort_now() + 600 * GORT_SEC;
    if (kind == RECV) gort_chan_recv(c, NULL);
    else if (kind == SEND) gort_chan_send(c, &(int){1});
    else if (kind == TIMED) gort_chan_recv_until(c, NULL, late);
    else if (kind == SELECT) gort_select(k, 2);
    else gort_select_until(k, 2, late);
}

static void *wait_thread(void *arg) {
    wait_there(arg);
    return NULL;
}

static int release_under_waiter(int argc, char **argv) {
    pthread_t t;
    if (by_thread) CHECK_EQ(pthread_create(&t, NULL, wait_thread, NULL), 0);
    else CHECK_EQ(gort_go(wait_there, NULL), 0);
    wait_until(load_acq(kind == SEND ? &c->sendq.first : &c->recvq.first) != NULL);
    gort_chan_release(c);
    return 0;
}

static int release_too_often(int argc, char **argv) {
    gort_chan_retain(d);
    d->pins++; /* so that the memory stays, and the test means something */
    gort_chan_release(d);
    gort_chan_release(d);
    gort_chan_release(d);
    return 0;
}

static int close_null(int argc, char **argv) { return gort_chan_close(NULL); }

/* ---- the courts ------------------------------------------------------------------------------ */

static void in_child(int (*crime)(int, char **), bool runtime, int err) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(err, 2);
    if (runtime) gort_main(crime, 0, NULL);
    else crime(0, NULL);
    _exit(0);
}

/* Runs it in a child, with a runtime or on a plain thread without one: it must abort, and the first
 * line must be ours and contain word. */
static void must_abort(int (*crime)(int, char **), bool runtime, const char *word) {
    int fd[2], status;
    char text[65536];
    size_t n = 0;
    CHECK_EQ(pipe(fd), 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) in_child(crime, runtime, fd[1]);
    close(fd[1]);
    for (ssize_t r; n < sizeof text - 1 && (r = read(fd[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    text[n] = 0;
    close(fd[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    char *end = strchr(text, '\n');
    if (end) *end = 0;
    CHECKF(strncmp(text, "gort: fatal: ", 13) == 0 && strstr(text, word), "stderr: %s", text);
    CHECKF(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status %x", word, status);
}

/* ---- a child of fork ------------------------------------------------------------------------- */

static void forked_calls(void) {
    int v = 5;
    gort_case k[1] = {gort_on_send(d, &v)};
    CHECK_EQ(gort_chan_send(d, &v), -ENOTCONN);
    CHECK_EQ(gort_chan_recv(d, &v), -ENOTCONN);
    CHECK_EQ(gort_chan_send_until(d, &v, 0), -ENOTCONN);
    CHECK_EQ(gort_chan_recv_until(NULL, &v, 0), -ENOTCONN);
    CHECK_EQ(gort_chan_try_send(d, &v), -ENOTCONN);
    CHECK_EQ(gort_chan_try_recv(d, &v), -ENOTCONN);
    CHECK_EQ(gort_chan_close(d), -ENOTCONN);
    CHECK_EQ(gort_chan_close(NULL), -ENOTCONN);
    CHECK_EQ(gort_select(k, 1), -ENOTCONN);
    CHECK_EQ(gort_try_select(k, 1), -ENOTCONN);
    CHECK_EQ(gort_select_until(k, 0, 0), -ENOTCONN);
    CHECK_EQ(gort_chan_len(d), 0);
    CHECK_EQ(gort_chan_cap(d), 0);
    CHECK(gort_chan_retain(d) == NULL);
    CHECK(gort_chan_new(1, 1) == NULL);
    gort_chan_release(d);
    gort_chan_release(d);
    CHECK_EQ(d->count, 1);
    CHECK_EQ(d->refs, 1);
    CHECK_EQ(d->closed, 0);
    CHECK_EQ(v, 5);
}

static int forks(int argc, char **argv) {
    int status, v = 3;
    CHECK_EQ(gort_chan_send(d, &v), 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        forked_calls();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(gort_chan_recv(d, &v), 0);
    return 0;
}

int main(int argc, char **argv) {
    c = gort_chan_new(sizeof(int), 0);
    d = gort_chan_new(sizeof(int), 2);
    for (kind = 0; kind < KINDS; kind++) {
        by_thread = false;
        must_abort(release_under_waiter, true, "somebody waits");
        by_thread = true;
        must_abort(release_under_waiter, true, "somebody waits");
        must_abort(release_under_waiter, false, "somebody waits");
    }
    must_abort(close_null, true, "NULL channel");
    must_abort(close_null, false, "NULL channel");
    must_abort(release_too_often, false, "more often");
    CHECK_EQ(gort_main(forks, argc, argv), 0);
    gort_chan_release(c);
    gort_chan_release(d);
    return 0;
}
