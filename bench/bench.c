/*
 * The micro-benchmarks: gort's side of the comparison with Go.
 *
 *     bench NAME [N]                    prints lines `name value unit`
 *     bench all                         every workload in turn, but for preempt
 *     bench echo ADDR | http ADDR       servers, for bench/load (see serve.c)
 *     bench scale_g | scale_p [N]       curves over goroutines and Ps (see scale.c)
 *     WORKERS=1|2                       the number of Ps
 *
 * Its twin in Go (bench/go) defines the workloads, their names, their default counts and what the
 * clock covers; this file says the same in C through the public header only, so that it measures
 * what a program gets and nothing a program could not write. N replaces the default count.
 *
 * Where the languages differ, the rule is: what a C programmer would naturally write, and never
 * less work than in Go. A closure that captures variables by reference becomes a struct on the
 * starter's stack where the starter outlives the goroutine (fib), and gort_go_copy where `go f(x,
 * y)` copies (skynet, sieve). Go's int is 64 bits wide, so channels carry int64_t.
 *
 * The workloads that end with goroutines still parked (sieve) or spinning (preempt) leave them,
 * as Go does: the end of main is theirs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"
#include "workloads.h"

#include <gort.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

int64_t arg_n;
static volatile int64_t sink;

int64_t count(int64_t preset) { return arg_n > 0 ? arg_n : preset; }

void go(gort_fn *fn, void *arg) {
    int err = gort_go(fn, arg);
    if (err) wrong("gort_go", -err);
}

_Noreturn void wrong(const char *what, int64_t value) {
    fprintf(stderr, "bench: %s: wrong: %lld\n", what, (long long)value);
    exit(1);
}

gort_chan *ints(size_t capacity) { return must(gort_chan_new(sizeof(int64_t), capacity)); }

/* ---- 1. yielding --------------------------------------------------------------------------- */

struct yielders {
    gort_wg wg;
    int64_t n;
};

static void yielder(void *arg) {
    struct yielders *y = arg;
    for (int64_t n = y->n; n > 0; n--) gort_yield();
    gort_wg_done(&y->wg);
}

static void yield_among(const char *name, int64_t g, int64_t n) {
    struct yielders y = {.n = n};
    gort_wg_add(&y.wg, (int)g);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < g; i++) go(yielder, &y);
    gort_wg_wait(&y.wg);
    report_nsop(name, t0, g * n);
}

static void b_yield(void) { yield_among("yield", 2, count(3000000)); }
static void b_yield1k(void) { yield_among("yield1k", 1000, count(5000)); }

/* ---- 2. starting and ending ---------------------------------------------------------------- */

static void only_done(void *wg) { gort_wg_done(wg); }

void spawn_in_batches(const char *name, int64_t total, int64_t batch) {
    int64_t t0 = now_ns();
    for (int64_t done = 0; done < total; done += batch) {
        gort_wg wg = {0};
        gort_wg_add(&wg, (int)batch);
        for (int64_t i = 0; i < batch; i++) go(only_done, &wg);
        gort_wg_wait(&wg);
    }
    report_nsop(name, t0, total);
}

static void b_spawn(void) { spawn_in_batches("spawn", count(1000000), 1000); }
static void b_spawn_burst(void) {
    int64_t n = count(1000000);
    spawn_in_batches("spawn_burst", n, n);
}

/* ---- 3 to 6. channels ---------------------------------------------------------------------- */

struct pair {
    gort_chan *a, *b;
};

static void ponger(void *arg) {
    struct pair p = *(struct pair *)arg;
    int64_t v;
    while (!gort_chan_recv(p.a, &v)) gort_chan_send(p.b, &v);
    gort_chan_release(p.a);
    gort_chan_release(p.b);
}

static void b_pingpong(void) {
    int64_t n = count(1000000), back;
    struct pair p = {ints(0), ints(0)};
    gort_chan_retain(p.a);
    gort_chan_retain(p.b);
    if (gort_go_copy(ponger, &p, sizeof p)) wrong("pingpong", 0);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        gort_chan_send(p.a, &i);
        gort_chan_recv(p.b, &back);
    }
    report_nsop("pingpong", t0, n);
    if (back != n - 1) wrong("pingpong", back);
    gort_chan_close(p.a);
    gort_chan_release(p.a);
    gort_chan_release(p.b);
}

struct stream {
    gort_chan *c;
    int64_t n;
    gort_wg *wg;
    _Atomic int64_t sum;
};

static void produce(void *arg) {
    struct stream *s = arg;
    for (int64_t i = 0; i < s->n; i++) gort_chan_send(s->c, &i);
    if (s->wg) gort_wg_done(s->wg);
    else gort_chan_close(s->c);
}

static void consume(void *arg) {
    struct stream *s = arg;
    int64_t v, sum = 0;
    while (!gort_chan_recv(s->c, &v)) sum += v;
    atomic_fetch_add(&s->sum, sum);
    gort_wg_done(s->wg);
}

static void b_chan_buf(void) {
    int64_t n = count(5000000), v, sum = 0;
    struct stream s = {.c = ints(128), .n = n};
    int64_t t0 = now_ns();
    go(produce, &s);
    while (!gort_chan_recv(s.c, &v)) sum += v;
    report_nsop("chan_buf", t0, n);
    if (sum != n * (n - 1) / 2) wrong("chan_buf", sum);
    gort_chan_release(s.c);
}

static void b_chan_mpmc(void) {
    int64_t n = count(4000000), each = n / 4;
    gort_wg pw = {0}, cw = {0};
    struct stream out = {.c = ints(128), .n = each, .wg = &pw};
    struct stream in = {.c = out.c, .wg = &cw};
    gort_wg_add(&pw, 4);
    gort_wg_add(&cw, 4);
    int64_t t0 = now_ns();
    for (int i = 0; i < 4; i++) go(produce, &out);
    for (int i = 0; i < 4; i++) go(consume, &in);
    gort_wg_wait(&pw);
    gort_chan_close(out.c);
    gort_wg_wait(&cw);
    report_nsop("chan_mpmc", t0, n);
    if (in.sum != 4 * (each * (each - 1) / 2)) wrong("chan_mpmc", in.sum);
    gort_chan_release(out.c);
}

static void b_select(void) {
    int64_t n = count(2000000) & ~INT64_C(1), v, w, sum = 0;
    gort_wg wg = {0};
    struct stream a = {.c = ints(0), .n = n / 2, .wg = &wg},
                  b = {.c = ints(0), .n = n / 2, .wg = &wg};
    gort_wg_add(&wg, 2); /* so that they are through with a and b, outside the clock */
    int64_t t0 = now_ns();
    go(produce, &a);
    go(produce, &b);
    for (int64_t i = 0; i < n; i++) {
        switch (gort_select_of(gort_on_recv(a.c, &v), gort_on_recv(b.c, &w))) {
        case 0: sum += v; break;
        case 1: sum += w; break;
        }
    }
    report_nsop("select", t0, n);
    if (sum != (n / 2) * (n / 2 - 1)) wrong("select", sum);
    gort_wg_wait(&wg);
    gort_chan_release(a.c);
    gort_chan_release(b.c);
}

/* ---- 7. the mutex -------------------------------------------------------------------------- */

struct lockers {
    gort_mutex mu;
    gort_wg wg;
    int64_t each, cnt;
    int yields;
};

static void locker(void *arg) {
    struct lockers *l = arg;
    for (int64_t n = l->each; n > 0; n--) {
        gort_mutex_lock(&l->mu);
        l->cnt++;
        if (l->yields) gort_yield();
        gort_mutex_unlock(&l->mu);
    }
    gort_wg_done(&l->wg);
}

static void mutex_among(const char *name, int g, int64_t n, int yields) {
    struct lockers l = {.each = n / g, .yields = yields};
    gort_wg_add(&l.wg, g);
    int64_t t0 = now_ns();
    for (int i = 0; i < g; i++) go(locker, &l);
    gort_wg_wait(&l.wg);
    report_nsop(name, t0, n);
    if (l.cnt != n / g * g) wrong(name, l.cnt);
}

static void b_mutex(void) { mutex_among("mutex", 8, count(8000000), 0); }
static void b_mutex_uncontended(void) { mutex_among("mutex_uncontended", 1, count(30000000), 0); }
static void b_mutex_handoff(void) { mutex_among("mutex_handoff", 8, count(800000), 1); }

/* ---- 8 to 10. trees and pipelines ---------------------------------------------------------- */

struct sky {
    gort_chan *c;
    int64_t num, size, div;
};

static void skynet(void *arg) {
    const struct sky *s = arg;
    if (s->size == 1) {
        gort_chan_send(s->c, &s->num);
        return;
    }
    gort_chan *rc = ints(0);
    int64_t sum = 0, v, part = s->size / s->div;
    for (int64_t i = 0; i < s->div; i++) {
        struct sky child = {rc, s->num + i * part, part, s->div};
        if (gort_go_copy(skynet, &child, sizeof child)) wrong("skynet", i);
    }
    for (int64_t i = 0; i < s->div; i++) {
        gort_chan_recv(rc, &v);
        sum += v;
    }
    gort_chan_release(rc);
    gort_chan_send(s->c, &sum);
}

static void b_skynet(void) {
    int64_t n = count(1000000), sum;
    struct sky root = {ints(0), 0, n, 10};
    int64_t t0 = now_ns();
    if (gort_go_copy(skynet, &root, sizeof root)) wrong("skynet", 0);
    gort_chan_recv(root.c, &sum);
    report_ms("skynet", t0);
    if (sum != n * (n - 1) / 2) wrong("skynet (a power of ten only)", sum);
    gort_chan_release(root.c);
}

struct filter {
    gort_chan *in, *out;
    int64_t prime;
};

static void generate(void *out) {
    for (int64_t i = 2;; i++) gort_chan_send(out, &i);
}

static void filter(void *arg) {
    const struct filter f = *(const struct filter *)arg;
    for (int64_t i;;) {
        gort_chan_recv(f.in, &i);
        if (i % f.prime) gort_chan_send(f.out, &i);
    }
}

static void b_sieve(void) {
    int64_t n = count(2000), p = 0;
    int64_t t0 = now_ns();
    gort_chan *ch = ints(0);
    go(generate, ch);
    for (int64_t i = 0; i < n; i++) {
        gort_chan_recv(ch, &p);
        struct filter f = {ch, ints(0), p};
        if (gort_go_copy(filter, &f, sizeof f)) wrong("sieve", i);
        ch = f.out;
    }
    report_ms("sieve", t0);
    if (n == 2000 && p != 17389) wrong("sieve", p);
}

struct fib {
    int64_t n, out;
    gort_wg *wg;
};

static int64_t fib(int64_t n);

static void fib_go(void *arg) {
    struct fib *f = arg;
    f->out = fib(f->n);
    gort_wg_done(f->wg);
}

static int64_t fib(int64_t n) {
    if (n < 2) return n;
    gort_wg wg = {0};
    struct fib a = {n - 1, 0, &wg}, b = {n - 2, 0, &wg};
    gort_wg_add(&wg, 2);
    go(fib_go, &a);
    go(fib_go, &b);
    gort_wg_wait(&wg);
    return a.out + b.out;
}

static void b_fib(void) {
    int64_t n = count(27);
    int64_t t0 = now_ns();
    int64_t r = fib(n);
    report_ms("fib", t0);
    if (n == 27 && r != 196418) wrong("fib", r);
    sink = r;
}

/* ---- 11, 12. sleepers and parked goroutines ------------------------------------------------ */

struct sleeper {
    int64_t d, late;
    gort_wg *wg;
};

static void sleeper(void *arg) {
    struct sleeper *s = arg;
    int64_t t = now_ns();
    gort_sleep(s->d);
    s->late = now_ns() - t - s->d;
    gort_wg_done(s->wg);
}

static void b_timers(void) {
    int64_t n = count(100000);
    struct sleeper *s = must(calloc((size_t)n, sizeof *s));
    int64_t *late = must(calloc((size_t)n, sizeof *late));
    uint64_t seed = 1;
    gort_wg wg = {0};
    for (int64_t i = 0; i < n; i++)
        s[i] = (struct sleeper){(1 + next_random(&seed) % 1000) * GORT_MS, 0, &wg};
    gort_wg_add(&wg, (int)n);
    double c0 = cpu_seconds();
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) go(sleeper, &s[i]);
    gort_wg_wait(&wg);
    report_ms("timers_wall", t0);
    report("timers_cpu", cpu_seconds() - c0, "s");
    for (int64_t i = 0; i < n; i++) late[i] = s[i].late;
    report_late("timers_late", late, (size_t)n);
    free(late);
    free(s);
}

struct parked {
    gort_chan *c;
    gort_wg wg;
    _Atomic int64_t started;
};

static void parked(void *arg) {
    struct parked *p = arg;
    int64_t v;
    atomic_fetch_add(&p->started, 1);
    gort_chan_recv(p->c, &v);
    gort_wg_done(&p->wg);
}

static void b_memory(void) {
    int64_t n = count(100000);
    malloc_trim(0);
    long r0 = proc_field("VmRSS");
    struct parked p = {.c = ints(0)};
    gort_wg_add(&p.wg, (int)n);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) go(parked, &p);
    while (atomic_load(&p.started) < n) gort_yield();
    report_nsop("memory_create", t0, n);
    gort_sleep(20 * GORT_MS);
    report("memory_rss", (double)(proc_field("VmRSS") - r0) * 1024 / (double)n, "B/goroutine");
    t0 = now_ns();
    gort_chan_close(p.c);
    gort_wg_wait(&p.wg);
    report_nsop("memory_teardown", t0, n);
    gort_chan_release(p.c);
}

/* ---- 14 to 16. preemption and system calls ------------------------------------------------- */

static void spin(void *arg) {
    for (;;) {}
}

static void b_preempt(void) {
    int64_t n = count(300);
    int64_t *late = must(calloc((size_t)n, sizeof *late));
    gort_maxprocs(1);
    go(spin, NULL);
    for (int64_t i = 0; i < n; i++) {
        int64_t t = now_ns();
        gort_sleep(GORT_MS);
        late[i] = now_ns() - t - GORT_MS;
    }
    report_late("preempt_late", late, (size_t)n);
    free(late);
}

static long nap(void *arg) {
    struct timespec ts = {0, 10000000};
    return syscall(SYS_nanosleep, &ts, NULL);
}

/* Surely long: what gort_blocking is for. */
static void napper(void *wg) {
    gort_blocking(nap, NULL);
    gort_wg_done(wg);
}

/* As Go's Syscall: the monitor has to find out that it is long. */
static void short_napper(void *wg) {
    gort_enter_syscall();
    nap(NULL);
    gort_exit_syscall();
    gort_wg_done(wg);
}

static void naps(const char *name, const char *threads, gort_fn *fn) {
    int64_t n = count(1000);
    gort_wg wg = {0};
    gort_wg_add(&wg, (int)n);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) go(fn, &wg);
    gort_wg_wait(&wg);
    report_ms(name, t0);
    report(threads, (double)proc_field("Threads"), "threads");
}

static void b_syscall(void) { naps("syscall", "syscall_threads", napper); }
static void b_syscall_short(void) { naps("syscall_short", "syscall_short_threads", short_napper); }

static void b_getpid(void) {
    int64_t n = count(5000000);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        gort_enter_syscall();
        syscall(SYS_getppid);
        gort_exit_syscall();
    }
    report_nsop("syscall_enter_exit", t0, n);
    t0 = now_ns();
    for (int64_t i = 0; i < n; i++) syscall(SYS_getppid);
    report_nsop("syscall_raw", t0, n);
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct workload {
    const char *name;
    void (*run)(void);
    int in_all;
} workloads[] = {
    {"yield", b_yield, 1},
    {"yield1k", b_yield1k, 1},
    {"spawn", b_spawn, 1},
    {"spawn_burst", b_spawn_burst, 1},
    {"pingpong", b_pingpong, 1},
    {"chan_buf", b_chan_buf, 1},
    {"chan_mpmc", b_chan_mpmc, 1},
    {"select", b_select, 1},
    {"mutex", b_mutex, 1},
    {"mutex_uncontended", b_mutex_uncontended, 1},
    {"mutex_handoff", b_mutex_handoff, 1},
    {"skynet", b_skynet, 1},
    {"sieve", b_sieve, 1},
    {"fib", b_fib, 1},
    {"timers", b_timers, 1},
    {"memory", b_memory, 1},
    {"syscall", b_syscall, 1},
    {"getpid", b_getpid, 1},
    {"syscall_short", b_syscall_short, 0},
    {"preempt", b_preempt, 0},
    {"scale_g", scale_goroutines, 0},
    {"scale_p", scale_procs, 0},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static int usage(void) {
    fprintf(stderr, "usage: bench NAME [N] | all | echo ADDR | http ADDR; names:");
    for (int i = 0; i < WORKLOADS; i++) fprintf(stderr, " %s", workloads[i].name);
    fprintf(stderr, "\n");
    return 2;
}

static int run(int argc, char **argv) {
    if (argc < 2) return usage();
    const char *name = argv[1], *arg = argc > 2 ? argv[2] : "";
    if (!strcmp(name, "echo")) return serve_echo(arg);
    if (!strcmp(name, "http") || !strcmp(name, "httpraw")) return serve_http(arg);
    int all = !strcmp(name, "all"), found = 0;
    arg_n = atoll(arg);
    for (int i = 0; i < WORKLOADS; i++) {
        if (all ? !workloads[i].in_all : strcmp(name, workloads[i].name)) continue;
        workloads[i].run();
        found = 1;
    }
    return found ? 0 : usage();
}

int main(int argc, char **argv) {
    const char *workers = getenv("WORKERS");
    if (workers && atoi(workers) > 0) setenv("GORT_MAXPROCS", workers, 1);
    int status = gort_main(run, argc, argv);
    if (status < 0) fprintf(stderr, "bench: gort_main: %s\n", strerror(-status));
    return status < 0 ? 1 : status;
}
