/*
 * A handler of the program's that waits in a hooked call, on the interrupted stack, has interrupted
 * a goroutine on its way into such a call, out of it, or anywhere else. Both come back to the
 * thread they left, and nobody is sent to a thread that does not wait for him.
 */
#include "hook.h"

#define WAITERS 6
static int stop, handled, rounds[WAITERS], tids[WAITERS];

static void handler(int signo) {
    int err = errno, tid = (int)syscall(SYS_gettid);
    usleep(0);
    CHECK_EQ(syscall(SYS_gettid), tid);
    add(&handled, 1);
    errno = err;
}

static void waiter(void *arg) {
    int me = (int)(intptr_t)arg;
    while (!get(&stop)) {
        usleep(0);
        set(&tids[me], (int)syscall(SYS_gettid));
        add(&rounds[me], 1);
    }
}

static void *sender(void *arg) { /* to the thread each was on last */
    for (int i = 0; !get(&stop); i = (i + 1) % WAITERS) {
        if (get(&tids[i]) == 0) continue;
        syscall(SYS_tgkill, getpid(), get(&tids[i]), SIGUSR1);
        sched_yield();
    }
    return NULL;
}
static int run(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
    pthread_t t;
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    for (int i = 0; i < WAITERS; i++) gort_go(waiter, (void *)(intptr_t)i);
    CHECK_EQ(pthread_create(&t, NULL, sender, NULL), 0);
    for (int i = 0; i < WAITERS; i++) wait_until(get(&rounds[i]) > 300);
    wait_until(get(&handled) > 5000);
    set(&stop, 1);
    pthread_join(t, NULL);
    wait_until(gort_count() == 1);
    return 0;
}
int main(int argc, char **argv) {
    check_hooked();
    return gort_main(run, argc, argv);
}
