/*
 * monkey SEED program [argument...]: runs it and holds single threads of it for a while, again and
 * again, wherever they happen to be: what a loaded machine does to a thread once in hours, some
 * thousand times a second.
 *
 * It is a tracer (ptrace(2)), so a thread stops between any two instructions, in a system call or
 * out of it, while the others go on. Most are let go soon; one in eight stays for some
 * milliseconds, long enough for the others to do whatever they can do without it. Signals are
 * passed on. Its exit status is the program's. When it is killed, the program goes on alone: a
 * debugger can look at what hangs.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 512 };
enum { FREE, ASKED, HELD };
static struct {
    pid_t tid;
    int state;
    int64_t until; /* HELD */
} threads[MOST];
static int nthreads;
static uint64_t holds;
static uint32_t seed;

static uint32_t draw(uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    return seed % n;
}

static int64_t now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * (int64_t)1000000000 + ts.tv_nsec;
}

static int find(pid_t tid) {
    for (int i = 0; i < nthreads; i++)
        if (threads[i].tid == tid) return i;
    if (nthreads == MOST) return -1;
    threads[nthreads].tid = tid;
    threads[nthreads].state = FREE;
    return nthreads++;
}

static void forget(int i) {
    if (i >= 0) threads[i] = threads[--nthreads];
}

/* It may be gone: then waitpid tells. */
static void go_on(pid_t tid, int sig) { ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)sig); }

static void hold(int i) {
    int64_t us = draw(8) ? 20 + draw(300) : draw(8000);
    threads[i].state = HELD;
    threads[i].until = now() + us * 1000;
    holds++;
}

/* True: the program has ended, with *status. */
static bool heard(pid_t tid, int s, pid_t leader, int *status) {
    int i = find(tid), sig = WSTOPSIG(s), event = s >> 16;
    if (WIFEXITED(s) || WIFSIGNALED(s)) {
        forget(i);
        *status = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);
        return tid == leader;
    }
    /* stopped by SIGSTOP */
    if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) ptrace(PTRACE_LISTEN, tid, NULL, NULL);
    else if (event == PTRACE_EVENT_STOP && i >= 0) hold(i); /* asked to, or newly born */
    else go_on(tid, event || sig == SIGTRAP ? 0 : sig);
    return false;
}

static void let_go(void) {
    int64_t t = now();
    for (int i = 0; i < nthreads; i++) {
        if (threads[i].state != HELD || threads[i].until > t) continue;
        threads[i].state = FREE;
        go_on(threads[i].tid, 0);
    }
}

static void stop_one(void) {
    int i = (int)draw((uint32_t)nthreads);
    if (threads[i].state == FREE && ptrace(PTRACE_INTERRUPT, threads[i].tid, NULL, NULL) == 0)
        threads[i].state = ASKED;
}

static int watch(pid_t leader) {
    struct timespec nap = {0, 50000};
    int status = 0;
    for (;;) {
        int s;
        pid_t tid;
        while ((tid = waitpid(-1, &s, __WALL | WNOHANG)) > 0)
            if (heard(tid, s, leader, &status)) return status;
        if (tid < 0 && errno == ECHILD) return status;
        let_go();
        if (nthreads > 0 && draw(2)) stop_one();
        nanosleep(&nap, NULL);
    }
}

int main(int argc, char **argv) {
    int gate[2];
    char c;
    if (argc < 3 || (seed = (uint32_t)strtoul(argv[1], NULL, 0)) == 0) {
        fprintf(stderr, "usage: %s SEED program [argument...]\nSEED is not 0.\n", argv[0]);
        return 2;
    }
    if (pipe(gate) != 0) return 2;
    pid_t child = fork();
    if (child == 0) {
        close(gate[1]);
        signal(SIGQUIT, SIG_DFL); /* a shell has it ignored in what it starts in the background */
        if (read(gate[0], &c, 1) == 1) execvp(argv[2], argv + 2);
        _exit(127);
    }
    close(gate[0]);
    long r = child < 0 ? -1 : ptrace(PTRACE_SEIZE, child, NULL, (void *)PTRACE_O_TRACECLONE);
    if (r < 0 || write(gate[1], "x", 1) != 1) {
        fprintf(stderr, "%s: cannot trace: %s\n", argv[0], strerror(errno));
        return 77;
    }
    close(gate[1]);
    find(child);
    int status = watch(child);
    fprintf(stderr, "monkey: held a thread %llu times\n", (unsigned long long)holds);
    return status;
}
