/*
 * What ends the wait, what noise there is meanwhile, who is in the background of the whole scene,
 * and how the process ends. All of them are played on the director's thread, or main's.
 */
#include "whole.h"

#include <dlfcn.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- enders: the call has begun -------------------------------------------------------------- */

static void grants(Player *p) {
    set(&p->granting, 1);
    p->act->grant(p);
}
static void times_out(Player *p) {
    wait_until(get(&p->returned));
    IS(p, get(&p->timedout), 1);
    grants(p);
}
static void cancels(Player *p) {
    IS(p, pthread_cancel(p->thread), 0);
    if (pick(p, 30, 4) == 0) pthread_cancel(p->thread);
    if (ends_in_call(p)) {
        wait_until(get(&p->ended));
        IS(p, get(&p->returned), 0);
    }
    grants(p);
}
static void races(Player *p) {
    bool first = pick(p, 31, 2);
    if (first) IS(p, pthread_cancel(p->thread), 0);
    grants(p);
    if (!first) pthread_cancel(p->thread);
}
static void interrupts(Player *p) {
    while (get(&p->error) != EINTR) {
        IS(p, pthread_kill(p->thread, SIG_INTERRUPTS), 0);
        nap(100);
    }
    grants(p);
}
static void restarts(Player *p) {
    int was = get(&p->handled);
    for (int i = 0; i < 5; i++) IS(p, pthread_kill(p->thread, SIG_RESTARTS), 0);
    wait_until(get(&p->handled) > was);
    if (p->all & GRANTED) IS(p, get(&p->returned), 0);
    grants(p);
}
static void jumps(Player *p) {
    while (!get(&p->jumped)) {
        int was = get(&p->handled);
        IS(p, pthread_kill(p->thread, SIG_JUMPS), 0);
        wait_until(get(&p->handled) > was || get(&p->jumped));
    }
    grants(p);
}
static void never(Player *p) {}

const Word enders[] = {
    {.name = "grant", .play = grants},
    {.name = "early", .is = EARLY, .refuses = MEETS, .play = grants},
    {.name = "timeout", .wants = TIMED, .is = LATE, .play = times_out},
    {.name = "cancel", .is = CANCELS | LATE, .refuses = DETACHED, .play = cancels},
    {.name = "race", .is = CANCELS | LATE, .refuses = DETACHED | ASYNC, .play = races},
    {.name = "interrupt",
     .is = SIGNALS | LATE,
     .wants = INTR,
     .refuses = BLOCKS,
     .play = interrupts},
    {.name = "restart", .is = LATE | SIGNALS, .refuses = BLOCKS, .play = restarts},
    {.name = "jump",
     .is = JUMPS | SIGNALS | LATE,
     .wants = LEAVABLE,
     .refuses = BLOCKS,
     .play = jumps},
    {.name = "never", .is = NEVER, .refuses = ALL_END, .play = never},
    {.name = NULL},
};

/* ---- noises: while it waits ------------------------------------------------------------------ */

static void quiet(Player *p) {}
static void queues(Player *p) {
    for (int i = 1; i <= 5; i++) {
        add(&p->queued, i);
        while (pthread_sigqueue(p->thread, SIG_QUEUED, (union sigval){i}) != 0) nap(100);
    }
}
static void forks(Player *p) {
    pid_t pid = fork();
    HOLDS(p, pid >= 0);
    if (pid == 0) _exit(getppid() > 0 ? 3 : 4);
    IS(p, ends_child(pid), 3 << 8);
}
static void *adds(void *sum) {
    __atomic_add_fetch((int *)sum, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void forks_threads(Player *p) {
    pid_t pid = fork();
    HOLDS(p, pid >= 0);
    if (pid == 0) {
        int sum = 0;
        pthread_t t[5];
        for (int i = 0; i < 5; i++)
            if (pthread_create(&t[i], NULL, adds, &sum) != 0) _exit(99);
        for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
        _exit(sum);
    }
    IS(p, ends_child(pid), 5 << 8);
}
static void spawns(Player *p) {
    char *argv[] = {"sh", "-c", "exit 9", NULL}, *env[] = {NULL};
    pid_t pid;
    IS(p, posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env), 0);
    IS(p, ends_child(pid), 9 << 8);
}
static void runs(Player *p) {
    IS(p, system("exit 8"), 8 << 8);
    FILE *f = popen("echo hello", "r");
    char line[20] = "";
    HOLDS(p, f && fgets(line, sizeof line, f));
    IS(p, pclose(f), 0);
    IS(p, strcmp(line, "hello\n"), 0);
}
static void asks(Player *p) {
    pthread_attr_t attr;
    clockid_t clock;
    void *at;
    size_t size;
    char name[16];
    cpu_set_t set;
    int policy;
    struct sched_param param;
    struct timespec t;
    IS(p, pthread_getattr_np(p->thread, &attr), 0);
    IS(p, pthread_attr_getstack(&attr, &at, &size), 0);
    char *inside = p->text; /* an address in a frame of the player's */
    HOLDS(p, inside >= (char *)at && inside < (char *)at + size);
    pthread_attr_destroy(&attr);
    IS(p, pthread_getcpuclockid(p->thread, &clock), 0);
    IS(p, clock_gettime(clock, &t), 0);
    IS(p, pthread_getname_np(p->thread, name, sizeof name), 0);
    IS(p, pthread_getaffinity_np(p->thread, sizeof set, &set), 0);
    IS(p, pthread_getschedparam(p->thread, &policy, &param), 0);
    IS(p, pthread_kill(p->thread, 0), 0);
}
static void stops(Player *p) {
    for (int i = 0; i < 3; i++) {
        IS(p, pthread_kill(p->thread, SIG_STOPS), 0);
        wait_until(get(&p->stopped) == i + 1);
        nap(300); /* it may have a lock of libc's: no call that takes one */
        set(&p->resume, i + 1);
        IS(p, pthread_kill(p->thread, SIG_RESUMES), 0);
    }
}
static void trims(Player *p) {
    malloc_trim(0);
    void *lib = dlopen("libm.so.6", RTLD_NOW);
    HOLDS(p, lib != NULL);
    IS(p, dlclose(lib), 0);
}
static void waits_long(Player *p) { nap(20000); }

const Word noises[] = {
    {.name = "none", .play = quiet},
    {.name = "queue", .is = LATE, .refuses = EARLY | CANCELS | NEVER, .play = queues},
    {.name = "fork", .play = forks},
    {.name = "fork_threads", .play = forks_threads},
    {.name = "spawn", .play = spawns},
    {.name = "system", .play = runs},
    {.name = "ask", .is = LATE, .refuses = EARLY, .play = asks},
    {.name = "stop", .is = LATE, .refuses = EARLY | BLOCKS, .play = stops},
    {.name = "trim", .play = trims},
    {.name = "long", .play = waits_long},
    {.name = NULL},
};

/* ---- in the background, until all is over ---------------------------------------------------- */

/* No setegid and the like: in glibc 2.36 a thread that ends beside it hangs at times. */

static volatile uint64_t spun;
static void spins(Player *p) {
    while (!get(&quit)) spun = spun + 1;
}
static void alarms(Player *p) {
    while (!get(&quit)) {
        kill(getpid(), SIGALRM);
        nap(500);
    }
}
static void itimer(Player *p) {
    struct itimerval often = {{0, 700}, {0, 700}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (!get(&quit)) nap(1000);
    setitimer(ITIMER_REAL, &none, NULL);
}
static void creates(Player *p) {
    pthread_t t[5];
    int sum = 0, all = 0;
    while (!get(&quit)) {
        for (int i = 0; i < 5; i++) IS(NULL, pthread_create(&t[i], NULL, adds, &sum), 0);
        for (int i = 0; i < 5; i++) IS(NULL, pthread_join(t[i], NULL), 0);
        IS(NULL, sum, all += 5);
    }
}
static void children(Player *p) {
    while (!get(&quit)) forks_threads(NULL), spawns(NULL);
}
static void loads(Player *p) {
    while (!get(&quit)) {
        void *lib = dlopen("libm.so.6", RTLD_NOW);
        HOLDS(NULL, lib != NULL);
        dlclose(lib);
        free(malloc(200000));
        nap(100);
    }
}
static void tick(union sigval v) { add(v.sival_ptr, 1); }
static void ticks(Player *p) {
    static int count;
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    e.sigev_value.sival_ptr = &count;
    HOLDS(NULL, timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
    timer_settime(timer, 0, &often, NULL);
    while (!get(&quit)) nap(1000);
    timer_delete(timer);
}

const Word backs[] = {
    {.name = "none", .play = NULL},
    {.name = "spin", .play = spins},
    {.name = "alarm", .is = SIGNALS, .play = alarms},
    {.name = "itimer", .is = SIGNALS, .play = itimer},
    {.name = "create", .play = creates},
    {.name = "children", .play = children},
    {.name = "load", .play = loads},
    {.name = "ticks", .is = STAYS, .play = ticks},
    {.name = NULL},
};

/* ---- the end of the process: what its status is ---------------------------------------------- */

/* Its atexit handler makes 7 of 6, so it has run. Children of fork do not come here. */
static void end_exit(Player *p) { exit(6); }
static void end_quick(Player *p) { quick_exit(6); }
static void end_now(Player *p) { _exit(7); }
static void end_abort(Player *p) { abort(); }
static void end_kill(Player *p) {
    kill(getpid(), SIGTERM);
    for (;;) nap(10000);
}
static void end_exec(Player *p) {
    signal(SIGALRM, SIG_IGN);
    set(&leaving, 1);
    execl("/bin/sh", "sh", "-c", "exit 7", NULL);
}
static void *of_thread(void *end) {
    ((const Word *)end)->play(NULL);
    return NULL;
}
static const Word inner_exit = {.play = end_exit};
static void end_thread(Player *p) {
    pthread_t t = helper(of_thread, (void *)&inner_exit);
    pthread_join(t, NULL);
    for (;;) nap(10000);
}
static void end_main(Player *p) { pthread_exit(NULL); }

/* `wants`: the status. Those behind "main" also come while everything goes on: "soon_...". */
const Word ends[] = {
    {.name = "return", .play = NULL, .wants = 7 << 8},
    {.name = "main", .is = ALL_END, .refuses = STAYS, .play = end_main, .wants = 0},
    {.name = "exit", .play = end_exit, .wants = 7 << 8},
    {.name = "thread", .play = end_thread, .wants = 7 << 8},
    {.name = "quick", .play = end_quick, .wants = 7 << 8},
    {.name = "now", .play = end_now, .wants = 7 << 8},
    {.name = "abort", .play = end_abort, .wants = SIGABRT},
    {.name = "kill", .play = end_kill, .wants = SIGTERM},
    {.name = "exec", .play = end_exec, .wants = 7 << 8},
    {.name = NULL},
};
