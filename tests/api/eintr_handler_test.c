// not-with: emulation
/*
 * The EINTR that a handler of the program's causes is the program's: a call that it interrupts
 * returns, though the thread is asked to give way while the handler runs. The handler blocks every
 * signal and computes for some slices. (One EINTR more is allowed: eintr_repair.c.)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 8 };
static int tid, handled, back;

static int64_t cpu_time(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * GORT_SEC + ts.tv_nsec;
}
static void handler(int signo) {
    for (int64_t until = cpu_time() + 30 * GORT_MS; cpu_time() < until;) {}
    add(&handled, 1);
}

static void sleeper(void *arg) {
    set(&tid, (int)syscall(SYS_gettid));
    for (;;) {
        CHECK(pause() < 0 && errno == EINTR);
        add(&back, 1);
    }
}

/* The number of the call that the thread sleeps in; -1: it runs, -2: the kernel does not tell. */
static long call_of(int thread) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *f = fopen(path, "r");
    if (f == NULL) return -2;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1;
}
/* In pause, under whatever number. Preempted before it, the thread sleeps on a futex. */
static bool pauses(int thread) {
    long call = call_of(thread);
    return call >= 0 && call != SYS_futex;
}

static int body(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = handler};
    sigfillset(&sa.sa_mask);
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    gort_go(sleeper, NULL);
    wait_until(get(&tid) != 0);
    for (int i = 0; i < ROUNDS; i++) {
        int before = get(&back);
        wait_until(pauses(get(&tid)));
        CHECK_EQ(syscall(SYS_tgkill, getpid(), get(&tid), SIGUSR1), 0);
        wait_until(get(&handled) == i + 1);
        wait_until(get(&back) > before);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (call_of((int)getpid()) == -2) SKIP("there is no /proc, or it does not tell calls");
    return gort_main(body, argc, argv);
}
