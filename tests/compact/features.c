/*
 * What code on a growing stack may do. Built with -fsplit-stack; argv[1] is the form of the stacks
 * that the linker leads to: 1 hybrid, 2 compact.
 *
 * Every part runs at many depths, so that each of its calls falls on the end of a segment once. For
 * that nothing on the way down may call libc, which would put it on a segment of 64 KB: so what is
 * wrong is counted, and looked at in the end.
 */
#include "../lib/test.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>

#define NOINLINE __attribute__((noinline))

static int mode;
static gort_wg wg;
static long wrong;
#define HOLDS(cond) (wrong += !(cond))

static uint64_t segments(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.stack_segments;
}

/* Calls fn at depths that differ by less than the smallest frame. */
static NOINLINE void at_depths(int n, void (*fn)(void)) {
    volatile char step[24];
    step[0] = 1;
    fn();
    if (n > 0) at_depths(n - 1, fn);
    HOLDS(step[0] == 1);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static NOINLINE double mixed(int a, double b, long c, float d, long e, long f, long g, double h,
                             long i, char j) {
    volatile char frame[40];
    frame[0] = 1;
    return a + b + (double)c + (double)d + (double)e + (double)f + (double)g + h + (double)i + j +
           frame[0];
}

static NOINLINE double variadic(int n, ...) {
    va_list ap;
    double sum = 0;
    va_start(ap, n);
    for (int i = 0; i < n; i++) sum += i % 2 ? va_arg(ap, double) : va_arg(ap, int);
    va_end(ap);
    return sum;
}

typedef struct Large {
    long v[70];
} Large;

static NOINLINE Large by_value(Large a, int k, double d, Large b) {
    for (int i = 0; i < 70; i++) a.v[i] += b.v[i] * k + (long)d;
    return a;
}

static Large one, two, three;

/* Frames that are not checked, and wider than a step of at_depths: at some depth the end of a
 * segment falls into them, and what they call is what crosses. */
static NOINLINE int call_mixed(void) {
    volatile char frame[140];
    frame[0] = 1;
    return mixed(1, 2.5, 3, 4.5f, 5, 6, 7, 8.5, 9, 10) == 57.5 && frame[0];
}

static NOINLINE int call_variadic(void) {
    volatile char frame[100];
    frame[0] = 1;
    return variadic(10, 1, 2.5, 3, 4.5, 5, 6.5, 7, 8.5, 9, 10.5) == 57.5 && frame[0];
}

static NOINLINE void call_by_value(void) { three = by_value(one, 3, 1.5, two); }

/* Calls libc, so it may be sent to a large segment; where there is room already it goes on in
 * place, with a copy of its arguments. */
static __attribute__((noipa)) long to_libc(int a, int b, int c, int d, int e, int f, long g,
                                           Large large, long h) {
    char text[200];
    snprintf(text, sizeof text, "%d %d %d %d %d %d %ld %ld %ld %ld", a, b, c, d, e, f, g,
             large.v[0], large.v[69], h);
    return strcmp(text, "1 2 3 4 5 6 7 8 9 10") == 0 ? (long)strlen(text) : 0;
}

static __attribute__((noipa)) long eight(int a, int b, int c, int d, int e, int f, int g, int h) {
    char text[100];
    int n = snprintf(text, sizeof text, "%d %d %d %d %d %d %d %d", a, b, c, d, e, f, g, h);
    return strcmp(text, "1 2 3 4 5 6 7 8") == 0 ? n : 0;
}

/* Here, and from a function that has its room for libc. */
static void arguments_in_place(void) {
    Large large = {{8}};
    large.v[69] = 9;
    HOLDS(eight(1, 2, 3, 4, 5, 6, 7, 8) == 15);
    HOLDS(to_libc(1, 2, 3, 4, 5, 6, 7, large, 10) == 20);
}

static void *arguments_on_a_thread(void *arg) {
    arguments_in_place();
    return arg;
}

static void arguments(void) {
    HOLDS(call_mixed());
    HOLDS(call_variadic());
    for (int i = 0; i < 70; i++) one.v[i] = i, two.v[i] = 2 * i;
    call_by_value();
    for (int i = 0; i < 70; i++) HOLDS(three.v[i] == 7 * i + 1);
}

/* ---- arrays of variable size ----------------------------------------------------------------- */

static NOINLINE void fill(char *p, int n, int with) { memset(p, with, (size_t)n); }

static NOINLINE long in_a_loop(int rounds) {
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        int n = 64 + i * 11;
        char a[n], b[2 * n];
        fill(a, n, 1);
        fill(b, 2 * n, 2);
        for (int k = 0; k < n; k++) sum += a[k] + b[2 * k];
    }
    return sum;
}

static void arrays(void) {
    long want = 0;
    char *p[20];
    for (int i = 0; i < 40; i++) want += 3 * (64 + i * 11);
    HOLDS(in_a_loop(40) == want);
    for (int i = 0; i < 20; i++) fill(p[i] = alloca(200), 200, i);
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 200; k++) HOLDS(p[i][k] == i);
}

static long rss_kb(void) {
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    CHECK(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
    fclose(f);
    return resident * 4;
}

/* What does not fit lives elsewhere, and must not pile up there: a gigabyte in all. */
static NOINLINE void large_in_a_loop(void) {
    long before = rss_kb();
    for (int i = 0; i < 4000; i++) {
        int n = 256 << 10;
        char a[n];
        fill(a, n, i);
        CHECK_EQ(a[n - 1], (char)i);
    }
    CHECK_LT(rss_kb() - before, 64 << 10);
}

/* ---- leaving without a return ---------------------------------------------------------------- */

static jmp_buf back;

static NOINLINE int jumps_at(int depth) {
    if (depth == 0) longjmp(back, 7);
    return 0;
}

static NOINLINE long jump_from(int depth) {
    volatile char frame[200];
    frame[0] = (char)depth;
    if (jumps_at(depth)) return 0;
    return jump_from(depth - 1) + frame[0];
}

static NOINLINE long down(long depth) {
    volatile char frame[200];
    frame[0] = 1;
    return depth ? down(depth - 1) + frame[0] : 0;
}

static void jumps(void) {
    for (volatile int i = 0; i < 30; i = i + 1) {
        int r = setjmp(back);
        if (r == 0) jump_from(20 + 30 * i);
        HOLDS(r == 7);
        HOLDS(down(100) == 100);
    }
}

static void exits_deep(void *arg) {
    if (down(10) == 10) at_depths(100, gort_exit);
}

/* ---- libc, signals --------------------------------------------------------------------------- */

static int by_value_int(const void *a, const void *b) {
    volatile char frame[100];
    frame[0] = 0;
    return *(const int *)a - *(const int *)b + frame[0];
}

static void libc(void) {
    int v[100];
    char text[64];
    for (int i = 0; i < 100; i++) v[i] = i * 37 % 100;
    qsort(v, 100, sizeof v[0], by_value_int);
    for (int i = 0; i < 100; i++) CHECK_EQ(v[i], i);
    snprintf(text, sizeof text, "%d %s %.3f", 3, "words", 2.5);
    CHECK_STR(text, "3 words 2.500");
}

static int handled;

static void on_signal(int signo) {
    int saved = errno;
    if (down(30) == 30) add(&handled, 1);
    errno = saved;
}

/* Another thread sends signals while this one goes up and down: they fall anywhere. */
static void *sends(void *arg) {
    pthread_t to = *(pthread_t *)arg;
    for (int i = 0; i < 300; i++) {
        int before = get(&handled);
        if (pthread_kill(to, SIGUSR1) != 0) abort();
        while (get(&handled) == before) sched_yield();
    }
    return NULL;
}

static NOINLINE long up_and_down(void) { return down(3) + down(12); }

static void signals(void) {
    pthread_t me = pthread_self(), sender;
    struct sigaction sa = {.sa_handler = on_signal}; /* without SA_ONSTACK */
    gort_lock_thread();
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(pthread_create(&sender, NULL, sends, &me), 0);
    while (get(&handled) < 300) CHECK_EQ(up_and_down(), 15);
    pthread_join(sender, NULL);
    gort_unlock_thread();
}

/* ---- depth, and after ------------------------------------------------------------------------ */

typedef struct Part {
    int depths;
    void (*fn)(void);
} Part;

static void in_parts(void *arg) {
    Part *part = arg;
    at_depths(part->depths, part->fn);
    gort_wg_done(&wg);
}

static void deep(void) { HOLDS(down(50000) == 50000); } /* about 12 MB */

static Part parts[] = {{120, arguments},     {60, arrays}, {60, jumps}, {40, libc},
                       {0, large_in_a_loop}, {0, signals}, {0, deep},   {60, arguments_in_place}};
#define PARTS ((int)(sizeof parts / sizeof parts[0]))

/* As a thread to libc, before it has ever waited. */
static void deep_at_once(void *arg) {
    deep();
    gort_wg_done(&wg);
}

static void keeps(void *arg) { /* its registers and frames over parking at every depth */
    at_depths(100, gort_yield);
    gort_wg_done(&wg);
}

/* ---- the prologue is where it is asked to yield ---------------------------------------------- */

static int stop;

static NOINLINE int stopped(void) { return get(&stop); }

static void computes(void *arg) { /* calls, but neither grows nor enters the library */
    while (!stopped()) {}
    gort_wg_done(&wg);
}

static void preemption(void) {
    gort_wg_add(&wg, 4);
    for (int i = 0; i < 4; i++) gort_go(computes, NULL);
    for (int i = 0; i < 20; i++) gort_yield(); /* with one P: each of them gives way */
    gort_sleep(20 * GORT_MS);
    set(&stop, 1);
    gort_wg_wait(&wg);
}

static int body(int argc, char **argv) {
    gort_stats s;
    gort_stats_read(&s);
    CHECK_EQ(s.stack_mode, mode);
    for (int i = 0; i < PARTS; i++) { /* one after the other: they share variables */
        gort_wg_add(&wg, 1);
        gort_go(in_parts, &parts[i]);
        gort_wg_wait(&wg);
        CHECKF(wrong == 0, "part %d", i);
    }
    gort_wg_add(&wg, 21);
    CHECK_EQ(gort_go_with(&(gort_attr){.thread = 1}, deep_at_once, NULL), 0);
    for (int i = 0; i < 20; i++) gort_go(keeps, NULL);
    gort_go(exits_deep, NULL);
    gort_wg_wait(&wg);
    preemption();
    wait_until(gort_count() == 1);
    wait_until(segments() == 0);
    CHECK_EQ(wrong, 0);
    return 0;
}

int main(int argc, char **argv) {
    mode = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t t;
    arguments_in_place();
    CHECK_EQ(pthread_create(&t, NULL, arguments_on_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(wrong, 0);
    return gort_main(body, argc, argv);
}
