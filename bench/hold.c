/*
 * Nothing holds up the others: measurements of blocking calls and preemption.
 *
 *     hold blocking [N]            1,000 goroutines in gort_blocking(usleep 10 ms), and as many
 *                                  pthreads doing it; the threads that a second round has to make
 *     hold enter [N]               enter + exit of a system call over the bare call
 *     hold share [SECONDS] [N]     N (1,000) CPU-bound goroutines: least and greatest share
 *     hold tax [SECONDS]           two CPU-bound goroutines on one P: CPU lost against a thread
 *     hold beat KIND [SECONDS] [N] the lateness of a 1 ms sleeper beside N (2) goroutines that do
 *                                  KIND: loop malloc printf qsort avx mutex usleep pipe poll flock
 *     WORKERS=n                    the number of Ps; blocking and share want 2, tax and beat 1
 *
 * Prints `name value unit` as the others do. What the goroutines of `beat` compute is checked
 * while they are interrupted everywhere, and a system call that returns EINTR is counted: either
 * is status 1, since a preemption that is seen is worse than none.
 *
 * hold_beat.c has the kinds, this file the rest.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"
#include "hold.h"

#include <gort.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *arguments[4]; /* behind the subcommand */

static double argument(int i, double preset) {
    return arguments[i] && atof(arguments[i]) > 0 ? atof(arguments[i]) : preset;
}

/* ---- blocking ------------------------------------------------------------------------------ */

static long nap(void *arg) { return usleep(10000); }

static void napper(void *arg) { gort_blocking(nap, NULL); }

static void *thread_napper(void *arg) {
    usleep(10000);
    return NULL;
}

static double naps_gort(int n) {
    gort_wg wg = {0};
    int64_t t0 = now_ns();
    for (int i = 0; i < n; i++)
        if (gort_wg_go(&wg, napper, NULL)) exit(1);
    gort_wg_wait(&wg);
    return (double)(now_ns() - t0) / 1e6;
}

static double naps_threads(int n) {
    pthread_t *th = must(calloc((size_t)n, sizeof *th));
    int64_t t0 = now_ns();
    for (int i = 0; i < n; i++)
        if (pthread_create(&th[i], NULL, thread_napper, NULL)) exit(1);
    for (int i = 0; i < n; i++) pthread_join(th[i], NULL);
    free(th);
    return (double)(now_ns() - t0) / 1e6;
}

static int h_blocking(int argc, char **argv) {
    int n = (int)argument(0, 1000);
    gort_stats before, after;
    double threads = naps_threads(n), first = naps_gort(n);
    gort_stats_read(&before);
    double second = naps_gort(n);
    gort_stats_read(&after);
    report("hold_blocking", first, "ms");
    report("hold_blocking_again", second, "ms");
    report("hold_blocking_pthread", threads, "ms");
    report("hold_blocking_ratio", first / threads, "x");
    report("hold_blocking_new_threads", (double)(after.threads_created - before.threads_created),
           "threads");
    return 0;
}

/* ---- enter and exit ------------------------------------------------------------------------ */

static double per_call(int64_t n, int announced) {
    int64_t t0 = now_ns();
    if (announced)
        for (int64_t i = 0; i < n; i++) {
            gort_enter_syscall();
            syscall(SYS_getppid);
            gort_exit_syscall();
        }
    else
        for (int64_t i = 0; i < n; i++) syscall(SYS_getppid);
    return (double)(now_ns() - t0) / (double)n;
}

/* Rounds of both in turn, the best of each: a disturbance only ever adds. */
static int h_enter(int argc, char **argv) {
    int64_t n = (int64_t)argument(0, 2000000) / 10;
    double bare = 1e9, both = 1e9;
    for (int i = 0; i < 10; i++) {
        double b = per_call(n, 0), a = per_call(n, 1);
        if (b < bare) bare = b;
        if (a < both) both = a;
    }
    report("hold_syscall_bare", bare, "ns/op");
    report("hold_syscall_announced", both, "ns/op");
    report("hold_enter_exit", both - bare, "ns/op");
    return 0;
}

/* ---- fair shares --------------------------------------------------------------------------- */

struct counter {
    _Alignas(64) volatile uint64_t n;
};

static volatile int counting = 1;

/* One function for goroutines and threads alike, and a chain of multiplications in a register: how
 * fast a loop over memory runs depends on where it was placed more than on what is measured. */
__attribute__((noinline)) static void computes(void *arg) {
    struct counter *c = arg;
    uint64_t x = 1;
    while (counting) {
        for (int i = 0; i < 100; i++) {
            x = x * UINT64_C(6364136223846793005) + 1;
            __asm__ volatile("" : "+r"(x));
        }
        c->n++;
    }
}

static int h_share(int argc, char **argv) {
    double seconds = argument(0, 30);
    int n = (int)argument(1, 1000);
    struct counter *c = must(aligned_alloc(64, (size_t)n * sizeof *c));
    uint64_t least = UINT64_MAX, most = 0, sum = 0;
    memset(c, 0, (size_t)n * sizeof *c);
    for (int i = 0; i < n; i++)
        if (gort_go(computes, &c[i])) exit(1);
    gort_sleep((int64_t)(seconds * 1e9));
    for (int i = 0; i < n; i++) {
        uint64_t v = c[i].n;
        sum += v;
        if (v < least) least = v;
        if (v > most) most = v;
    }
    double fair = (double)sum / n;
    report("hold_share_least", (double)least / fair, "of the fair share");
    report("hold_share_most", (double)most / fair, "of the fair share");
    counting = 0;
    return 0;
}

/* ---- the tax ------------------------------------------------------------------------------- */

/*
 * Work done per second of CPU: by a plain thread with no runtime in the process, then by two
 * goroutines that share a P and are preempted in turn; in the latter the CPU of the whole process
 * counts, signals, futexes and the monitor included. Rounds of both alternate, and the best of
 * each counts, since the machine's clock frequency and its other tenants change meanwhile.
 */
static double tax_seconds;
static struct counter work[2];

static void *thread_computes(void *arg) {
    computes(arg);
    return NULL;
}

static double rate_thread(void) {
    pthread_t th;
    counting = 1;
    work[0].n = 0;
    double c0 = cpu_seconds();
    if (pthread_create(&th, NULL, thread_computes, &work[0])) exit(1);
    usleep((useconds_t)(tax_seconds * 1e6));
    counting = 0;
    pthread_join(th, NULL);
    return (double)work[0].n / (cpu_seconds() - c0);
}

static double rate, wall; /* of the last round of goroutines */

static int two_compute(int argc, char **argv) {
    gort_wg wg = {0};
    counting = 1;
    work[0].n = work[1].n = 0;
    double c0 = cpu_seconds();
    int64_t t0 = now_ns();
    gort_wg_go(&wg, computes, &work[0]);
    gort_wg_go(&wg, computes, &work[1]);
    gort_sleep((int64_t)(tax_seconds * 1e9));
    counting = 0;
    gort_wg_wait(&wg);
    double cpu = cpu_seconds() - c0;
    rate = (double)(work[0].n + work[1].n) / cpu;
    wall = cpu / ((double)(now_ns() - t0) / 1e9);
    return 0;
}

static int h_tax(void) {
    double bare = 0, shared = 0, busy = 0;
    tax_seconds = argument(0, 10) / 10;
    for (int i = 0; i < 5; i++) {
        double b = rate_thread();
        if (gort_main(two_compute, 0, NULL)) return 1;
        if (b > bare) bare = b;
        if (rate > shared) shared = rate;
        if (wall > busy) busy = wall;
    }
    report("hold_tax", (1 - shared / bare) * 100, "%");
    report("hold_tax_busy", busy, "CPUs");
    return 0;
}

/* ---- the beat ------------------------------------------------------------------------------ */

static int h_beat(int argc, char **argv) {
    const char *kind = arguments[0] ? arguments[0] : "loop";
    double seconds = argument(1, 2);
    return beat(kind, (int64_t)(seconds * 1e9), (int)argument(2, 2));
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct {
    const char *name, *procs;
    int (*run)(int, char **);
} measures[] = {{"blocking", "2", h_blocking},
                {"enter", "1", h_enter},
                {"share", "2", h_share},
                {"beat", "1", h_beat},
                {"tax", "1", NULL}};
enum { MEASURES = sizeof measures / sizeof *measures };

static int start(int i, int argc, char **argv) {
    const char *workers = getenv("WORKERS");
    setenv("GORT_MAXPROCS", workers && atoi(workers) > 0 ? workers : measures[i].procs, 1);
    if (!measures[i].run) return h_tax();
    int status = gort_main(measures[i].run, argc, argv);
    if (status < 0) fprintf(stderr, "hold: gort_main: %s\n", strerror(-status));
    return status < 0 ? 1 : status;
}

int main(int argc, char **argv) {
    for (int i = 2; i < argc && i < 6; i++) arguments[i - 2] = argv[i];
    for (int i = 0; i < MEASURES && argc > 1; i++)
        if (!strcmp(argv[1], measures[i].name)) return start(i, argc, argv);
    fprintf(stderr, "usage: hold blocking|enter|share|tax|beat [...]\n");
    return 2;
}
