/*
 * Scenes in which the threads of a program wait, by the argument: those that begin with "dead_" for
 * each other, for ever; the others for something that comes, though no thread of theirs brings it.
 * tests/script/threads_dead.sh.
 */
#include "../threads_test.h"

#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#define LONG_ENOUGH 1000000 /* us: the monitor has looked by then, more than once */

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier, meeting;
static sem_t sem;
static pthread_t main_thread, other;

static void start(void *(*fn)(void *), void *arg) {
    CHECK(pthread_create(&other, NULL, fn, arg) == 0);
}

static void start_named(const char *name, void *(*fn)(void *), void *arg) {
    start(fn, arg);
    pthread_setname_np(other, name);
}

/* ---- dead ------------------------------------------------------------------------------------ */

static void *there(void *arg) {
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&second);
    return arg;
}
static void *back(void *arg) {
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&first);
    return arg;
}

static void dead_order(void) {
    CHECK(pthread_barrier_init(&meeting, NULL, 2) == 0);
    start_named("goes there", there, NULL);
    start_named("comes back", back, NULL);
    pthread_join(other, NULL);
}
static void dead_recursive(void) {
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(&first, &attr) == 0 && pthread_mutex_init(&second, &attr) == 0);
    dead_order();
}
static void dead_alone(void) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&first);
}
static void *ends_with_first(void *arg) {
    pthread_mutex_lock(&first);
    return arg;
}
static void dead_ended(void) {
    start(ends_with_first, NULL);
    pthread_join(other, NULL);
    pthread_mutex_lock(&first);
}
static void dead_cond(void) {
    pthread_mutex_lock(&first);
    pthread_cond_wait(&cond, &first);
}
static void dead_sem(void) { sem_wait(&sem); }
static void *writes(void *arg) {
    pthread_rwlock_wrlock(&rwlock);
    return arg;
}
static void dead_rwlock(void) {
    pthread_rwlock_rdlock(&rwlock);
    start(writes, NULL);
    pthread_join(other, NULL);
}
static void dead_barrier(void) {
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    pthread_barrier_wait(&barrier);
}
static void *joins_main(void *arg) {
    pthread_join(main_thread, NULL);
    return arg;
}
static void dead_join(void) {
    start(joins_main, NULL);
    pthread_join(other, NULL);
}
static void *waits_for_post(void *arg) {
    sem_wait(&sem);
    return arg;
}
static void dead_without_main(void) {
    start(waits_for_post, NULL);
    pthread_exit(NULL);
}
static void dead_ignored(void) { /* no handler */
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    dead_sem();
}

/* ---- alive ----------------------------------------------------------------------------------- */

/* Another process does what is awaited, some time. */
static void later(void (*act)(void)) {
    if (fork() != 0) return;
    usleep(LONG_ENOUGH);
    act();
    _exit(0);
}
static void term(void) { kill(getppid(), SIGTERM); }
static void usr1(void) { kill(getppid(), SIGUSR1); }

static void posts(int signo) { sem_post(&sem); }
static void handler_posts(void) {
    CHECK(signal(SIGTERM, posts) != SIG_ERR);
    later(term);
    while (sem_wait(&sem) != 0) CHECK(errno == EINTR);
}
static void *waits_too(void *arg) {
    pthread_mutex_lock(&first);
    return arg;
}
static void pauses(void) {
    CHECK(signal(SIGUSR1, posts) != SIG_ERR);
    CHECK(signal(SIGUSR1, SIG_DFL) == posts);
    pthread_mutex_lock(&first);
    start(waits_too, NULL);
    later(term); /* whose default ends it: the script expects that */
    pause();
}
static void waits_for_signal(void) {
    int signo;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    pthread_mutex_lock(&first);
    start(waits_too, NULL);
    later(usr1);
    CHECK(sigwait(&set, &signo) == 0 && signo == SIGUSR1);
}
static void suspends(void) {
    sigset_t set, none;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && signal(SIGUSR1, posts) != SIG_ERR);
    pthread_mutex_lock(&first);
    start(waits_too, NULL);
    later(usr1);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR);
}
static int pipe_ends[2];
static void writes_to_pipe(void) { CHECK(write(pipe_ends[1], "x", 1) == 1); }
static void reads(void) {
    char c;
    CHECK(pipe(pipe_ends) == 0);
    later(writes_to_pipe);
    CHECK(read(pipe_ends[0], &c, 1) == 1);
}
static void timed(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec++;
    CHECK(sem_timedwait(&sem, &at) == -1 && errno == ETIMEDOUT);
}
static void sleeps(void) {
    pthread_mutex_lock(&first);
    start(waits_too, NULL);
    usleep(LONG_ENOUGH);
}
static pthread_mutex_t *shared;
static void unlocks(void) { CHECK(pthread_mutex_unlock(shared) == 0); }
static void other_process(void) {
    pthread_mutexattr_t attr;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutex_init(shared, &attr) == 0 && pthread_mutex_lock(shared) == 0);
    later(unlocks);
    CHECK(pthread_mutex_lock(shared) == 0);
}
static void by_timer(union sigval value) { sem_post(&sem); }
static void timer_thread(void) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = by_timer};
    struct itimerspec in = {.it_value = {1, 0}};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &in, NULL) == 0);
    CHECK(sem_wait(&sem) == 0);
}
static void child_ends(void) {
    later(sync);
    CHECK(wait(NULL) > 0);
}
static void timer_number(void) {
    struct itimerspec in = {.it_value = {1, 0}};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    CHECK(fd >= 0 && timerfd_settime(fd, 0, &in, NULL) == 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(poll(&p, 1, -1) == 1);
}
/* A thread of the kernel's own releases what a goroutine waits for, inside libc. */
static void *real(void *arg) {
    pthread_mutex_lock(&first);
    sem_post(&sem);
    usleep(LONG_ENOUGH / 2);
    pthread_cond_wait(&cond, &first);
    pthread_mutex_unlock(&first);
    return arg;
}
static void real_thread(void) {
    pthread_attr_t attr;
    struct sched_param param = {.sched_priority = 1};
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
    CHECK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO) == 0);
    CHECK(pthread_attr_setschedparam(&attr, &param) == 0);
    int r = pthread_create(&other, &attr, real, NULL);
    if (r == EPERM) return; /* not for everybody */
    CHECK(r == 0 && sem_wait(&sem) == 0);
    pthread_mutex_lock(&first); /* once the other waits in libc */
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&first);
    CHECK(pthread_join(other, NULL) == 0);
}

/* clang-format off */
#define SCENES(X) \
    X(dead_order) X(dead_recursive) X(dead_alone) X(dead_ended) X(dead_cond) X(dead_sem) \
    X(dead_rwlock) X(dead_barrier) X(dead_join) X(dead_without_main) X(dead_ignored) \
    X(handler_posts) X(pauses) X(waits_for_signal) X(suspends) X(reads) X(timed) X(sleeps) \
    X(other_process) X(timer_thread) X(child_ends) X(timer_number) X(real_thread)
/* clang-format on */
static const struct Scene {
    const char *name;
    void (*play)(void);
} scenes[] = {
#define SCENE(name) {#name, name},
    SCENES(SCENE)};

static void *ends(void *arg) { return arg; }

int main(int argc, char **argv) {
    main_thread = pthread_self();
    start(ends, NULL); /* with one thread a program is as it ever was */
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(sem_init(&sem, 0, 0) == 0);
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, argv[1]) != 0) continue;
        scenes[i].play();
        return 0;
    }
    return 3;
}
