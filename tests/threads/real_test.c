/* Some threads stay the kernel's: by the function that they begin with (listed or by its place in
 * the program), by the name that they take, by a policy that they ask for. They work beside the
 * others, with locks of every kind, join, keys. */
#include "threads_test.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { THREADS = 6, ROUNDS = 300 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t robust;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t tokens;
static pthread_key_t key;
static int turn, destroyed;
static long sum;
static __thread int mine = 3;

static void destroy(void *value) { __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST); }

/* A thread of the kernel's: its number is one of those. */
static bool is_the_kernels(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", gettid());
    return access(path, F_OK) == 0;
}

static void works(int number) {
    CHECK(mine == 3 && pthread_getspecific(key) == NULL);
    mine = number;
    CHECK(pthread_setspecific(key, &sum) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != number) pthread_cond_wait(&changed, &mutex);
        turn = (turn + 1) % THREADS;
        sum++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        CHECK(pthread_mutex_lock(&robust) == 0);
        if (i % 20 == 0) usleep(100);
        CHECK(pthread_mutex_unlock(&robust) == 0);
        CHECK(sem_wait(&tokens) == 0);
        pthread_rwlock_rdlock(&rwlock);
        if (i % 30 == 0) sched_yield();
        pthread_rwlock_unlock(&rwlock);
        CHECK(sem_post(&tokens) == 0);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    CHECK(mine == number);
}

void *by_function(void *number) {
    CHECK(is_the_kernels());
    works((int)(intptr_t)number);
    return number;
}

static void *by_place(void *number) {
    CHECK(is_the_kernels());
    works((int)(intptr_t)number);
    return number;
}

static void *usual(void *number) {
    CHECK(is_the_kernels() != as_goroutines());
    works((int)(intptr_t)number);
    return number;
}

/* Bound to a kernel thread from then on. */
static void *by_name(void *number) {
    CHECK(prctl(PR_SET_NAME, "poller") == 0);
    works((int)(intptr_t)number);
    return number;
}

/* The kernel's threads of that name. */
static int named(const char *name) {
    int n = 0;
    char command[100];
    snprintf(command, sizeof command, "cat /proc/%d/task/*/comm 2>/dev/null", getpid());
    FILE *f = popen(command, "r");
    char line[32];
    CHECK(f);
    while (fgets(line, sizeof line, f)) n += strcmp(line, name) == 0;
    CHECK(pclose(f) >= 0);
    return n;
}

static int with_policy(pthread_t *thread, void *(*fn)(void *), void *arg) {
    struct sched_param param = {.sched_priority = 1};
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
    CHECK(pthread_attr_setschedpolicy(&attr, SCHED_RR) == 0);
    CHECK(pthread_attr_setschedparam(&attr, &param) == 0);
    int r = pthread_create(thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return r;
}

static void *real_time(void *number) {
    struct sched_param param;
    int policy;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    CHECK(policy == SCHED_RR && is_the_kernels());
    works((int)(intptr_t)number);
    return number;
}

/* The program anew, with a list. */
static void begin(char **argv) {
    char list[300];
    Dl_info of;
    if (getenv("GORT_THREADS_REAL")) return;
    CHECK(dladdr((void *)(intptr_t)by_place, &of) != 0);
    const char *file = strrchr(of.dli_fname, '/');
    snprintf(list, sizeof list, "poller,by_function,%s+0x%lx", file ? file + 1 : of.dli_fname,
             (unsigned long)((uintptr_t)by_place - (uintptr_t)of.dli_fbase));
    CHECK(setenv("GORT_THREADS_REAL", list, 1) == 0);
    execv(argv[0], argv);
    CHECK(!"exec");
}

int main(int argc, char **argv) {
    void *(*fns[THREADS])(void *) = {by_function, by_place, usual, by_name, usual, real_time};
    pthread_t threads[THREADS];
    pthread_mutexattr_t attr;
    void *value;
    begin(argv);
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutex_init(&robust, &attr) == 0 && sem_init(&tokens, 0, 2) == 0);
    CHECK(pthread_key_create(&key, destroy) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        if (fns[i] == real_time && with_policy(&threads[i], real_time, (void *)i) == 0) continue;
        if (fns[i] == real_time) fns[i] = usual; /* not permitted */
        CHECK(pthread_create(&threads[i], NULL, fns[i], (void *)i) == 0);
    }
    wait_until(named("poller\n") == 1);
    pthread_barrier_wait(&barrier);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], &value) == 0 && value == (void *)i);
    CHECK(sum == THREADS * ROUNDS && destroyed == THREADS && mine == 3);
    return 0;
}
