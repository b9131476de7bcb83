#define _GNU_SOURCE 1
/* A child that is made while no runtime runs, beside threads that use gort: they do not exist
 * there, and its runtime waits for none of them, neither at its end nor with the report of a
 * deadlock. */
#include "../lib/test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
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
static bool is_asleep(int tid) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = tid ? fopen(path, "r") : NULL;
    if (f == NULL) return false;
    char *at = fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
    fclose(f);
    return at && at[2] == 'S';
}
/* The thread is known to the library by then: it sleeps in the wait alone. */
static void begins(void *arg) {
    gort_chan_len(nobody);
    __atomic_store_n((int *)arg, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
}
static void *waits(void *arg) {
    begins(arg);
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

/* Threads of the parent begin and end, wait, and are in every sort of call that needs no runtime.
 * The child finds none of their locks held, and none of them among those that wait. */
static int enough;
/* An object on which threads of the parent wait is the program's affair: the child has its own. */
static struct Objects {
    gort_mutex mutex;
    gort_rwmutex rw;
    gort_cond cond;
    gort_sem sem;
    gort_chan *chan;
} * o;
static gort_ctx *root;

static int64_t soon(void) { return gort_now() + 100 * GORT_US; }
static void uses_mutex(void) {
    gort_mutex_lock(&o->mutex);
    gort_mutex_unlock(&o->mutex);
}
static void uses_rwmutex(void) {
    if (gort_rwmutex_lock_until(&o->rw, soon()) == 0) gort_rwmutex_unlock(&o->rw);
    if (gort_rwmutex_rlock_until(&o->rw, soon()) == 0) gort_rwmutex_runlock(&o->rw);
}
static void uses_sem(void) {
    if (gort_sem_acquire_until(&o->sem, 1, soon()) == 0) gort_sem_release(&o->sem, 1);
    gort_cond_signal(&o->cond);
}
static void uses_channel(void) {
    gort_chan_send_until(o->chan, NULL, soon());
    gort_chan_recv_until(o->chan, NULL, soon());
}
static void uses_contexts(void) {
    gort_ctx *c = gort_ctx_with_deadline(root, soon());
    gort_chan_recv(gort_ctx_done(c), NULL);
    gort_ctx_release(c);
}
static void uses_sockets(void) {
    char addr[40];
    snprintf(addr, sizeof addr, "unix:@fork_threads %d", (int)getpid());
    int fd = gort_listen(addr, 1);
    CHECKF(fd >= 0 || fd == -EADDRINUSE, "gort_listen: %d", fd);
    if (fd >= 0) gort_close(fd);
}
static void (*const usages[])(void) = {uses_mutex,   uses_rwmutex,  uses_sem,
                                       uses_channel, uses_contexts, uses_sockets};
enum { USAGES = sizeof usages / sizeof usages[0] };

static void *comes_and_goes(void *arg) {
    uses_mutex();
    return NULL;
}
static void *many_come_and_go(void *arg) {
    for (pthread_t t[4]; !get(&enough);) {
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, comes_and_goes, NULL), 0);
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    }
    return NULL;
}
static void *goes_on_using(void *arg) {
    while (!get(&enough)) ((void (*)(void))arg)();
    return NULL;
}
static void *in_child(void *arg) {
    gort_yield();
    for (int i = 0; i < USAGES; i++) usages[i]();
    return NULL;
}
static struct Objects *new_objects(void) {
    struct Objects *fresh = gort_alloc(sizeof *fresh);
    *fresh = (struct Objects){.chan = gort_chan_new(0, 0)};
    gort_sem_release(&fresh->sem, 1);
    return fresh;
}
static int fresh_thread(void) {
    pthread_t t;
    o = new_objects();
    CHECK_EQ(pthread_create(&t, NULL, in_child, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    in_child(NULL);
    return 7;
}

static int status_of(int (*body)(int, char **), int (*instead)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (body == deadlocks) close(2);
        _exit(body ? gort_main(body, 0, NULL) : instead());
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void forks_beside_a_crowd(void) {
    pthread_t crowd[USAGES + 1];
    /* the locks of a sanitizer's own allocator are as they were in the parent */
    if (SANITIZED) return;
    o = new_objects();
    root = gort_ctx_new(NULL);
    CHECK_EQ(pthread_create(&crowd[USAGES], NULL, many_come_and_go, NULL), 0);
    for (int i = 0; i < USAGES; i++)
        CHECK_EQ(pthread_create(&crowd[i], NULL, goes_on_using, (void *)usages[i]), 0);
    for (int i = 0; i < 100 / TEST_SCALE; i++) CHECK_EQ(status_of(NULL, fresh_thread), 7);
    set(&enough, 1);
    for (int i = 0; i <= USAGES; i++) CHECK_EQ(pthread_join(crowd[i], NULL), 0);
}

/* The deadline of a context that came along: the child's thread for it starts with a look. */
static gort_ctx *ends_soon_too;
static int looks(void) {
    return gort_chan_recv(gort_ctx_done(ends_soon_too), NULL) == -EPIPE ? 7 : 1;
}
static int waits_in_runtime(int argc, char **argv) { return looks(); }
static void deadlines_come(void) {
    int64_t before = gort_now() + 50 * GORT_MS;
    ends_soon_too = gort_ctx_with_deadline(NULL, before);
    CHECK_EQ(status_of(NULL, looks), 7);
    gort_ctx_release(ends_soon_too);
    ends_soon_too = gort_ctx_with_deadline(NULL, before + 100 * GORT_MS);
    gort_chan *done = gort_ctx_done(ends_soon_too);
    CHECK(done != NULL);
    CHECK_EQ(status_of(waits_in_runtime, NULL), 7);
    gort_ctx_release(ends_soon_too);
}

/* A watch that came along is one in the child; argc: of a child that watches once more. */
static gort_chan *signals;
static int watches(int argc, char **argv) { return gort_signal_notify(signals, SIGUSR1); }
static int hears(int argc, char **argv) {
    int signo = 0;
    if (argc) CHECK_EQ(watches(0, NULL), 0);
    kill(getpid(), SIGUSR1);
    CHECK_EQ(gort_chan_recv(signals, &signo), 0);
    return signo == SIGUSR1 ? 7 : 1;
}
static int hears_again(int argc, char **argv) { return hears(1, NULL); }
static void signals_come(void) {
    signals = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_main(watches, 0, NULL), 0);
    CHECK_EQ(status_of(hears, NULL), 7);
    CHECK_EQ(status_of(hears_again, NULL), 7);
    gort_signal_stop(signals);
}

/* A child of _Fork: threads of the parent that wait are not there either. */
static struct {
    gort_chan *ch;
    gort_sem sem;
    gort_mutex mu;
    gort_rwmutex rw;
} left;
static int waiting[4]; /* their numbers */
static void *waits_chan(void *arg) { return begins(arg), gort_chan_recv(left.ch, NULL), NULL; }
static void *waits_sem(void *arg) { return begins(arg), gort_sem_acquire(&left.sem, 1), NULL; }
static void *waits_mutex(void *arg) { return begins(arg), gort_mutex_lock(&left.mu), NULL; }
static void *waits_rwmutex(void *arg) { return begins(arg), gort_rwmutex_rlock(&left.rw), NULL; }
static void bare_child(void) {
    void *(*all[])(void *) = {waits_chan, waits_sem, waits_mutex, waits_rwmutex};
    pthread_t t;
    int status;
    left.ch = gort_chan_new(0, 0);
    gort_mutex_lock(&left.mu);
    gort_rwmutex_lock(&left.rw);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t, NULL, all[i], &waiting[i]), 0);
    /* a thread inside of a call would be another case */
    for (int i = 0; i < 4; i++) {
        wait_until(is_asleep(__atomic_load_n(&waiting[i], __ATOMIC_SEQ_CST)));
    }
    pid_t pid = _Fork();
    if (pid == 0) {
        CHECK_EQ(gort_chan_try_send(left.ch, NULL), -EAGAIN);
        gort_sem_release(&left.sem, 1);
        CHECK_EQ(gort_sem_try_acquire(&left.sem, 1), 0);
        gort_mutex_unlock(&left.mu);
        CHECK_EQ(gort_mutex_try_lock(&left.mu), 0);
        gort_rwmutex_unlock(&left.rw);
        CHECK_EQ(gort_rwmutex_lock_until(&left.rw, gort_now() + GORT_SEC), 0);
        _exit(7);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(int argc, char **argv) {
    static int waiter; /* atomic: its number */
    pthread_t t;
#ifdef __SANITIZE_THREAD__
    SKIP("TSan starts no threads in a child of a process with threads");
#endif
    nobody = gort_chan_new(0, 0);
    CHECK_EQ(pthread_create(&t, NULL, waits, &waiter), 0);
    if (SANITIZED) wait_until(is_asleep(__atomic_load_n(&waiter, __ATOMIC_SEQ_CST)));
    CHECK_EQ(status_of(deadlocks, NULL), 2);
    if (!SANITIZED) bare_child();
    deadlines_come();
    signals_come();
    forks_beside_a_crowd();
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t, NULL, uses, NULL), 0);
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED) < 1000) sched_yield();
    for (int i = 0; i < 20; i++) CHECK_EQ(status_of(returns, NULL), 7);
    CHECK_EQ(gort_main(leaves_many, argc, argv), 0);
    CHECK_EQ(status_of(counts, NULL), 7);
    CHECK_EQ(status_of(NULL, goes_on), 7);
    _exit(0);
}
