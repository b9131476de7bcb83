/* A child that is made while no runtime runs, beside threads that use gort: they do not exist
 * there, and its runtime waits for none of them, neither at its end nor with the report of a
 * deadlock. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static gort_chan *nobody;
static int busy;

static void *uses(void *arg) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    for (int x = 1;;) {
        gort_chan_send(c, &x);
        gort_chan_recv(c, &x);
        __atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void *waits(void *arg) {
    gort_chan_recv(nobody, NULL);
    return NULL;
}

static int returns(int argc, char **argv) { return 7; }
static int deadlocks(int argc, char **argv) {
    gort_chan_recv(NULL, NULL);
    return 0;
}

static int status_of(int (*body)(int, char **)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60); /* instead of the whole test */
        if (body == deadlocks) close(2);
        _exit(gort_main(body, 0, NULL));
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv) {
    pthread_t t;
    nobody = gort_chan_new(0, 0);
    CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
    CHECK_EQ(status_of(deadlocks), 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t, NULL, uses, NULL), 0);
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED) < 1000) sched_yield();
    for (int i = 0; i < 20; i++) CHECK_EQ(status_of(returns), 7);
    _exit(0);
}
