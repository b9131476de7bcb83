/* Signals, masks and cancellation at random, for SIGNALS_SECONDS (1), all at once, and counted:
 *
 *   - threads are cancelled at any moment of any wait: each ends as cancelled, its cleanup handlers
 *     and its keys' destructors have run once;
 *   - queued signals to threads that change their masks, jump out of handlers, and wait in every
 *     way: each comes, once, to its thread, with its value;
 *   - queued signals to threads that have just begun, and to some that are about to end;
 *   - queued signals to the process: each comes, once, to any;
 *   - children of fork meanwhile: the mask is the forker's, and its own signals work.
 */
#include "threads_test.h"

#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

enum { TARGETS = 6, CANCELLERS = 3, YOUNG = 2, BURST = 5, WINDOW = 200 };
static int ending; /* atomic */
static bool over(void) { return __atomic_load_n(&ending, __ATOMIC_SEQ_CST); }
static long add(long *at, long n) { return __atomic_add_fetch(at, n, __ATOMIC_SEQ_CST); }
static long at(long *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }

static __thread uint64_t seed;
static unsigned pick(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}
static void begin_as(int number) {
    seed = (uint64_t)number * 0x9E3779B97F4A7C15u + (uint64_t)time(NULL);
    pick(2);
}

/* SIGRTMIN: to a target; + 1: to a young one; + 2: to the process; + 3: never sent. */
static int signo_of(int which) { return SIGRTMIN + which; }
static void one_set(sigset_t *set, int which) {
    sigemptyset(set);
    sigaddset(set, signo_of(which));
}

static long lost_waits; /* handlers that jumped */
static long cancels, young_lives, children, process_sent, process_got;

/* ---- cancelled ------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static sem_t never;
static int pipes[2];
static pthread_t forever;

typedef struct Victim {
    int how;
    unsigned spin;
    long cleaned, destroyed; /* atomic */
} Victim;

static void cleaned(void *arg) { add(&((Victim *)arg)->cleaned, 1); }
static void destroyed(void *arg) { add(&((Victim *)arg)->destroyed, 1); }
static void unlocks(void *arg) { CHECK(pthread_mutex_unlock(arg) == 0); }

static void wait_cond(void) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(unlocks, &mutex);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    if ((soon.tv_nsec += 300000) >= 1000000000) soon.tv_nsec = 0, soon.tv_sec++;
    for (int i = 0;; i++)
        if (i % 2) pthread_cond_timedwait(&cond, &mutex, &soon);
        else pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
}

static void wait_somehow(int how) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    sigset_t none;
    char c;
    switch (how) {
    case 0: read(pipes[0], &c, 1); break;
    case 1: poll(&p, 1, -1); break;
    case 2: sem_wait(&never); break;
    case 3: wait_cond(); break;
    case 4: pthread_join(forever, NULL); break;
    case 5: pause(); break;
    case 6: one_set(&none, 3), sigwaitinfo(&none, NULL); break;
    case 7: sleep(1000); break;
    case 8: usleep(pick(300)); break;
    case 9:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        for (volatile long n = 0;; n++) {}
    case 10:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        pthread_mutex_lock(&held);
        abort();
    case 11: pthread_testcancel(); break;
    case 12:
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        usleep(pick(300));
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
        break;
    case 13: p.events = 0, ppoll(&p, 1, NULL, NULL); break;
    }
}
enum { WAYS = 14 };

static void *victim(void *arg) {
    Victim *v = arg;
    begin_as((int)(intptr_t)v);
    CHECK(pthread_setspecific(key, v) == 0);
    pthread_cleanup_push(cleaned, v);
    for (volatile unsigned i = 0; i < v->spin; i++) {}
    for (;;) wait_somehow(v->how);
    pthread_cleanup_pop(0);
    return NULL;
}

/* Nothing is a point before the victim has set the key and pushed the handler. */
static void *canceller(void *arg) {
    sigset_t set;
    begin_as((int)(intptr_t)arg);
    one_set(&set, 2);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* an asynchronous cancel ends a handler, too */
    while (!over()) {
        pthread_t thread;
        void *value;
        Victim v = {.how = (int)pick(WAYS), .spin = pick(3) ? 0 : pick(20000)};
        CHECK(pthread_create(&thread, NULL, victim, &v) == 0);
        if (pick(2)) usleep(pick(400));
        else
            for (volatile unsigned i = pick(20000); i; i--) {}
        if (pick(4) == 0) pthread_cond_broadcast(&cond);
        CHECK(pthread_cancel(thread) == 0);
        if (pick(4) == 0) pthread_cancel(thread);
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
        CHECK(at(&v.cleaned) == 1 && at(&v.destroyed) == 1);
        add(&cancels, 1);
    }
    return NULL;
}

/* ---- targets --------------------------------------------------------------------------------- */

typedef struct Target {
    pthread_t thread;
    long sent, got; /* atomic */
    uint64_t sent_sum;
    volatile uint64_t got_sum;
    sigjmp_buf back;
    volatile sig_atomic_t jumps; /* handlers may jump now */
} Target;
static Target targets[TARGETS];
static __thread Target *volatile me;

static void arrives(int signo, siginfo_t *info, void *context) {
    int err = errno;
    CHECK(me && pthread_equal(pthread_self(), me->thread));
    CHECK(info->si_code == SI_QUEUE && info->si_errno == 0);
    me->got_sum = me->got_sum + (uint64_t)info->si_value.sival_int;
    add(&me->got, 1);
    errno = err;
    if (me->jumps && pick(2)) {
        me->jumps = 0;
        add(&lost_waits, 1);
        siglongjmp(me->back, 1);
    }
}

/* The signal comes in the wait only, and by the wait. */
static void takes_by_wait(sigset_t *set) {
    siginfo_t info;
    struct timespec soon = {0, (long)pick(200000)};
    pthread_sigmask(SIG_BLOCK, set, NULL);
    if (sigtimedwait(set, &info, &soon) > 0) {
        CHECK(info.si_code == SI_QUEUE && info.si_errno == 0);
        me->got_sum = me->got_sum + (uint64_t)info.si_value.sival_int;
        add(&me->got, 1);
    }
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

static void target_lives(sigset_t *set) {
    sigset_t was;
    struct timespec soon = {0, (long)pick(200000)};
    switch (pick(8)) {
    case 0:
        CHECK(pthread_sigmask(SIG_BLOCK, set, &was) == 0 && !sigismember(&was, signo_of(0)));
        if (pick(2)) usleep(pick(100));
        CHECK(pthread_sigmask(SIG_UNBLOCK, set, &was) == 0 && sigismember(&was, signo_of(0)));
        break;
    case 1: takes_by_wait(set); break;
    case 2:
        if (sigsetjmp(me->back, 1) == 0) {
            me->jumps = 1;
            if (pick(2)) nanosleep(&soon, NULL);
            else
                for (volatile unsigned i = pick(20000); i; i--) {}
        }
        me->jumps = 0;
        break;
    case 3:
        pthread_sigmask(SIG_BLOCK, set, &was);
        ppoll(NULL, 0, &soon, &was);
        pthread_sigmask(SIG_UNBLOCK, set, NULL);
        break;
    case 4: nanosleep(&soon, NULL); break;
    case 5: poll(NULL, 0, 1); break;
    case 6: sched_yield(); break;
    case 7:
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        break;
    }
}

static void *target(void *arg) {
    sigset_t set;
    me = arg;
    begin_as((int)(me - targets));
    one_set(&set, 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (!over() || at(&me->got) != at(&me->sent)) target_lives(&set);
    return NULL;
}

static void *sender(void *arg) {
    begin_as(100);
    for (int i = 0; !over(); i++) {
        Target *t = &targets[pick(TARGETS)];
        union sigval value = {.sival_int = i};
        if (at(&t->sent) - at(&t->got) > WINDOW) continue;
        add(&t->sent, 1); /* first: its thread ends when all have come */
        t->sent_sum += (uint64_t)i;
        int r;
        while ((r = pthread_sigqueue(t->thread, signo_of(0), value)) == EAGAIN) usleep(100);
        CHECK(r == 0);
        if (pick(20) == 0) usleep(pick(500));
    }
    return NULL;
}

/* ---- young and old --------------------------------------------------------------------------- */

typedef struct Life {
    pthread_t thread;
    bool waits;
    volatile long got; /* its own */
} Life;
static __thread Life *volatile life;

static void in_life(int signo, siginfo_t *info, void *context) {
    if (life) life->got = life->got + 1;
}
static void *lives(void *arg) {
    Life *l = arg;
    life = l;
    sigset_t set;
    one_set(&set, 1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (l->waits && l->got < BURST) sched_yield();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    life = NULL;
    return NULL;
}

/* It blocks the signal, and so do they at first: none may come before it knows its life. */
static void *maker(void *arg) {
    begin_as((int)(intptr_t)arg);
    while (!over()) {
        Life l = {.waits = pick(2)};
        CHECK(pthread_create(&l.thread, NULL, lives, &l) == 0);
        if (pick(3) == 0) usleep(pick(100));
        for (int i = 0; i < BURST; i++) {
            int r = pthread_sigqueue(l.thread, signo_of(1), (union sigval){.sival_int = i});
            CHECK(r == 0 || r == EAGAIN || !l.waits);
            if (r == EAGAIN) i--, usleep(100);
        }
        CHECK(pthread_join(l.thread, NULL) == 0);
        CHECK(l.got <= BURST && (!l.waits || l.got == BURST));
        add(&young_lives, 1);
    }
    return NULL;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void to_any(int signo, siginfo_t *info, void *context) { add(&process_got, 1); }

static void *process_sender(void *arg) {
    begin_as(200);
    while (!over()) {
        if (at(&process_sent) - at(&process_got) > WINDOW) {
            usleep(100);
            continue;
        }
        add(&process_sent, 1);
        while (sigqueue(getpid(), signo_of(2), (union sigval){0}) != 0) CHECK(errno == EAGAIN);
        if (pick(10) == 0) usleep(pick(500));
    }
    return NULL;
}

/* ---- children -------------------------------------------------------------------------------- */

static volatile sig_atomic_t child_hits;
static void in_child(int signo) { child_hits = child_hits + 1; }

static int child(bool blocked) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    if (sigismember(&set, SIGUSR2) != blocked) return 1;
    if (pthread_kill(pthread_self(), SIGUSR2) != 0 || child_hits != !blocked) return 2;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return child_hits == 1 ? 0 : 3;
}

static void *forker(void *arg) {
    sigset_t set;
    begin_as(300);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    while (!over()) {
        int status;
        bool blocked = pick(2);
        pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) _exit(child(blocked));
        CHECK(waitpid(pid, &status, 0) == pid);
        if (status) fprintf(stderr, "the child says %x\n", (unsigned)status);
        CHECK(status == 0);
        add(&children, 1);
        usleep(1000 + pick(3000));
    }
    return NULL;
}

/* ---- main ------------------------------------------------------------------------------------ */

static void *sleeps(void *arg) {
    sem_wait(&never);
    return NULL;
}

static void handle(int signo, void (*fn)(int, siginfo_t *, void *)) {
    struct sigaction act = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&act.sa_mask);
    CHECK(sigaction(signo, &act, NULL) == 0);
}

static pthread_t made[32];
static int making;
static void make(void *(*fn)(void *), int number) {
    CHECK(pthread_create(&made[making++], NULL, fn, (void *)(intptr_t)number) == 0);
}

int main(void) {
    const char *word = getenv("SIGNALS_SECONDS");
    int seconds = word ? atoi(word) : 1;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 4; i++)
        if (i != 2) sigaddset(&set, signo_of(i));
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* whoever is to take one unblocks it */
    handle(signo_of(0), arrives);
    handle(signo_of(1), in_life);
    handle(signo_of(2), to_any);
    signal(SIGUSR2, in_child);
    sem_init(&never, 0, 0);
    CHECK(pipe(pipes) == 0 && pthread_key_create(&key, destroyed) == 0);
    CHECK(pthread_mutex_lock(&held) == 0);
    CHECK(pthread_create(&forever, NULL, sleeps, NULL) == 0);
    for (int i = 0; i < TARGETS; i++)
        CHECK(pthread_create(&targets[i].thread, NULL, target, &targets[i]) == 0);
    for (int i = 0; i < CANCELLERS; i++) make(canceller, i + 1);
    for (int i = 0; i < YOUNG; i++) make(maker, i + 20);
    make(sender, 0);
    make(process_sender, 0);
    make(forker, 0);
    time_t end = time(NULL) + seconds;
    while (time(NULL) < end) usleep(10000);
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    while (making) CHECK(pthread_join(made[--making], NULL) == 0);
    for (int i = 0; i < TARGETS; i++) {
        Target *t = &targets[i];
        CHECK(pthread_join(t->thread, NULL) == 0);
        CHECK(t->got == t->sent && t->got_sum == t->sent_sum);
    }
    wait_until(at(&process_got) == at(&process_sent));
    usleep(1000);
    CHECK(at(&process_got) == at(&process_sent));
    CHECK(cancels > 0 && young_lives > 0 && children > 0 && process_got > 0);
    if (word)
        printf("%ld cancelled, %ld short lives, %ld children, %ld to the process, %ld jumps, "
               "%ld to the first thread\n",
               cancels, young_lives, children, process_got, lost_waits, targets[0].got);
    return 0;
}
