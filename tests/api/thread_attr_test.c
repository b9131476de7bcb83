/*
 * gort_attr.thread: to libc the goroutine is a thread of its own, on whatever kernel thread it
 * runs. Its variables, errno, keys, its name as the owner of a lock stay with it over yields,
 * sleeps, preemption, blocking calls; a second life begins with fresh ones; destructors run however
 * it ends; the end of a runtime takes it wherever it is, and no thread stays behind.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 60, ROUNDS = 40, RUNTIMES = 5 };
static const gort_attr thread = {.name = "thread", .thread = 1};
static __thread long mine = 7;
static __thread char room[100];
static pthread_key_t key;
static int destroyed, made, stop;
static pthread_mutex_t recursive;
static int inside;
static gort_wg wg;

static void destroy(void *value) { add(&destroyed, 1); }

static void start(gort_fn *fn, int n) {
    gort_wg_add(&wg, n);
    for (int i = 0; i < n; i++) {
        int r = gort_go_with(&thread, fn, (void *)(intptr_t)(i + 1));
        if (r == -ENOTSUP) SKIP("no goroutine can be a thread here");
        CHECK_EQ(r, 0);
    }
    made += n;
}
static void run(gort_fn *fn, int n) {
    start(fn, n);
    gort_wg_wait(&wg);
}

/* What a fresh thread finds; then it is marked as id's. */
static pthread_t begin(long id) {
    CHECK_EQ(mine, 7);
    for (size_t i = 0; i < sizeof room; i++) CHECK_EQ(room[i], 0);
    CHECK(pthread_getspecific(key) == NULL);
    mine = id;
    memset(room, (int)id, sizeof room);
    CHECK_EQ(pthread_setspecific(key, (void *)id), 0);
    errno = (int)id;
    return pthread_self();
}
static void is_still(long id, pthread_t self) {
    CHECK_EQ(mine, id);
    CHECK_EQ(room[sizeof room - 1], (char)id);
    CHECK(pthread_getspecific(key) == (void *)id);
    CHECK_EQ(errno, id);
    CHECK(pthread_equal(pthread_self(), self));
}

static void wanders(void *arg) {
    long id = (long)arg;
    pthread_t self = begin(id);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 == 0) gort_yield();
        else gort_sleep(GORT_US * (id % 7));
        is_still(id, self);
        if (i % 10 == 0) {
            gort_enter_syscall();
            sched_yield();
            gort_exit_syscall();
        }
        is_still(id, self);
    }
    gort_wg_done(&wg);
}

/* Is preempted, in malloc and between two calls. */
static void computes(void *arg) {
    long id = (long)arg;
    pthread_t self = begin(id);
    while (!get(&stop)) {
        free(malloc((size_t)(id * 10)));
        errno = (int)id;
        is_still(id, self);
    }
    gort_wg_done(&wg);
}

static void locks(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        CHECK_EQ(++inside, 1);
        if (i % 8 == 0) gort_yield();
        CHECK_EQ(--inside, 0);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        if (i % 5 == 0) gort_yield();
    }
    gort_wg_done(&wg);
}

static __attribute__((noinline)) void leave_by(long way) {
    if (way % 3 == 1) gort_exit();
    if (way % 3 == 2) pthread_exit(NULL);
}

/* Also out of a function that a call of ours runs: the once is done, the blocking call over. */
static void leaves_once(void *way) {
    gort_yield();
    leave_by((long)way);
}
static long leaves_blocking(void *once) {
    pthread_exit(NULL);
    return 0;
}
static void leaves_calls(void *arg) {
    gort_once once = {0};
    begin((long)arg);
    gort_wg_done(&wg);
    if ((long)arg % 3 == 0) gort_blocking(leaves_blocking, NULL);
    gort_once_do(&once, leaves_once, arg);
    FAILF("it has not left");
}
static void leaves(void *arg) {
    begin((long)arg);
    gort_yield();
    gort_wg_done(&wg);
    leave_by((long)arg);
}

static void locked(void *arg) {
    long id = (long)arg;
    pthread_t self = begin(id);
    gort_lock_thread();
    long tid = syscall(SYS_gettid);
    for (int i = 0; i < 10; i++) {
        gort_sleep(10 * GORT_US);
        CHECK_EQ(syscall(SYS_gettid), tid);
        is_still(id, self);
    }
    if (id % 2) gort_unlock_thread();
    for (int i = 0; i < 10; i++) {
        gort_yield();
        is_still(id, self);
    }
    gort_wg_done(&wg);
}

static void forks(void *arg) {
    long id = (long)arg;
    pthread_t self = begin(id);
    pid_t child = fork();
    if (child == 0) {
        is_still(id, self);
        CHECK_EQ(gort_go(forks, NULL), -ENOTCONN);
        free(malloc(1000));
        _exit(42);
    }
    int status;
    while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    gort_wg_done(&wg);
}

/* glibc sends a signal to all threads, and waits for their answers. */
static void sets_ids(void *arg) {
    CHECK_EQ(setgid(getgid()), 0);
    CHECK_EQ(setuid(getuid()), 0);
    gort_wg_done(&wg);
}

static void sleeps(void *arg) {
    begin((long)arg);
    gort_sleep(1000 * GORT_SEC);
}
static void in_libc(void *arg) {
    for (char text[100];;) {
        snprintf(text, sizeof text, "%f %s", 1.5, "text");
        free(malloc(70));
    }
}
static void for_ever(void *arg) {
    for (;;) {}
}

static void check_dump(void) {
    char text[2000] = "";
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    gort_dump(fd[1]);
    close(fd[1]);
    for (size_t n = 0; n < sizeof text - 1;) {
        ssize_t k = read(fd[0], text + n, sizeof text - 1 - n);
        if (k <= 0) break;
        n += (size_t)k;
    }
    close(fd[0]);
    CHECK(strstr(text, ", a thread]") != NULL);
}

static int app(int argc, char **argv) {
    destroyed = made = 0;
    run(wanders, MANY);
    run(leaves, MANY);
    run(leaves_calls, MANY);
    run(locks, 10);
    made -= 10; /* which have no value */
    run(locked, 6);
    start(computes, 10);
    gort_sleep(30 * GORT_MS); /* the monitor's time: fewer preemptions are as right */
    set(&stop, 1);
    gort_wg_wait(&wg);
    set(&stop, 0);
    run(forks, 3);
    run(sets_ids, 3);
    made -= 3;
    wait_until(get(&destroyed) == made);
    int before = made;
    start(sleeps, 10);
    check_dump();
    start(in_libc, 4);
    start(for_ever, 3);
    gort_yield();
    start(sleeps, 10);
    wg = (gort_wg){0};
    CHECK_EQ(get(&destroyed), before);
    return 3;
}

static int threads(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

int main(int argc, char **argv) {
    int before = threads(); /* an emulator has one of its own */
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attr);
    CHECK_EQ(pthread_key_create(&key, destroy), 0);
    CHECK_EQ(gort_go_with(&thread, sleeps, NULL), -ENOTCONN);
    for (int i = 0; i < RUNTIMES; i++) {
        CHECK_EQ(gort_main(app, 0, NULL), 3);
        CHECK_EQ(destroyed, made - 27); /* those that the end took have lost theirs */
        wait_until(threads() <= before);
    }
    return 0;
}
