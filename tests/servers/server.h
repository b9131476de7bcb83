/* What the tests with real servers share: goroutines that make a call together, and the clock. */
#ifndef SERVER_TEST_H
#define SERVER_TEST_H

#define _GNU_SOURCE 1
#include "../lib/own_thread.h"
#include "../lib/test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLERS 200

static gort_wg together_wg;
static gort_chan *together_gate;
static void (*together_fn)(int);

static void together_one(void *arg) {
    gort_chan_recv(together_gate, NULL); /* closed: all at once */
    together_fn((int)(intptr_t)arg);
    gort_wg_done(&together_wg);
}

/* In `make test`, where others may work on the machine too: nothing depends on the clock, and
 * threads are counted only to tell a few from one for each call. */
static bool quick(void) { return getenv("QUICK") != NULL; }

/* CALLERS goroutines in fn at once, each in a call of 200 ms: under a second (LIMIT_MS for slow
 * machines), fewer than 20 threads. */
TEST_UNUSED static void together(const char *what, void (*fn)(int)) {
    const char *limit = getenv("LIMIT_MS");
    gort_stats s;
    together_fn = fn;
    together_gate = gort_chan_new(0, 0);
    gort_wg_add(&together_wg, CALLERS);
    for (intptr_t i = 0; i < CALLERS; i++) CHECK_EQ(go_as_asked(together_one, (void *)i), 0);
    int64_t from = gort_now();
    gort_chan_close(together_gate);
    gort_sleep(100 * GORT_MS);
    gort_stats_read(&s);
    gort_wg_wait(&together_wg);
    int64_t ms = (gort_now() - from) / GORT_MS;
    gort_chan_release(together_gate);
    printf("%s: %d calls of 200 ms in %d ms, %d threads\n", what, CALLERS, (int)ms, (int)s.threads);
    CHECK_GE(ms, 200);
    if (!quick()) CHECK_LT(ms, limit ? atoi(limit) : 1000);
    CHECK_LT(s.threads, quick() ? CALLERS / 2 : 20);
}

/* Somebody who listens and never answers; the port. The descriptor stays open. */
TEST_UNUSED static int silent_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(fd, 16), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void (*timed_fn)(void *);
static gort_wg timed_wg;
static void timed_one(void *arg) {
    timed_fn(arg);
    gort_wg_done(&timed_wg);
}

/* Runs fn(arg) in n goroutines, or n threads, to the end; ns. */
TEST_UNUSED static int64_t timed_goroutines(int n, void (*fn)(void *)) {
    int64_t from = gort_now();
    timed_fn = fn;
    gort_wg_add(&timed_wg, n);
    for (intptr_t i = 0; i < n; i++) CHECK_EQ(go_as_asked(timed_one, (void *)i), 0);
    gort_wg_wait(&timed_wg);
    return gort_now() - from;
}

static void *timed_main(void *arg) {
    timed_fn(arg);
    return NULL;
}
TEST_UNUSED static int64_t timed_threads(int n, void (*fn)(void *)) {
    pthread_t t[256];
    timed_fn = fn;
    int64_t from = gort_now();
    for (intptr_t i = 0; i < n; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, timed_main, (void *)i), 0);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    return gort_now() - from;
}

#endif
