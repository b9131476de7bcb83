/* CPUs, priorities, policies: of the caller, inherited by the threads that it makes, in attributes,
 * and asked by others; nobody else has them, before or after. CPU time of threads. */
#include "threads_test.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static cpu_set_t all, one;
static int cpu; /* of `one` */
static pthread_barrier_t barrier;

static void meet(void) { pthread_barrier_wait(&barrier); }

static cpu_set_t cpus_of(int tid) {
    cpu_set_t set;
    CHECK(sched_getaffinity(tid, sizeof set, &set) == 0);
    return set;
}
static cpu_set_t thread_cpus(pthread_t id) {
    cpu_set_t set;
    CHECK(pthread_getaffinity_np(id, sizeof set, &set) == 0);
    return set;
}
static bool are(cpu_set_t a, cpu_set_t b) { return CPU_EQUAL(&a, &b); }

static int nice_of(int tid) {
    errno = 0;
    int r = getpriority(PRIO_PROCESS, (id_t)tid);
    CHECK(errno == 0);
    return r;
}

static bool is_usual(void) {
    struct sched_param param;
    int policy;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    return policy == SCHED_OTHER && param.sched_priority == 0 && sched_getscheduler(0) == policy &&
           sched_getparam(0, &param) == 0 && param.sched_priority == 0 && are(cpus_of(0), all) &&
           are(thread_cpus(pthread_self()), all) && nice_of(0) == 0;
}

static void runs_on_one(void) {
    for (int i = 0; i < 50; i++) {
        CHECK(sched_getcpu() == cpu);
        if (i % 10) sched_yield();
        else usleep(100);
    }
    CHECK(are(cpus_of(0), one) && are(thread_cpus(pthread_self()), one));
    CHECK(are(cpus_of(gettid()), one));
}

static void *usual(void *arg) {
    CHECK(is_usual());
    return arg;
}

static void run(const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, attr, fn, arg) == 0 && pthread_join(thread, NULL) == 0);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static void *inherits_cpu(void *arg) {
    runs_on_one();
    return arg;
}

static void *sets_cpu(void *tid) {
    cpu_set_t none;
    CPU_ZERO(&none);
    CHECK(is_usual());
    CHECK(sched_setaffinity(0, sizeof none, &none) == -1 && errno == EINVAL);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof none, &none) == EINVAL);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK(tid ? sched_setaffinity(0, sizeof one, &one) == 0
              : pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0);
    runs_on_one();
    run(NULL, inherits_cpu, NULL);
    if (tid) *(int *)tid = gettid();
    if (tid) meet();
    if (tid) meet();
    return NULL;
}

static void *sets_by_syscall(void *arg) {
    cpu_set_t set;
    CHECK(syscall(SYS_sched_setaffinity, gettid(), sizeof one, &one) == 0);
    runs_on_one();
    CPU_ZERO(&set);
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 && are(set, one));
    return arg;
}

static void *waits(void *tid) {
    *(int *)tid = gettid();
    meet();
    meet();
    return NULL;
}

static void cpus(void) {
    pthread_attr_t attr;
    pthread_t thread;
    int tid;
    for (int i = 0; i < 5; i++) run(NULL, sets_cpu, NULL);
    run(NULL, sets_by_syscall, NULL);
    CHECK(pthread_create(&thread, NULL, sets_cpu, &tid) == 0);
    meet();
    CHECK(are(thread_cpus(thread), one) && are(cpus_of(tid), one));
    CHECK(pthread_setaffinity_np(thread, sizeof all, &all) == 0 && are(cpus_of(tid), all));
    meet();
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(pthread_create(&thread, NULL, waits, &tid) == 0);
    meet();
    CHECK(are(thread_cpus(thread), all) && are(cpus_of(tid), all));
    CHECK(sched_setaffinity(tid, sizeof one, &one) == 0);
    CHECK(are(thread_cpus(thread), one) && are(cpus_of(tid), one));
    meet();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(sched_getaffinity(1 << 29, sizeof all, &(cpu_set_t){0}) == -1 && errno == ESRCH);

    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setaffinity_np(&attr, sizeof one, &one) == 0);
    for (int i = 0; i < 3; i++) run(&attr, inherits_cpu, NULL);
    cpu_set_t absent;
    CPU_ZERO(&absent);
    CPU_SET(1000, &absent);
    CHECK(pthread_attr_setaffinity_np(&attr, sizeof absent, &absent) == 0);
    CHECK(pthread_create(&thread, &attr, usual, NULL) == EINVAL);
    pthread_attr_destroy(&attr);
}

/* ---- priorities, policies -------------------------------------------------------------------- */

static void *inherits_nice(void *arg) {
    CHECK(nice_of(0) == 7 && sched_getscheduler(0) == SCHED_BATCH);
    return arg;
}

static void *sets_nice(void *tid) {
    struct sched_param param = {0};
    int policy;
    CHECK(is_usual() && setpriority(PRIO_PROCESS, 0, 5) == 0 && nice_of(0) == 5);
    CHECK(nice(2) == 7 && nice_of(gettid()) == 7);
    CHECK(pthread_setschedparam(pthread_self(), SCHED_BATCH, &param) == 0);
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_BATCH);
    CHECK(sched_getscheduler(gettid()) == SCHED_BATCH);
    CHECK(pthread_setschedprio(pthread_self(), 0) == 0 && sched_setparam(0, &param) == 0);
    struct timespec slice;
    CHECK(sched_rr_get_interval(0, &slice) == 0 && sched_rr_get_interval(gettid(), &slice) == 0);
    run(NULL, inherits_nice, NULL);
    param.sched_priority = 3;
    CHECK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param) == EINVAL);
    CHECK(pthread_setschedparam(pthread_self(), 77, &param) == EINVAL);
    CHECK(sched_setscheduler(0, 77, &param) == -1 && errno == EINVAL);
    param.sched_priority = 0;
    CHECK(sched_setscheduler(0, SCHED_OTHER, &param) == 0 && sched_getscheduler(0) == SCHED_OTHER);
    *(int *)tid = gettid();
    meet();
    meet();
    CHECK(nice_of(0) == 9);
    return NULL;
}

static void priorities(void) {
    pthread_t thread;
    int tid;
    CHECK(pthread_create(&thread, NULL, sets_nice, &tid) == 0);
    meet();
    CHECK(nice_of(tid) == 7 && nice_of(0) == 0 && nice_of(getpid()) == 0);
    CHECK(setpriority(PRIO_PROCESS, (id_t)tid, 9) == 0 && nice_of(tid) == 9);
    meet();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(getpriority(PRIO_PROCESS, 1 << 29) == -1 && errno == ESRCH);
    run(NULL, usual, NULL);
}

/* The kernel's threads: none has what one of ours had. */
static bool none_is_left(void) {
    DIR *dir = opendir("/proc/self/task");
    struct dirent *e;
    bool none = true;
    CHECK(dir);
    while (none && (e = readdir(dir)) != NULL) {
        int tid = atoi(e->d_name);
        cpu_set_t set;
        CPU_ZERO(&set);
        if (tid == 0 || syscall(SYS_sched_getaffinity, tid, sizeof set, &set) < 0) continue;
        long r = syscall(SYS_getpriority, PRIO_PROCESS, tid);
        none = are(set, all) && (r < 0 || r == 20);
    }
    closedir(dir);
    return none;
}

/* ---- CPU time -------------------------------------------------------------------------------- */

static int64_t ns_of(clockid_t clock) {
    struct timespec ts;
    CHECK(clock_gettime(clock, &ts) == 0);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void burn(int ms) {
    int64_t end = ns_of(CLOCK_MONOTONIC) + ms * 1000000LL;
    while (ns_of(CLOCK_MONOTONIC) < end) {}
}

static void *burns(void *arg) {
    int64_t last = ns_of(CLOCK_THREAD_CPUTIME_ID), begin = last;
    for (int i = 0; i < 100; i++) {
        if (i % 2) usleep(100);
        else burn(1);
        int64_t now = ns_of(CLOCK_THREAD_CPUTIME_ID);
        CHECK(now >= last); /* whatever kernel thread it is on */
        last = now;
    }
    CHECK(last > begin && last - begin <= 50 * 1000000LL + 100 * 2000000LL);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    CHECK(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec <= last / 1000000000 + 1);
    return arg;
}

static int stop; /* atomic */
static void *computes(void *arg) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {}
    return arg;
}
static void *sleeps(void *arg) {
    meet();
    meet();
    return arg;
}

static void cpu_time(void) {
    pthread_t threads[8], busy, idle;
    clockid_t clock[2];
    struct timespec ts;
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, burns, NULL) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_create(&busy, NULL, computes, NULL) == 0);
    CHECK(pthread_create(&idle, NULL, sleeps, NULL) == 0);
    meet();
    CHECK(pthread_getcpuclockid(busy, &clock[0]) == 0);
    CHECK(pthread_getcpuclockid(idle, &clock[1]) == 0);
    CHECK(clock_getres(clock[0], &ts) == 0);
    int64_t was = ns_of(clock[0]), slept = ns_of(clock[1]);
    while (ns_of(clock[0]) < was + 20000000) usleep(1000);
    CHECK(ns_of(clock[1]) - slept < 5000000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    meet();
    CHECK(pthread_join(busy, NULL) == 0 && pthread_join(idle, NULL) == 0);
    CHECK(pthread_getcpuclockid(pthread_self(), &clock[0]) == 0 && ns_of(clock[0]) > 0);
}

int main(void) {
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, &all); cpu--) {}
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (are(one, all) || nice_of(0) != 0) {
        fprintf(stderr, "skipped: one CPU, or another priority\n");
        return 77;
    }
    pthread_barrier_init(&barrier, NULL, 2);
    cpus();
    priorities();
    run(NULL, usual, NULL);
    wait_until(none_is_left()); /* kernel threads that were bound go */
    cpu_time();
    return 0;
}
