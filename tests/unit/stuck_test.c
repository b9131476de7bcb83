/*
 * The judge of the searchers (tests/lib/stuck.h): a child that sleeps for ever and one that
 * computes for ever are stuck; one that gets no processor is not, however long it takes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/stuck.h"
#include "../lib/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { LOOKS = 30, BUSY = 4 };

static pid_t begin_child(void (*life)(void)) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) life();
    }
    return pid;
}
static void end_child(pid_t pid) {
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}
static bool looks_stuck(Stuck *s) {
    usleep(STUCK_PAUSE_MS * 1000);
    return stuck_look(s);
}

static void sleeps(void) { usleep(1000); }
static void computes(void) {}
static void test_asleep(void) {
    Stuck s = {.pid = begin_child(sleeps), .seconds = 1000, .most = LOOKS};
    int looks = 0;
    for (; !looks_stuck(&s); looks++) {}
    CHECK_GE(looks, LOOKS - 1);
    end_child(s.pid);
}
static void test_busy(void) {
    Stuck s = {.pid = begin_child(computes), .seconds = 1, .most = 1 << 30};
    while (!looks_stuck(&s)) {}
    end_child(s.pid);
}

/* On one processor with others, and the kernel prefers them. */
static void stay_on_one_cpu(pid_t pid) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(pid, sizeof one, &one), 0);
}
static void starve(pid_t pid) {
    struct sched_param none = {0};
    CHECK_EQ(sched_setscheduler(pid, SCHED_IDLE, &none), 0);
    stay_on_one_cpu(pid);
}
static void test_starved(void (*life)(void)) {
    pid_t busy[BUSY];
    for (int i = 0; i < BUSY; i++) {
        busy[i] = begin_child(computes);
        stay_on_one_cpu(busy[i]);
    }
    Stuck s = {.pid = begin_child(life), .seconds = 1000, .most = LOOKS};
    starve(s.pid);
    for (int i = 0; i < 3 * LOOKS; i++)
        CHECKF(!looks_stuck(&s), "stuck after %d looks, %d of them counted", i, s.looks);
    end_child(s.pid);
    for (int i = 0; i < BUSY; i++) end_child(busy[i]);
}

int main(void) {
    if (access("/proc/self/schedstat", R_OK) != 0) SKIP("the kernel does not say who waits");
    test_asleep();
    test_busy();
    test_starved(sleeps);
    test_starved(computes);
    return 0;
}
