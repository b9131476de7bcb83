/*
 * The tour: what gort does, shown in well under half a minute. On a terminal each step has a
 * progress bar, elsewhere plain lines. Steps are functions; read main() at the end first.
 *
 * Nothing here is needed to use gort: examples/hello.c is the smallest program.
 */
#define _GNU_SOURCE
#include <gort.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define add(p, n) __atomic_add_fetch((p), (n), __ATOMIC_ACQ_REL)

/* ---- showing ------------------------------------------------------------------------------- */

static int on_terminal, step_number;
enum { STEPS = 7 };

static void step(const char *title) { printf("\n%d/%d  %s\n", ++step_number, STEPS, title); }

static void bar(long now, long all) {
    char text[31];
    if (!on_terminal) return;
    long full = all ? now * 30 / all : 30;
    for (long i = 0; i < 30; i++) text[i] = i < full ? '#' : '.';
    text[30] = 0;
    printf("\r     [%s] %ld / %ld\033[K", text, now, all);
    fflush(stdout);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (on_terminal) printf("\r\033[K");
    printf("     ");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
}

/* The tour needs all that it starts. */
static void must(int worked) {
    if (worked) return;
    fprintf(stderr, "demo: no memory\n");
    exit(1);
}
static void start_one(gort_fn *fn, void *arg) { must(gort_go(fn, arg) == 0); }

static double seconds(int64_t since) { return (double)(gort_now() - since) / 1e9; }

/* Waits until the counter has reached n, showing how far it is. */
static void watch(const long *counter, long n) {
    for (long v; (v = load(counter)) < n; gort_sleep(10 * GORT_MS)) bar(v, n);
}

/* The sum of a few lines "Name:  123 kB" of a file in /proc, in bytes. */
static long proc_bytes(const char *file, const char *name, const char *other) {
    char line[256];
    long sum = 0, kb;
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        if ((strncmp(line, name, strlen(name)) == 0 || strncmp(line, other, strlen(other)) == 0) &&
            sscanf(strchr(line, ':') + 1, "%ld", &kb) == 1)
            sum += kb * 1024;
    if (f) fclose(f);
    return sum;
}
static long memory_used(void) { return proc_bytes("/proc/self/status", "VmRSS:", "VmPTE:"); }

/* ---- 1: a million goroutines --------------------------------------------------------------- */

static long waiting, ended;

static void wait_for_close(void *arg) {
    add(&waiting, 1);
    gort_chan_recv(arg, NULL);
    add(&ended, 1);
}

static void a_million(void) {
    long n = 1000000, room = proc_bytes("/proc/meminfo", "MemAvailable:", "MemAvailable:");
    step("A million goroutines, all waiting for one channel");
    while (n > 10000 && room < n * 6000) n /= 2;
    if (n < 1000000) say("(memory for %ld is free here)", n);
    gort_chan *c = gort_chan_new(0, 0);
    must(c != NULL);
    long before = memory_used();
    int64_t start = gort_now();
    for (long i = 0; i < n; i++) {
        if (gort_go(wait_for_close, c) != 0) n = i;
        if (i % 20000 == 0) bar(load(&waiting), n);
    }
    watch(&waiting, n);
    gort_stats s;
    gort_stats_read(&s);
    say("%ld started and waiting in %.2f s: %.2f KB each, on %lu threads", n, seconds(start),
        (double)(memory_used() - before) / (double)n / 1024, (unsigned long)s.threads);
    start = gort_now();
    gort_chan_close(c);
    watch(&ended, n);
    say("the channel is closed: all of them woke up and ended in %.2f s", seconds(start));
    gort_chan_release(c);
}

/* ---- 2: a ping-pong ------------------------------------------------------------------------ */

enum { RALLY = 1000000 };
static gort_chan *ping, *pong;
static long hits;

static void returns(void *arg) {
    (void)arg;
    while (gort_chan_recv(ping, NULL) == 0) gort_chan_send(pong, NULL);
}

static void a_ping_pong(void) {
    step("A ping-pong over two unbuffered channels");
    ping = gort_chan_new(0, 0);
    pong = gort_chan_new(0, 0);
    must(ping && pong);
    start_one(returns, NULL);
    int64_t start = gort_now();
    for (hits = 0; hits < RALLY; hits++) {
        gort_chan_send(ping, NULL);
        gort_chan_recv(pong, NULL);
        if (hits % 50000 == 0) bar(hits, RALLY);
    }
    say("%d there and back: %.0f ns each, two switches and two messages", RALLY,
        seconds(start) * 1e9 / RALLY);
    gort_chan_close(ping);
}

/* ---- 3: work spreads over the Ps ----------------------------------------------------------- */

enum { PIECES = 400 };
static long done_on[1024], pieces;

static void piece(void *arg) {
    volatile unsigned long x = (unsigned long)(intptr_t)arg;
    for (int i = 0; i < 1000000; i++) x = x * 31 + 7;
    int p = gort_pin(); /* on which P did this end? */
    add(&done_on[p], 1);
    gort_unpin();
    add(&pieces, 1);
}

static void work_spreads(void) {
    char text[200] = "";
    gort_stats a, b;
    int procs = gort_maxprocs(0);
    step("Work that one goroutine starts spreads over all Ps");
    gort_stats_read(&a);
    for (intptr_t i = 0; i < PIECES; i++) start_one(piece, (void *)i);
    watch(&pieces, PIECES);
    gort_stats_read(&b);
    for (int i = 0; i < procs && i < 16; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %ld", done_on[i]);
    say("%d pieces on %d P%s:%s (%lu goroutines were stolen)", PIECES, procs, procs > 1 ? "s" : "",
        text, (unsigned long)(b.stolen - a.stolen));
}

/* ---- 4: a loop that never yields ----------------------------------------------------------- */

static long looping, enough;

static void loops(void *arg) {
    (void)arg;
    add(&looping, 1);
    while (!load(&enough)) { /* no call, no yield */
    }
}

static void a_loop(void) {
    step("A loop that never yields, and one P only");
    int procs = gort_maxprocs(1);
    start_one(loops, NULL);
    int64_t worst = 0;
    for (int i = 0; i < 20; i++) {
        int64_t before = gort_now();
        gort_yield(); /* to the loop; only preemption brings main back */
        if (load(&looping) && gort_now() - before > worst) worst = gort_now() - before;
        bar(i + 1, 20);
    }
    gort_stats s;
    gort_stats_read(&s);
    add(&enough, 1);
    gort_maxprocs(procs);
    say("main got its turn 20 times, after %.0f ms at most (preempted %lu times so far)",
        (double)worst / 1e6, (unsigned long)s.preemptions);
}

/* ---- 5: ten thousand connections ----------------------------------------------------------- */

static long connected, echoed;

static void echo(void *arg) {
    int fd = *(int *)arg;
    char c;
    add(&connected, 1);
    while (gort_read(fd, &c, 1) == 1) gort_write(fd, &c, 1);
    gort_close(fd);
}

static void ask(void *arg) {
    int fd = *(int *)arg;
    char c = 'x';
    if (gort_write(fd, &c, 1) == 1 && gort_read(fd, &c, 1) == 1) add(&echoed, 1);
}

static void connections(void) {
    struct rlimit limit;
    long n = 10000, made;
    step("Ten thousand connections, each with a goroutine that waits in a plain read");
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max; /* a program may: it knows that it does not use select(2) */
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur != RLIM_INFINITY && (long)limit.rlim_cur < 2 * n + 100)
        n = ((long)limit.rlim_cur - 100) / 2;
    int(*pair)[2] = calloc((size_t)n, sizeof *pair);
    must(pair != NULL);
    int64_t start = gort_now();
    for (made = 0; made < n; made++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair[made]) != 0) break;
        must(gort_go_copy(echo, &pair[made][1], sizeof(int)) == 0);
        if (made % 500 == 0) bar(made, n);
    }
    watch(&connected, made);
    gort_stats s;
    gort_stats_read(&s);
    if (made < 10000) say("(the limit on descriptors allows %ld here)", made);
    say("%ld connections open in %.2f s, on %lu threads", made, seconds(start),
        (unsigned long)s.threads);
    start = gort_now();
    for (long i = 0; i < made; i++) start_one(ask, &pair[i][0]);
    watch(&echoed, made);
    say("each of them has echoed a byte in %.2f s", seconds(start));
    for (long i = 0; i < made; i++) gort_close(pair[i][0]);
    while (gort_count() > 1) gort_sleep(GORT_MS); /* they see the end of file and go */
    free(pair);
}

/* ---- 6: blocking calls --------------------------------------------------------------------- */

enum { CALLS = 40 };
static long returned, meanwhile, over;

static long half_a_second(void *arg) {
    (void)arg;
    usleep(500000);
    return 0;
}
static void blocks(void *arg) {
    if (arg) gort_blocking(half_a_second, NULL); /* announced, */
    else half_a_second(NULL);                    /* and not announced to anybody */
    add(&returned, 1);
}
static void keeps_going(void *arg) {
    (void)arg;
    for (; !load(&over); gort_yield()) add(&meanwhile, 1);
}

static void blocking_calls(void) {
    step("Calls that block their thread for half a second, announced or not");
    int64_t start = gort_now();
    start_one(keeps_going, NULL);
    for (intptr_t i = 0; i < CALLS; i++) start_one(blocks, (void *)(i % 2));
    watch(&returned, CALLS);
    add(&over, 1);
    say("%d of them took %.2f s, not %d; another goroutine ran %ld times meanwhile", CALLS,
        seconds(start), CALLS / 2, load(&meanwhile));
}

/* ---- 7: a deadlock, in a program of its own ------------------------------------------------- */

static gort_mutex never_unlocked;
static void locks(void *arg) {
    (void)arg;
    gort_mutex_lock(&never_unlocked);
}
static int deadlock(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_mutex_lock(&never_unlocked);
    must(gort_go_with(&(gort_attr){.name = "locker"}, locks, NULL) == 0);
    gort_chan_recv(gort_chan_new(0, 0), NULL);
    return 0;
}

static long reap(void *arg) {
    int status = 0;
    waitpid(*(pid_t *)arg, &status, 0);
    return status;
}

static void a_deadlock(void) {
    int out[2];
    char text[8192];
    step("A deadlock is found and reported (in a child process)");
    if (pipe(out) != 0) return;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 2);
        close(out[0]);
        close(out[1]);
        execl("/proc/self/exe", "demo", "deadlock", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    ssize_t got, have = 0;
    while (have < (ssize_t)sizeof text - 1 &&
           (got = gort_read(out[0], text + have, sizeof text - 1 - (size_t)have)) > 0)
        have += got;
    text[have] = 0;
    gort_close(out[0]);
    int status = (int)gort_blocking(reap, &pid);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "gort:", 5) == 0 || strncmp(line, "goroutine ", 10) == 0)
            say("| %s", line);
    say("it exited with status %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* -------------------------------------------------------------------------------------------- */

static int tour(int argc, char **argv) {
    (void)argc, (void)argv;
    int64_t start = gort_now();
    printf("gort %s: goroutines for C, on %d P%s\n", GORT_VERSION, gort_maxprocs(0),
           gort_maxprocs(0) > 1 ? "s" : "");
    a_million();
    a_ping_pong();
    work_spreads();
    a_loop();
    connections();
    blocking_calls();
    a_deadlock();
    printf("\nThat was the tour: %.1f s. Next: examples/hello.c, README.md, man -l man/gort.7.\n",
           seconds(start));
    return 0;
}

int main(int argc, char **argv) {
    on_terminal = isatty(1);
    if (argc > 1 && strcmp(argv[1], "deadlock") == 0) return gort_main(deadlock, argc, argv);
    return gort_main(tour, argc, argv);
}
