/* A child that is made while no runtime runs, beside threads that use gort: they do not exist
 * there, and its runtime waits for none of them, neither at its end nor with the report of a
 * deadlock. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static gort_chan *nobody;
static int busy;

static void *uses(void *arg) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    for (int x = 1;;) {
        gort_chan_send(c, &x);
        gort_chan_recv(c, &x);
        __atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void *waits(void *arg) {
    gort_chan_recv(nobody, NULL);
    return NULL;
}

static int returns(int argc, char **argv) { return 7; }
static int deadlocks(int argc, char **argv) {
    gort_chan_recv(NULL, NULL);
    return 0;
}

/* Threads that the runtime of the parent has left behind do not count in the child: a plain thread
 * would be taken for one of them, and a deadlock be reported that is none. */
enum { LEFT = 60 };
static int asleep;
static long sleeps(void *arg) {
    add(&asleep, 1);
    return pause(); /* for ever */
}
static void left_behind(void *arg) { gort_blocking(sleeps, NULL); }
static int leaves_many(int argc, char **argv) {
    for (int i = 0; i < LEFT; i++) CHECK_EQ(gort_go(left_behind, NULL), 0);
    wait_until(get(&asleep) == LEFT);
    return 0;
}
static int counts(int argc, char **argv) {
    gort_stats s;
    gort_stats_read(&s);
    CHECK_LT(s.threads, LEFT);
    return 7;
}

/* The thread that forked goes on in the child, beside another that starts runtimes: their ends wait
 * for its calls. */
static int over;
static void nothing(void *arg) {}
static void receives(void *arg) {
    for (;;) gort_chan_recv(nobody, NULL);
}
static int ends_soon(int argc, char **argv) {
    for (int i = 0; i < 8; i++) gort_go(receives, NULL);
    gort_sleep(200 * GORT_US);
    return 0;
}
static void *starts(void *arg) {
    for (int i = 0; i < 300 / TEST_SCALE; i++) CHECK_EQ(gort_main(ends_soon, 0, NULL), 0);
    set(&over, 1);
    return NULL;
}
static int goes_on(void) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, starts, NULL), 0);
    while (!get(&over)) {
        gort_chan_try_send(nobody, NULL);
        gort_go(nothing, NULL);
        gort_timer *timer = gort_timer_new(GORT_MS, nothing, NULL);
        if (timer) gort_timer_free(timer);
    }
    return 7;
}

/* Threads of the parent begin and end, wait for a mutex and have deadlines: the child finds none of
 * the locks that these share with everybody held. */
static int enough;
static gort_mutex taken_in_turn;
static void *comes_and_goes(void *arg) {
    gort_mutex_lock(&taken_in_turn);
    gort_mutex_unlock(&taken_in_turn);
    return NULL;
}
static void *many_come_and_go(void *arg) {
    for (pthread_t t[4]; !get(&enough);) {
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, comes_and_goes, NULL), 0);
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    }
    return NULL;
}
static void *has_deadlines(void *arg) {
    while (!get(&enough)) gort_ctx_release(gort_ctx_with_deadline(NULL, gort_now() + GORT_SEC));
    return NULL;
}
static void *in_child(void *arg) {
    gort_yield();
    gort_ctx_release(gort_ctx_with_deadline(NULL, gort_now() + GORT_SEC));
    return NULL;
}
static int fresh_thread(void) {
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, in_child, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 7;
}

static int status_of(int (*body)(int, char **), int (*instead)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60); /* instead of the whole test */
        if (body == deadlocks) close(2);
        _exit(body ? gort_main(body, 0, NULL) : instead());
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void forks_beside_a_crowd(void) {
    pthread_t crowd[3];
    /* the locks of a sanitizer's own allocator are as they were in the parent */
    if (SANITIZED) return;
    CHECK_EQ(pthread_create(&crowd[0], NULL, has_deadlines, NULL), 0);
    for (int i = 1; i < 3; i++)
        CHECK_EQ(pthread_create(&crowd[i], NULL, many_come_and_go, NULL), 0);
    for (int i = 0; i < 1000 / TEST_SCALE; i++) CHECK_EQ(status_of(NULL, fresh_thread), 7);
    set(&enough, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(crowd[i], NULL), 0);
}

int main(int argc, char **argv) {
    pthread_t t;
    nobody = gort_chan_new(0, 0);
    CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
    CHECK_EQ(status_of(deadlocks, NULL), 2);
    forks_beside_a_crowd();
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t, NULL, uses, NULL), 0);
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED) < 1000) sched_yield();
    for (int i = 0; i < 20; i++) CHECK_EQ(status_of(returns, NULL), 7);
    CHECK_EQ(gort_main(leaves_many, argc, argv), 0);
    CHECK_EQ(status_of(counts, NULL), 7);
    CHECK_EQ(status_of(NULL, goes_on), 7);
    _exit(0);
}
