/*
 * What a trace costs, on a machine where others work too: the program itself turns the recording of
 * events on and off every 20 ms and adds up, for each half, its own processor time and the number
 * of times a goroutine was put on a P. Both halves meet the same noise. White box: it links
 * libgort-white.a and flips trace_on (src/sched/trace.h) by hand; the session it belongs to is
 * opened with gort_trace_start into /dev/null and spills its chunks like any other.
 *
 *     trace_cost http [SECONDS]     the HTTP example under wrk, which it starts
 *     trace_cost pingpong|yield|spawn [SECONDS]
 *
 * Prints ns of processor time per switch, off and on, and by how many percent on is slower.
 */
int http_main(int argc, char **argv);
#define main http_main
#include "../examples/http.c"
#undef main
#undef errno

#include "sched/trace.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int finished;
static double cpu[2];
static uint64_t switches[2];

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A plain thread: the goroutines are not disturbed. */
static void *flip(void *arg) {
    gort_stats before, after;
    uint32_t session = trace_session();
    int64_t end = gort_now() + (int64_t)(intptr_t)arg * GORT_SEC;
    for (int on = 0; gort_now() < end; on ^= 1) {
        store_seq(&trace_on, on ? session : 0);
        usleep(1000); /* what was under way belongs to neither */
        double from = cpu_now();
        gort_stats_read(&before);
        usleep(20000);
        gort_stats_read(&after);
        cpu[on] += cpu_now() - from;
        switches[on] += after.switches - before.switches;
    }
    store_seq(&trace_on, session);
    finished = 1;
    return NULL;
}

static void report(const char *name) {
    double off = cpu[0] / (double)switches[0], on = cpu[1] / (double)switches[1];
    printf("%-10s off %9.2f  on %9.2f ns per switch  %+.2f %%\n", name, off, on,
           (on / off - 1) * 100);
}

static gort_chan *ping, *pong;
static void player(void *arg) {
    while (gort_chan_recv(ping, NULL) == 0) gort_chan_send(pong, NULL);
}
static void pingpong(void) {
    ping = gort_chan_new(0, 0), pong = gort_chan_new(0, 0);
    gort_go(player, NULL);
    while (!finished) gort_chan_send(ping, NULL), gort_chan_recv(pong, NULL);
    gort_chan_close(ping);
}
static void yielder(void *arg) {
    while (!finished) gort_yield();
}
static void nothing(void *arg) {}
static void spawn(void) {
    while (!finished) {
        gort_wg wg = {0};
        for (int i = 0; i < 100; i++) gort_wg_go(&wg, nothing, NULL);
        gort_wg_wait(&wg);
    }
}

static void server(void *arg) { run(2, (char *[]){"http", arg, NULL}); }
static void http(int seconds) {
    char url[64], addr[64] = "127.0.0.1:0", duration[16];
    int fd = gort_listen(addr, 0); /* a port nobody has */
    gort_local_addr(fd, addr, sizeof addr);
    gort_close(fd);
    gort_go(server, addr);
    snprintf(url, sizeof url, "http://%s/", addr);
    snprintf(duration, sizeof duration, "-d%ds", seconds + 1);
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stdout);
        execlp("wrk", "wrk", "-t1", "-c64", duration, url, (char *)NULL);
        _exit(127);
    }
    while (!finished) gort_sleep(10 * GORT_MS);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
}

static int measure(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "pingpong";
    int seconds = argc > 2 ? atoi(argv[2]) : 2;
    pthread_t thread;
    if (gort_trace_start("/dev/null") != 0) return 1;
    pthread_create(&thread, NULL, flip, (void *)(intptr_t)seconds);
    if (strcmp(name, "http") == 0) http(seconds);
    else if (strcmp(name, "yield") == 0) gort_go(yielder, NULL), yielder(NULL);
    else if (strcmp(name, "spawn") == 0) spawn();
    else pingpong();
    pthread_join(thread, NULL);
    report(name);
    fflush(stdout);
    _exit(0); /* the trace itself is of no use to anybody */
}

int main(int argc, char **argv) { return gort_main(measure, argc, argv); }
