/* However a thread is cancelled, its cleanup handlers and the destructors of its keys may do what
 * any code may: stdio, waits, locks that others want, and what concerns cancellation itself. */
#include "threads_test.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>

static sem_t begun, there, go;
static int empty[2], queue;
static FILE *out;
static pid_t child;
static pthread_key_t key;
static pthread_t target;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool flag; /* mutex */
static int acted; /* atomic */

/* ---- how it is cancelled --------------------------------------------------------------------- */

static void computing(void) {
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    for (volatile long n = 0;; n++) {}
}
static void in_wait(void) {
    for (;;) wait(NULL);
}
static void in_msgrcv(void) { msgrcv(queue, &(struct msgbuf){0}, 1, 0, 0); }
static void in_fgets(void) {
    char line[8];
    FILE *f = fdopen(dup(empty[0]), "r");
    CHECK(fgets(line, sizeof line, f) == NULL);
}
static void in_fopen(void) {
    for (;;) fclose(fopen("/dev/null", "r"));
}
static void in_read(void) { CHECK(read(empty[0], &(char){0}, 1) == 1); }
static void in_testcancel(void) {
    for (;;) pthread_testcancel();
}
static void when_enabled(void) {
    int old;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    sem_wait(&go); /* it is cancelled */
    CHECK(pthread_setcancelstate(old, NULL) == 0);
    pthread_testcancel();
}
static void exits(void) { pthread_exit(NULL); } /* no cancel: the others' measure */
static void (*const ways[])(void) = {computing, in_wait,       in_msgrcv,    in_fgets, in_fopen,
                                     in_read,   in_testcancel, when_enabled, exits};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- what is done then ----------------------------------------------------------------------- */

static void prints(void) {
    for (int i = 0; i < 3; i++) CHECK(fprintf(out, "%d %s\n", i, "lines") > 0 && fflush(out) == 0);
}
static void opens(void) {
    FILE *f = fopen("/dev/null", "w");
    CHECK(f && fprintf(f, "%d", 1) == 1 && fclose(f) == 0);
}
static void runs_shell(void) { CHECK(WEXITSTATUS(system("exit 3")) == 3); }
static void waits(void) {
    struct pollfd p = {empty[0], POLLIN, 0};
    CHECK(usleep(100) == 0 && poll(&p, 1, 0) == 0);
    pthread_testcancel();
}
static void cancels_itself(void) {
    CHECK(pthread_cancel(pthread_self()) == 0);
    pthread_testcancel();
    waits();
}
static void changes_type(void) {
    int old;
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old) == 0);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    waits();
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) == 0);
    prints();
}
static void *signals(void *arg) {
    CHECK(pthread_kill(target, SIGUSR1) == 0);
    return NULL;
}
static void takes_signals(void) {
    sigset_t set;
    pthread_t other;
    int signo;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    CHECK(sigtimedwait(&set, NULL, &(struct timespec){100, 0}) == SIGUSR1);
    CHECK(pthread_create(&other, NULL, signals, NULL) == 0);
    CHECK(sigwait(&set, &signo) == 0 && signo == SIGUSR1);
    CHECK(pthread_join(other, NULL) == 0);
}
static void *wants_flag(void *arg) {
    pthread_mutex_lock(&mutex);
    sem_post(&there);
    while (!flag) pthread_cond_wait(&cond, &mutex);
    flag = false;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
static void shares(void) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, wants_flag, NULL) == 0);
    while (sem_wait(&there) != 0) {}
    pthread_mutex_lock(&mutex);
    flag = true;
    pthread_cond_signal(&cond);
    while (flag) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_join(other, NULL) == 0);
}
static void forks(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        opens();
        _exit(4);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 4);
}
static void (*const acts[])(void) = {prints,       opens,         runs_shell, waits, cancels_itself,
                                     changes_type, takes_signals, shares,     forks};
enum { ACTS = sizeof acts / sizeof acts[0] };

/* ---- all of both ----------------------------------------------------------------------------- */

typedef struct Case {
    void (*way)(void), (*act)(void);
    bool destroys; /* a key's destructor does it */
} Case;

static void act(const Case *c) {
    c->act();
    __atomic_add_fetch(&acted, 1, __ATOMIC_SEQ_CST);
}
static void inner(void *arg) {
    const Case *c = arg;
    if (!c->destroys) act(c);
}
static void outer(void *arg) { prints(); }
static void destroy(void *arg) {
    const Case *c = arg;
    if (c->destroys) act(c);
}

static void *thread(void *arg) {
    const Case *c = arg;
    CHECK(pthread_setspecific(key, c) == 0);
    pthread_cleanup_push(outer, arg);
    pthread_cleanup_push(inner, arg);
    sem_post(&begun);
    c->way();
    CHECK(!"cancelled");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void one(Case c) {
    void *value;
    int before = __atomic_load_n(&acted, __ATOMIC_SEQ_CST);
    CHECK(pthread_create(&target, NULL, thread, &c) == 0);
    while (sem_wait(&begun) != 0) {}
    sched_yield();
    CHECK(pthread_cancel(target) == 0);
    if (c.way == when_enabled) sem_post(&go);
    CHECK(pthread_join(target, &value) == 0);
    CHECK(value == PTHREAD_CANCELED || c.way == exits);
    CHECK(__atomic_load_n(&acted, __ATOMIC_SEQ_CST) == before + 1);
}

int main(void) {
    CHECK(sem_init(&begun, 0, 0) == 0 && sem_init(&there, 0, 0) == 0 && sem_init(&go, 0, 0) == 0);
    CHECK(pipe(empty) == 0 && pthread_key_create(&key, destroy) == 0);
    CHECK((out = fopen("/dev/null", "w")) != NULL);
    CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
    CHECK((child = fork()) >= 0);
    if (child == 0) {
        for (;;) pause();
    }
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 2 * ACTS; i++) one((Case){ways[way], acts[i / 2], i % 2});
    CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    return 0;
}
