/*
 * Signal-driven shutdown: SIGTERM and SIGINT arrive on a channel, the context of all workers is
 * cancelled, each finishes what it has in hand, main waits for them. (The program sends the signal
 * to itself, so that it can be watched without a second terminal.)
 */
#define _POSIX_C_SOURCE 200809L /* kill, where the compiler is told -std=c11 */
#include <gort.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4 };
static gort_mutex mutex;
static int started, finished;

static int worker(gort_ctx *ctx, void *arg) {
    int *shift = arg;
    gort_mutex_lock(&mutex);
    started++;
    gort_mutex_unlock(&mutex);
    (void)ctx; /* in use: the sleep ends with it, and with an error */
    do ++*shift;
    while (gort_sleep(GORT_MS) == 0);
    gort_mutex_lock(&mutex);
    finished++;
    gort_mutex_unlock(&mutex);
    return 0;
}

static void send_signal(void *arg) {
    (void)arg;
    for (int n = 0; n < WORKERS; gort_sleep(GORT_MS)) {
        gort_mutex_lock(&mutex);
        n = started;
        gort_mutex_unlock(&mutex);
    }
    kill(getpid(), SIGTERM);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    int signo = 0, shifts[WORKERS] = {0};
    gort_chan *signals = gort_chan_new(sizeof(int), 1);
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_group *group = ctx ? gort_group_new(ctx, 0) : NULL;
    int err = signals && group ? gort_signal_notify(signals, SIGTERM) : -ENOMEM;
    if (err == 0) err = gort_signal_notify(signals, SIGINT);
    for (int i = 0; i < WORKERS && err == 0; i++) err = gort_group_go(group, worker, &shifts[i]);
    if (err == 0) err = gort_go(send_signal, NULL);
    if (err < 0) return fprintf(stderr, "shutdown: %s\n", strerror(-err)), 1;

    gort_chan_recv(signals, &signo);
    printf("%s: shutting down\n", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    gort_ctx_cancel(ctx);
    gort_group_wait(group);
    printf("%d of %d workers have finished\n", finished, WORKERS);
    gort_signal_stop(signals);
    gort_chan_release(signals);
    gort_ctx_release(ctx);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
