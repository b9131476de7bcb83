/* OpenMP: loops of all schedules, reductions, sections, critical, atomic, ordered, tasks with
 * dependences, nested teams, locks, and teams begun by threads of the program's own. */
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                            \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                        \
        }                                                                   \
    } while (0)

enum { N = 20000, OWN_THREADS = 20 };
static int mine;
#pragma omp threadprivate(mine)

static void loops(int team) {
    static int a[N];
    long sum = 0, ordered = 0;
    int biggest = 0, last = -1;
#pragma omp parallel num_threads(team)
    {
        mine = omp_get_thread_num() + 1;
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++) a[i] = i;
#pragma omp for schedule(dynamic, 7) reduction(+ : sum)
        for (int i = 0; i < N; i++) sum += a[i];
#pragma omp for schedule(guided) reduction(max : biggest)
        for (int i = 0; i < N; i++) biggest = a[i] > biggest ? a[i] : biggest;
#pragma omp for ordered lastprivate(last)
        for (int i = 0; i < 500; i++) {
            last = i;
#pragma omp ordered
            ordered = ordered * 3 % 1000003 + i;
        }
        CHECK(mine == omp_get_thread_num() + 1);
    }
    long want = 0;
    for (int i = 0; i < 500; i++) want = want * 3 % 1000003 + i;
    CHECK(sum == (long)N * (N - 1) / 2 && biggest == N - 1 && ordered == want && last == 499);
}

static void guards(int team) {
    long critical = 0, atomic = 0, locked = 0;
    int singles = 0, masters = 0, section[3] = {0};
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(team)
    {
        for (int i = 0; i < 200; i++) {
#pragma omp critical
            critical++;
#pragma omp atomic
            atomic++;
            omp_set_lock(&lock);
            omp_set_nest_lock(&nest);
            omp_set_nest_lock(&nest);
            locked++;
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
            omp_unset_lock(&lock);
        }
        for (int i = 0; i < 50; i++) {
#pragma omp barrier
#pragma omp single
            singles++;
#pragma omp master
            masters++;
        }
#pragma omp sections
        {
#pragma omp section
            section[0]++;
#pragma omp section
            section[1]++;
#pragma omp section
            section[2]++;
        }
    }
    CHECK(critical == 200L * team && atomic == 200L * team && locked == 200L * team);
    CHECK(singles == 50 && masters == 50);
    CHECK(section[0] == 1 && section[1] == 1 && section[2] == 1);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

static long fib(int n) {
    long a, b;
    if (n < 2) return n;
    if (n < 10) return fib(n - 1) + fib(n - 2);
#pragma omp task shared(a)
    a = fib(n - 1);
#pragma omp task shared(b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

static void tasks(int team) {
    long value = 0, loop = 0;
    int chain = 1;
#pragma omp parallel num_threads(team)
#pragma omp single
    {
        value = fib(18);
        for (int i = 0; i < 100; i++)
#pragma omp task depend(inout : chain)
            chain = chain * 5 % 10007;
#pragma omp taskwait
#pragma omp taskloop grainsize(10) reduction(+ : loop)
        for (int i = 0; i < 1000; i++) loop += i;
    }
    int want = 1;
    for (int i = 0; i < 100; i++) want = want * 5 % 10007;
    CHECK(value == 2584 && chain == want && loop == 499500);
}

static void nested(void) {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(3) reduction(+ : sum)
        sum += 10 * outer + omp_get_thread_num();
    }
    CHECK(sum == 3 * 10 * (0 + 1 + 2 + 3) + 4 * (0 + 1 + 2));
}

static void *own(void *arg) {
    long n = (long)(intptr_t)arg;
    for (int round = 0; round < 3; round++) {
        long sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 1000; i++) sum += i * n;
        CHECK(sum == 499500 * n);
    }
    return NULL;
}

static int kernel_threads(void) {
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1) break;
    if (f) fclose(f);
    return n;
}

int main(int argc, char **argv) {
    int team = argc > 1 ? atoi(argv[1]) : 16;
    pthread_t thread[OWN_THREADS];
    for (int round = 0; round < 5; round++) {
        loops(team);
        guards(team);
        tasks(team);
        nested();
        for (intptr_t i = 0; i < OWN_THREADS; i++)
            CHECK(pthread_create(&thread[i], NULL, own, (void *)i) == 0);
        for (int i = 0; i < OWN_THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    }
    printf("OpenMP: a team of %d, right\n", team);
    fprintf(stderr, "kernel threads: %d\n", kernel_threads());
    return 0;
}
