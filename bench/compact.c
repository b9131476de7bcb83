/*
 * Compact stacks in figures. Built with -fsplit-stack and linked with libgort_split.a.
 *
 *   compact mode            which form this program has: hybrid or compact
 *   compact memory [N]      N goroutines parked on a channel: creation, bytes each, waking
 *   compact check           what the check in a prologue costs a call
 *   compact split           what a call costs that crosses into the next segment, again and again
 *   compact recurse MB      that deep, printf at the bottom, and what is left of it afterwards
 *   compact echo [N]        N idle echo connections, one goroutine each: what they add to the
 *                           server
 *   compact park N          as memory, with a progress bar: `make bench-10m`
 *
 * The names of the figures of `memory` are those of the Go twin.
 */
#include "bench.h"

#include <gort.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static gort_stats stats(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s;
}

/* ---- many, parked --------------------------------------------------------------------------- */

static gort_chan *gate;
static int64_t parked, woken;

static void waiter(void *arg) {
    __atomic_add_fetch(&parked, 1, __ATOMIC_RELAXED);
    gort_chan_recv(gate, NULL);
    __atomic_add_fetch(&woken, 1, __ATOMIC_RELAXED);
}

static void bar(const char *what, int64_t done, int64_t all) {
    static const char hashes[] = "########################################";
    static int shown = -1;
    int n = (int)(done * 40 / all);
    /* into a file: every tenth, a line each */
    if (n == shown || (!isatty(1) && n % 4 != 0)) return;
    shown = n;
    printf(isatty(1) ? "\r" : "");
    printf("%-8s [%-40.*s] %3d %%  %.1f GiB ", what, n, hashes, (int)(done * 100 / all),
           (double)proc_field("VmRSS") / 1048576);
    if (done == all || !isatty(1)) printf("\n");
    fflush(stdout);
}

static void create(int64_t n, int show) {
    for (int64_t i = 0; i < n; i++) {
        if (gort_go(waiter, NULL) != 0) {
            fprintf(stderr, "no memory for goroutine %lld\n", (long long)i);
            exit(1);
        }
        if (show && i % 65536 == 0) bar("create", i, n);
    }
    while (__atomic_load_n(&parked, __ATOMIC_RELAXED) < n) gort_yield();
    if (show) bar("create", n, n);
}

static void wake(int64_t n, int show) {
    gort_chan_close(gate);
    while (__atomic_load_n(&woken, __ATOMIC_RELAXED) < n || gort_count() > 1) {
        gort_yield();
        if (show) bar("wake", __atomic_load_n(&woken, __ATOMIC_RELAXED), n + (woken < n));
    }
    if (show) bar("wake", n, n);
}

/* Everything counted: resident memory and the page tables under it. */
static double bytes_each(long rss, long tables, int64_t n) {
    return (double)(proc_field("VmRSS") - rss + proc_field("VmPTE") - tables) * 1024 / (double)n;
}

static int memory(int64_t n, int show) {
    gate = gort_chan_new(0, 0);
    long rss = proc_field("VmRSS"), tables = proc_field("VmPTE");
    int64_t t0 = now_ns();
    create(n, show);
    report_nsop("memory_create", t0, n);
    gort_sleep(20 * GORT_MS);
    report("memory_rss", bytes_each(rss, tables, n), "B/goroutine");
    t0 = now_ns();
    wake(n, show);
    report_nsop("memory_teardown", t0, n);
    report("memory_peak", (double)proc_field("VmHWM") / 1048576, "GiB resident");
    return woken == n ? 0 : 1;
}

/* After the burst: the share of the peak that is resident once the monitor has had its time. */
static void after_burst(void) {
    long peak = proc_field("VmHWM"), left = peak;
    int64_t until = gort_now() + 15 * GORT_SEC;
    while (left * 10 > peak && gort_now() < until) {
        gort_sleep(100 * GORT_MS);
        left = proc_field("VmRSS");
    }
    report("memory_left", 100.0 * (double)left / (double)peak, "% of the peak");
    report("memory_left_after", (double)(15 * GORT_SEC - (until - gort_now())) / 1e9, "s");
}

/* ---- calls ---------------------------------------------------------------------------------- */

#define CALLS 100000000

static NOINLINE long checked(long x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

__attribute__((no_split_stack)) static NOINLINE long unchecked(long x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

/* Six calls a round, so that the loop itself is little. */
#define ROUNDS(f) \
    for (long i = 0; i < CALLS / 6; i++) x = f(f(f(f(f(f(x))))))

static double best_of(double a, double b) { return a == 0 || b < a ? b : a; }

static void check(void *done) {
    double with = 0, without = 0;
    for (int round = 0; round < 5; round++) {
        long x = 0;
        int64_t t0 = now_ns();
        ROUNDS(checked);
        int64_t t1 = now_ns();
        ROUNDS(unchecked);
        int64_t t2 = now_ns();
        with = best_of(with, (double)(t1 - t0) / CALLS);
        without = best_of(without, (double)(t2 - t1) / CALLS);
    }
    report("check_call", with, "ns");
    report("check_call_without", without, "ns");
    report("check_cost", with - without, "ns/call");
    gort_wg_done(done);
}

static NOINLINE double time_calls(uintptr_t *at) {
    double best = 0;
    volatile char wide[160]; /* wider than a step of descend(): somewhere the guard falls into it */
    wide[0] = 0;
    for (int round = 0; round < 7; round++) {
        long x = 0;
        int64_t t0 = gort_now();
        for (long i = 0; i < 1000000; i++) x = checked(x);
        best = best_of(best, (double)(gort_now() - t0) / 1e6);
    }
    *at = (uintptr_t)wide;
    return best;
}

static double crossing, near;

static NOINLINE void descend(int depth) {
    volatile char room[48];
    room[0] = 1;
    uintptr_t at, here = (uintptr_t)__builtin_frame_address(0);
    double t = time_calls(&at);
    /* time_calls itself may be on the next segment: not what is meant */
    int apart = here - at > 65536;
    if (!apart && (near == 0 || t < near)) near = t;
    if (!apart && t > crossing) crossing = t;
    if (depth > 0) descend(depth - 1);
    room[0] = room[0] + 1;
}

static NOINLINE void report_split(void) {
    report("split_call", near, "ns");
    report("split_call_crossing", crossing, "ns");
    report("split_cost", crossing - near, "ns/call");
}

/* Nothing of libc is called in here: its segments would be too large. */
static void split(void *done) {
    descend(60); /* a few segments deep: at some depth `checked` is the one that crosses */
    report_split();
    gort_wg_done(done);
}

/* ---- depth ---------------------------------------------------------------------------------- */

static long bottom_rss;

static NOINLINE void at_the_bottom(void) {
    bottom_rss = proc_field("VmRSS");
    printf("bottom: printf with %d %s %.1f\n", 3, "arguments", 2.5);
}

static NOINLINE long down(long bytes, const char *outer) {
    volatile char frame[900];
    frame[0] = (char)bytes;
    if (bytes <= 0) {
        at_the_bottom();
        return outer[0];
    }
    return down(bytes - 900, (const char *)frame) + frame[0];
}

static void recurse(void *arg) {
    long bytes = *(long *)arg;
    char first = 1;
    down(bytes, &first);
    gort_stats s = stats();
    report("recurse_bottom_rss", (double)bottom_rss / 1024, "MB");
    report("recurse_segments_left", (double)s.stack_segments, "segments");
    report("recurse_rss_left", (double)proc_field("VmRSS") / 1024, "MB");
    *(long *)arg = -1;
}

/* ---- idle connections ------------------------------------------------------------------------ */

typedef struct Conn {
    int fd;
} Conn;

static int64_t serving;

static void serve(void *arg) {
    int fd = ((Conn *)arg)->fd;
    char buf[64];
    ssize_t n;
    __atomic_add_fetch(&serving, 1, __ATOMIC_RELAXED);
    while ((n = gort_read(fd, buf, sizeof buf)) > 0) gort_write_full(fd, buf, (size_t)n);
    gort_close(fd);
}

/* The other end, a process of its own: connects, says one thing on each, and stays. */
static void clients(const char *addr, int n, int ready) {
    int *fd = calloc((size_t)n, sizeof *fd);
    char c = 'x';
    for (int i = 0; i < n; i++) {
        fd[i] = gort_dial(addr, GORT_FOREVER);
        if (fd[i] < 0 || gort_write(fd[i], &c, 1) != 1 || gort_read(fd[i], &c, 1) != 1) _exit(1);
    }
    if (write(ready, &c, 1) != 1) _exit(1);
    pause();
}

static int client_main(int argc, char **argv) {
    clients(argv[2], atoi(argv[3]), 1);
    return 0;
}

static int echo(int n, char *self) {
    char addr[64], count[16], c;
    int listener = gort_listen("127.0.0.1:0", 0), ready[2];
    if (listener < 0 || gort_local_addr(listener, addr, sizeof addr) != 0 || pipe(ready) != 0)
        return 1;
    snprintf(count, sizeof count, "%d", n);
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[1], 1);
        execl(self, self, "client", addr, count, (char *)NULL);
        _exit(127);
    }
    int first = gort_accept(listener, NULL, NULL); /* one, so that all code and tables are warm */
    gort_go_copy(serve, &(Conn){first}, sizeof(Conn));
    while (__atomic_load_n(&serving, __ATOMIC_RELAXED) < 1) gort_yield();
    long rss = proc_field("VmRSS");
    for (int i = 1; i < n; i++) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd < 0) return 1;
        gort_go_copy(serve, &(Conn){fd}, sizeof(Conn));
    }
    if (gort_read(ready[0], &c, 1) != 1) return 1;
    report("echo_connections", n, "idle");
    report("echo_rss", (double)(proc_field("VmRSS") - rss) / 1024, "MB");
    report("echo_segments", (double)stats().stack_segments, "segments");
    report("echo_rss_each", (double)(proc_field("VmRSS") - rss) * 1024 / n, "B");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}

/* ---- main ------------------------------------------------------------------------------------ */

static void in_goroutine(gort_fn *fn) {
    static gort_wg wg;
    gort_wg_add(&wg, 1);
    gort_go(fn, &wg);
    gort_wg_wait(&wg);
}

static int run(int argc, char **argv) {
    static const char *const modes[] = {"lazy", "hybrid", "compact"};
    const char *what = argc > 1 ? argv[1] : "mode";
    long n = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(what, "mode")) printf("%s\n", modes[stats().stack_mode]);
    else if (!strcmp(what, "memory")) return memory(n ? n : 1000000, 0);
    else if (!strcmp(what, "burst")) memory(n ? n : 1000000, 0), after_burst();
    else if (!strcmp(what, "park")) return memory(n ? n : 1000000, 1);
    else if (!strcmp(what, "check")) in_goroutine(check);
    else if (!strcmp(what, "split")) in_goroutine(split);
    else if (!strcmp(what, "echo")) return echo(n ? (int)n : 10000, argv[0]);
    else if (!strcmp(what, "client")) return client_main(argc, argv);
    else if (!strcmp(what, "recurse")) {
        long bytes = (n ? n : 10) << 20;
        gort_go(recurse, &bytes);
        while (__atomic_load_n(&bytes, __ATOMIC_ACQUIRE) >= 0) gort_sleep(GORT_MS);
    } else return 2;
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
