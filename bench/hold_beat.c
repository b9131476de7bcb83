/*
 * The beat: a goroutine sleeps 1 ms at a time and writes down how late it woke up, beside others
 * that hold their threads in every way C code has.
 *
 * Computing kinds (loop malloc printf qsort avx) can only be stopped by a signal, and check their
 * own results: a register or a lock that the preemption lost shows as a wrong sum. `mutex` holds
 * a pthread mutex for 50 ms of computing while the others want it. Blocking kinds (usleep pipe
 * poll flock) sleep in calls that nobody announced; each must last as long as it says and never
 * return EINTR. The faults are counted, and the last line says how many.
 *
 * The goroutines are left running at the end: the end of main stops them wherever they are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hold.h"
#include "bench.h"

#include <fcntl.h>
#include <gort.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <unistd.h>

static _Atomic uint64_t faults, rounds;

static void fault_if(int wrong) {
    if (wrong) atomic_fetch_add(&faults, 1);
}

/* A round is over. The counter shows that the goroutines get on, and is the only thing they
 * share. */
static void round_over(void) { atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed); }

/* ---- computing ----------------------------------------------------------------------------- */

static void k_loop(void *arg) {
    for (;;) {}
}

static void k_malloc(void *arg) {
    enum { HELD = 64 };
    unsigned char *held[HELD] = {0};
    size_t size[HELD] = {0};
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    for (unsigned i = 0;; i++) {
        unsigned k = i % HELD;
        fault_if(held[k] && (held[k][0] != k || held[k][size[k] - 1] != k));
        free(held[k]);
        size[k] = 1 + next_random(&seed) % 4096;
        held[k] = must(malloc(size[k]));
        held[k][0] = held[k][size[k] - 1] = (unsigned char)k;
        round_over();
    }
}

static void k_printf(void *arg) {
    FILE *null = fopen("/dev/null", "w"); /* one each; the locks inside stdio are shared */
    char text[64];
    if (!null) exit(1);
    for (int i = 0;; i++) {
        double x = i / 8.0;
        fault_if(snprintf(text, sizeof text, "%d %.3f", i, x) < 0 || atoi(text) != i);
        fprintf(null, "%d %s %g\n", i, text, x);
        round_over();
    }
}

static void k_qsort(void *arg) {
    enum { N = 2000 };
    int64_t *v = must(calloc(N, sizeof *v));
    uint64_t seed = (uint64_t)(uintptr_t)v;
    for (;;) {
        uint64_t sum = 0;
        for (int i = 0; i < N; i++) sum += (uint64_t)(v[i] = next_random(&seed));
        qsort(v, N, sizeof *v, by_int64);
        for (int i = 0; i < N; i++) {
            sum -= (uint64_t)v[i];
            fault_if(i && v[i - 1] > v[i]);
        }
        fault_if(sum != 0);
        round_over();
    }
}

/* Sixteen lanes that live in vector registers over a long loop; each must come out as the scalar
 * computation says. Compiled for what the machine has, the widest chosen when it starts. */
#define LANES(width)                                                      \
    typedef uint32_t v##width __attribute__((vector_size(64)));           \
    v##width x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}; \
    for (int i = 0; i < 200000; i++) x = x * 1664525u + 1013904223u;      \
    memcpy(out, &x, sizeof x);

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void lanes_avx512(uint32_t *out) { LANES(512) }
__attribute__((target("avx2"))) static void lanes_avx2(uint32_t *out) { LANES(256) }
#endif
static void lanes_plain(uint32_t *out) { LANES(128) }

static void (*widest(void))(uint32_t *) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) return lanes_avx512;
    if (__builtin_cpu_supports("avx2")) return lanes_avx2;
#endif
    return lanes_plain;
}

static void k_avx(void *arg) {
    void (*lanes)(uint32_t *) = widest();
    uint32_t right[16], got[16];
    for (uint32_t k = 0; k < 16; k++) {
        right[k] = k + 1;
        for (int i = 0; i < 200000; i++) right[k] = right[k] * 1664525u + 1013904223u;
    }
    for (;;) {
        lanes(got);
        fault_if(memcmp(right, got, sizeof got) != 0);
        round_over();
    }
}

static void compute_for(int64_t ns) {
    for (int64_t until = now_ns() + ns; now_ns() < until;) {}
}

static void k_mutex(void *arg) {
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
    static int inside;
    for (;;) {
        fault_if(pthread_mutex_lock(&mu) != 0);
        fault_if(inside++ != 0);
        compute_for(50 * GORT_MS);
        inside--;
        fault_if(pthread_mutex_unlock(&mu) != 0);
        round_over();
    }
}

/* ---- blocked in the kernel ----------------------------------------------------------------- */

static void k_usleep(void *arg) {
    for (;;) {
        int64_t t0 = now_ns();
        fault_if(usleep(999999) != 0);
        fault_if(now_ns() - t0 < 999999 * GORT_US);
        round_over();
    }
}

static int to_pipe = -1; /* the sleeper writes a byte now and then */

static void k_pipe(void *arg) {
    char byte;
    for (int fd = *(int *)arg;;) {
        fault_if(read(fd, &byte, 1) != 1);
        round_over();
    }
}

static void k_poll(void *arg) {
    for (;;) {
        int64_t t0 = now_ns();
        fault_if(poll(NULL, 0, 1000) != 0);
        fault_if(now_ns() - t0 < 999 * GORT_MS);
        round_over();
    }
}

static void k_flock(void *arg) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/gort-hold.%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* one each: they exclude each other */
    if (fd < 0) exit(1);
    for (;;) {
        fault_if(flock(fd, LOCK_EX) != 0);
        fault_if(usleep(50000) != 0);
        fault_if(flock(fd, LOCK_UN) != 0);
        round_over();
    }
}

/* ---- the sleeper --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    gort_fn *fn;
} kinds[] = {{"loop", k_loop}, {"malloc", k_malloc}, {"printf", k_printf}, {"qsort", k_qsort},
             {"avx", k_avx},   {"mutex", k_mutex},   {"usleep", k_usleep}, {"pipe", k_pipe},
             {"poll", k_poll}, {"flock", k_flock}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static size_t sleep_and_note(int64_t until, int64_t *late, size_t room) {
    size_t n = 0;
    int64_t fed = now_ns();
    while (n < room) {
        int64_t t = now_ns();
        if (t >= until) break;
        if (to_pipe >= 0 && t - fed > 100 * GORT_MS) {
            fault_if(write(to_pipe, "x", 1) != 1);
            fed = t;
        }
        gort_sleep(GORT_MS);
        late[n++] = now_ns() - t - GORT_MS;
    }
    return n;
}

static int measure(const char *kind, int64_t ns) {
    size_t room = (size_t)(ns / GORT_MS) + 1;
    int64_t *late = must(calloc(room, sizeof *late));
    char name[64];
    size_t n = sleep_and_note(now_ns() + ns, late, room);
    snprintf(name, sizeof name, "beat_%s_late", kind);
    report_late(name, late, n);
    snprintf(name, sizeof name, "beat_%s_rounds", kind);
    report(name, (double)atomic_load(&rounds), "rounds");
    snprintf(name, sizeof name, "beat_%s_faults", kind);
    report(name, (double)atomic_load(&faults), "faults");
    free(late);
    return atomic_load(&faults) != 0;
}

int beat(const char *kind, int64_t ns, int goroutines) {
    int k = 0, ends[2] = {-1, -1};
    while (k < KINDS && strcmp(kind, kinds[k].name)) k++;
    if (k == KINDS) {
        fprintf(stderr, "hold: no such kind: %s\n", kind);
        return 2;
    }
    if (!strcmp(kind, "pipe")) {
        if (pipe(ends)) return 1;
        to_pipe = ends[1];
    }
    for (int i = 0; i < goroutines; i++)
        if (gort_go(kinds[k].fn, ends)) return 1;
    int status = measure(kind, ns);
    if (!strcmp(kind, "flock")) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/gort-hold.%d", (int)getpid());
        unlink(path);
    }
    return status;
}
