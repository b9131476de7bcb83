/*
 * What keeps a report of a deadlock away, one after the other: when the last of it goes, the report
 * comes, also where it goes while all goroutines wait and the monitor sleeps, and no goroutine runs
 * for it. Each scene is a child, which is to end with status 2.
 */
#include "../lib/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static gort_chan *chan;
static gort_wg wg;
static gort_ctx *ctx;
static gort_timer *timer;
static int fds[2];

static void nothing(void *arg) {}
/* Long enough for the monitor to fall asleep; nothing but the test's power depends on it. */
static void while_all_wait(void) { usleep(100000); }

static void sends(void) { CHECK_EQ(gort_chan_send(chan, &(int){1}), 0); }
static void tries(void) { gort_chan_try_send(chan, &(int){1}); }
static void goes(void) { CHECK_EQ(gort_go(nothing, NULL), 0); }
static void counts_down(void) { gort_wg_done(&wg); }
static void sleeps(void) { gort_sleep(GORT_MS); }
static void cancels(void) { gort_ctx_cancel(ctx); }
static void stops_timer(void) { gort_timer_stop(timer); }
static void unwatches(void) { CHECK_EQ(gort_signal_stop(chan), 0); }
static void closes(void) { CHECK_EQ(gort_close(fds[0]), 0); }
static void forks(void) {
    sends();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) pthread_exit(NULL); /* the only thread of the child */
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void *ends_after(void *arg) {
    void (*step)(void) = arg;
    while_all_wait();
    step();
    while_all_wait();
    return NULL;
}
static void plain_thread(void (*step)(void)) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, ends_after, (void *)step), 0);
    CHECK_EQ(pthread_detach(t), 0);
}

static void waits_for_ever(void) {
    for (;;) gort_chan_recv(chan, &(int){0}); /* wakes for what a scene sends */
}
static void watches(void) { CHECK_EQ(gort_signal_notify(chan, SIGUSR1), 0); }
static void arms(void) { timer = gort_timer_new(3600 * GORT_SEC, nothing, NULL); }
static void deadline(void) { ctx = gort_ctx_with_deadline(NULL, gort_now() + 3600 * GORT_SEC); }
static void reads(void *arg) { CHECK_EQ(gort_read(fds[0], &(char){0}, 1), -EBADF); }
static void pair(void) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    CHECK_EQ(gort_go(reads, NULL), 0);
}
static long naps(void *arg) {
    usleep(200000);
    return 0;
}
static void blocks(void *arg) { gort_blocking(naps, NULL); }
static void wakes_in_time(void *arg) {
    CHECK_EQ(gort_chan_recv_until(gort_chan_new(0, 0), NULL, gort_now() + 200 * GORT_MS),
             -ETIMEDOUT);
}

/* With a plain thread that ends; before: on goroutine 1. */
static const struct Scene {
    const char *name;
    void (*before)(void), (*step)(void);
} with_thread[] = {
    {"send", NULL, sends},          {"try_send", NULL, tries},      {"go", NULL, goes},
    {"wg_done", NULL, counts_down}, {"sleep", NULL, sleeps},        {"cancel", deadline, cancels},
    {"timer", arms, stops_timer},   {"signal", watches, unwatches}, {"close", pair, closes},
    {"fork", NULL, forks},
};
static const struct Scene *scene;

static int beside_thread(int argc, char **argv) {
    gort_wg_add(&wg, 1);
    if (scene->before) scene->before();
    plain_thread(scene->step);
    waits_for_ever();
    return 0;
}
static void plays_with_thread(void) { gort_main(beside_thread, 0, NULL); }

/* Without one. */
static void on_goroutine(void (*before)(void), void (*after)(void)) {
    before();
    gort_sleep(100 * GORT_MS);
    after();
    waits_for_ever();
}
static int timer_stopped(int argc, char **argv) { return on_goroutine(arms, stops_timer), 0; }
static int signal_stopped(int argc, char **argv) { return on_goroutine(watches, unwatches), 0; }
static int ctx_cancelled(int argc, char **argv) { return on_goroutine(deadline, cancels), 0; }
static int number_closed(int argc, char **argv) { return on_goroutine(pair, closes), 0; }
static int call_over(int argc, char **argv) {
    gort_go(blocks, NULL);
    waits_for_ever();
    return 0;
}
static int wait_over(int argc, char **argv) {
    gort_go(wakes_in_time, NULL);
    waits_for_ever();
    return 0;
}
static int waits(int argc, char **argv) {
    waits_for_ever();
    return 0;
}
static int returns(int argc, char **argv) { return 0; }

static int (*body)(int argc, char **argv);
static void plays_alone(void) { gort_main(body, 0, NULL); }

/* The deadline of a context of before is the library's own thread's. */
static void clock_strikes(void) {
    gort_ctx_with_deadline(NULL, gort_now() + 300 * GORT_MS);
    gort_main(waits, 0, NULL);
}

/* The thread that called gort_main before ends while the next runtime waits. */
static void *had_runtime(void *arg) {
    CHECK_EQ(gort_main(returns, 0, NULL), 0);
    sem_t *over = arg;
    sem_post(over);
    while_all_wait();
    return NULL;
}
static void second_runtime(void) {
    sem_t over;
    pthread_t t;
    sem_init(&over, 0, 0);
    CHECK_EQ(pthread_create(&t, NULL, had_runtime, &over), 0);
    while (sem_wait(&over) != 0) {}
    gort_main(waits, 0, NULL);
}

/* The first thread ends, and the kernel counts it until the process does. */
static void *has_runtime(void *arg) {
    gort_main(waits, 0, NULL);
    return NULL;
}
static void first_ends(void) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, has_runtime, NULL), 0);
    while_all_wait();
    pthread_exit(NULL);
}

static void ends_dead(const char *name, void (*play)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    int status;
    CHECK(pid >= 0);
    if (pid == 0) {
        int said = open("/dev/null", O_WRONLY); /* the report */
        alarm(60);
        dup2(said, 2);
        chan = gort_chan_new(sizeof(int), 1);
        play();
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 2, "%s: status %#x", name, status);
}

int main(void) {
    for (size_t i = 0; i < sizeof with_thread / sizeof *with_thread; i++) {
        scene = &with_thread[i];
        ends_dead(scene->name, plays_with_thread);
    }
    static const struct Alone {
        const char *name;
        int (*body)(int argc, char **argv);
    } alone[] = {
        {"timer stopped", timer_stopped}, {"signal stopped", signal_stopped},
        {"ctx cancelled", ctx_cancelled}, {"number closed", number_closed},
        {"call over", call_over},         {"wait over", wait_over},
    };
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        body = alone[i].body;
        ends_dead(alone[i].name, plays_alone);
    }
    ends_dead("clock", clock_strikes);
    ends_dead("second runtime", second_runtime);
    ends_dead("first thread", first_ends);
    return 0;
}
