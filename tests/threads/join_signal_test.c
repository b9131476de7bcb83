/* A signal's handler runs on a thread that joins, and the join goes on. */
#include "threads_test.h"

#include <signal.h>

static pthread_t joiner;
static volatile sig_atomic_t handled;

static void on_signal(int signo) { handled++; }

static void *signals(void *arg) {
    for (int i = 1; i <= 20; i++) {
        usleep(2000);
        CHECK(pthread_kill(joiner, SIGUSR1) == 0);
        wait_until(handled == i);
    }
    return arg;
}

static void join_all(void) {
    pthread_t thread;
    void *value = NULL;
    handled = 0;
    joiner = pthread_self();
    CHECK(pthread_create(&thread, NULL, signals, &joiner) == 0);
    int r = pthread_join(thread, &value);
    CHECK(r == 0);
    CHECK(value == &joiner && handled == 20);
}

static void *joins(void *arg) {
    join_all();
    return NULL;
}

int main(void) {
    pthread_t thread;
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL) == 0);
    join_all();
    CHECK(pthread_create(&thread, NULL, joins, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
