/* Cancellation: at every kind of wait, before one, while it computes, asynchronously; cleanup
 * handlers, keys, locks; what is disabled waits. And the next thread knows nothing of it. */
#include "threads_test.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int pipes[2], sockets[2], listener, epoll;
static sem_t sem, begun;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper;
static int cleaned; /* atomic */

static void clean(void *arg) { __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST); }
static void unlock(void *arg) {
    CHECK(pthread_mutex_unlock(arg) == 0); /* it is held again */
    clean(NULL);
}

static void by_read(void) { CHECK(read(pipes[0], &(char){0}, 1) == 1); }
static void by_recv(void) { CHECK(recv(sockets[0], &(char){0}, 1, 0) == 1); }
static void by_accept(void) { CHECK(accept(listener, NULL, NULL) >= 0); }
static void by_poll(void) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    poll(&p, 1, -1);
}
static void by_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    select(pipes[0] + 1, &set, NULL, NULL, NULL);
}
static void by_epoll(void) {
    struct epoll_event event;
    epoll_wait(epoll, &event, 1, -1);
}
static void by_sleep(void) { sleep(1000); }
static void by_nanosleep(void) { nanosleep(&(struct timespec){1000, 0}, NULL); }
static void by_sem(void) { sem_wait(&sem); }
static void by_pause(void) { pause(); }
static void by_join(void) { pthread_join(sleeper, NULL); }
static void by_sigwait(void) {
    sigset_t set;
    int signo;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &signo);
}
static void by_sigsuspend(void) {
    sigset_t set;
    sigemptyset(&set);
    sigsuspend(&set);
}
static pid_t child;
static void by_waitpid(void) {
    if (child == 0 && (child = fork()) == 0) {
        for (;;) pause();
    }
    sem_post(&begun); /* fork is over */
    waitpid(child, NULL, 0);
}
static void by_cond(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    sem_post(&begun);
    for (;;) pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
}
static void by_testcancel(void) {
    for (;;) pthread_testcancel();
}
static void by_write(void) { /* which never waits */
    static int null[2];
    if (null[0] == 0) CHECK(pipe(null) == 0);
    for (char c = 0;;) CHECK(write(null[1], &c, 1) == 1 && read(null[0], &c, 1) == 1);
}
static void by_async(void) {
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    for (volatile long n = 0;; n++) {}
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void by_async_lock(void) { /* of main's */
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    pthread_mutex_lock(&held);
}
/* A once whose routine is cancelled has not been. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void once_sleeps(void) { sleep(1000); }
static void by_once(void) { pthread_once(&once, once_sleeps); }

static const struct {
    void (*fn)(void);
    int posts; /* how many of `begun` it gives itself */
} waits[] = {{by_read, 0},       {by_recv, 0},    {by_accept, 0},     {by_poll, 0},
             {by_select, 0},     {by_epoll, 0},   {by_sleep, 0},      {by_nanosleep, 0},
             {by_sem, 0},        {by_pause, 0},   {by_join, 0},       {by_sigwait, 0},
             {by_sigsuspend, 0}, {by_waitpid, 1}, {by_cond, 1},       {by_testcancel, 0},
             {by_write, 0},      {by_async, 0},   {by_async_lock, 0}, {by_once, 0}};
enum { WAITS = sizeof waits / sizeof waits[0] };

static void *one(void *arg) {
    int i = (int)(intptr_t)arg, type;
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type) == 0);
    CHECK(type == PTHREAD_CANCEL_DEFERRED); /* not the last life's */
    pthread_cleanup_push(clean, NULL);
    if (!waits[i].posts) sem_post(&begun);
    waits[i].fn();
    pthread_cleanup_pop(0);
    fprintf(stderr, "wait %d returns\n", i);
    abort();
}

static void *forever(void *arg) {
    for (;;) pause();
    return NULL;
}

/* Cancelled before: at the first point, also where nothing waits. */
static void *late(void *arg) {
    int old, pair[2];
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    CHECK(old == PTHREAD_CANCEL_ENABLE);
    sem_post(&begun);
    usleep(5000); /* not a point now */
    CHECK(pipe(pair) == 0 && write(pair[1], "x", 1) == 1 && close(pair[1]) == 0);
    sem_wait(&sem);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
    CHECK(old == PTHREAD_CANCEL_DISABLE);
    pthread_cleanup_push(clean, NULL);
    if (arg) CHECK(close(pair[0]) != 0);
    else CHECK(read(pair[0], &(char){0}, 1) < 0);
    pthread_cleanup_pop(0);
    return NULL;
}

/* A mutex is no point. */
static void *locks(void *arg) {
    sem_post(&begun);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    pthread_cleanup_push(clean, NULL);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *itself(void *arg) {
    pthread_cleanup_push(clean, NULL);
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    usleep(1);
    pthread_cleanup_pop(0);
    return NULL;
}

/* What ends its wait comes right behind the cancel, and is none of its business. */
static void *loses(void *arg) {
    sem_post(&begun);
    CHECK(read(*(int *)arg, &(char){0}, 1) < 0 && errno == EBADF);
    pthread_testcancel();
    return NULL;
}
static void lost(void) {
    int pair[2];
    pthread_t thread;
    void *value;
    CHECK(pipe(pair) == 0 && pthread_create(&thread, NULL, loses, &pair[0]) == 0);
    sem_wait(&begun);
    usleep(1000);
    CHECK(pthread_cancel(thread) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
}

static void once_works(void) { cleaned++; }

static void wait_begun(void) {
    while (sem_wait(&begun) != 0) CHECK(errno == EINTR);
}
static void cancelled(pthread_t thread, int before) {
    void *value;
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
    CHECK(cleaned > before);
}

int main(void) {
    pthread_t thread;
    sigset_t set;
    struct epoll_event event = {.events = EPOLLIN};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK((epoll = epoll_create1(0)) >= 0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) == 0);
    struct sockaddr at = {.sa_family = AF_UNIX}; /* a name is made up */
    CHECK((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    CHECK(bind(listener, &at, sizeof at.sa_family) == 0 && listen(listener, 5) == 0);
    sem_init(&sem, 0, 0);
    sem_init(&begun, 0, 0);
    CHECK(pthread_create(&sleeper, NULL, forever, NULL) == 0);
    CHECK(pthread_mutex_lock(&held) == 0);
    for (int round = 0; round < 20; round++)
        for (intptr_t i = 0; i < WAITS; i++) {
            int before = cleaned;
            CHECK(pthread_create(&thread, NULL, one, (void *)i) == 0);
            wait_begun();
            if (round % 3 == 1) usleep(500);
            if (round % 3 == 2) sched_yield();
            cancelled(thread, before);
        }
    for (intptr_t i = 0; i < 10; i++) {
        int before = cleaned;
        CHECK(pthread_create(&thread, NULL, late, (void *)(i % 2)) == 0);
        wait_begun();
        CHECK(pthread_cancel(thread) == 0);
        usleep(10000);
        CHECK(cleaned == before);
        sem_post(&sem);
        cancelled(thread, before);
        before = cleaned;
        pthread_mutex_lock(&mutex);
        CHECK(pthread_create(&thread, NULL, locks, NULL) == 0);
        wait_begun();
        CHECK(pthread_cancel(thread) == 0);
        usleep(5000);
        CHECK(cleaned == before && pthread_tryjoin_np(thread, NULL) == EBUSY);
        pthread_mutex_unlock(&mutex);
        cancelled(thread, before);
        before = cleaned;
        CHECK(pthread_create(&thread, NULL, itself, NULL) == 0);
        void *value;
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED && cleaned > before);
    }
    for (int i = 0; i < 10; i++) lost();
    int before = cleaned;
    CHECK(pthread_once(&once, once_works) == 0 && cleaned == before + 1);
    cancelled(sleeper, cleaned - 1);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    return 0;
}
