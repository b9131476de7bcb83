/* What some threads do together; the director counts afterwards. */
#include "whole.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { TURNS = 60 };
static void nothing(Player *p) {}
static void all_turns(Player *p) { IS(p, p->word, p->n * TURNS); }
static void pauses(Player *p, int i, int k) {
    switch (pick(p, (unsigned)(i * 1000 + k), 40)) {
    case 0: usleep(pick(p, (unsigned)k, 300)); break;
    case 1:
    case 2: sched_yield(); break;
    default: break;
    }
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void mutex_make(Player *p) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, (int)pick(p, 1, 4));
    if (pick(p, 2, 3) == 0) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (pick(p, 3, 3) == 0) pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    if (pick(p, 4, 3) == 0) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_mutex_init(&p->mu, &attr), 0);
    IS(p, pthread_cond_init(&p->cond, NULL), 0);
}
static void locks(Player *p, int i, int k) {
    struct timespec soon;
    switch (pick(p, (unsigned)(i * 77 + k), 4)) {
    case 0:
        while (pthread_mutex_trylock(&p->mu) != 0) sched_yield();
        break;
    case 1: do { soon = from_ns(now_ns(CLOCK_REALTIME) + 50000);
        } while (pthread_mutex_timedlock(&p->mu, &soon) != 0);
        break;
    default: IS(p, pthread_mutex_lock(&p->mu), 0);
    }
}
static void mutex_member(Player *p, int i) {
    for (int k = 0; k < TURNS; k++) {
        locks(p, i, k);
        int was = p->word;
        pauses(p, i, k);
        p->word = was + 1;
        IS(p, pthread_mutex_unlock(&p->mu), 0);
    }
}
static void mutex_settle(Player *p) {
    all_turns(p);
    IS(p, pthread_mutex_destroy(&p->mu), 0);
}

/* Owners die, one behind the other. */
static void robust_make(Player *p) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (pick(p, 1, 2)) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_mutex_init(&p->mu, &attr), 0);
}
static void robust_member(Player *p, int i) {
    int r = pthread_mutex_lock(&p->mu);
    if (r == EOWNERDEAD) {
        p->ready++;
        IS(p, pthread_mutex_consistent(&p->mu), 0);
        r = 0;
    }
    IS(p, r, 0);
    p->word++;
    pauses(p, i, 0);
}
static void robust_settle(Player *p) {
    IS(p, p->word, p->n);
    IS(p, p->ready, p->n - 1);
}

static void rw_make(Player *p) {
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, (int)pick(p, 1, 3));
    IS(p, pthread_rwlock_init(&p->rw, &attr), 0);
}
static void rw_member(Player *p, int i) {
    for (int k = 0; k < TURNS; k++) {
        if ((i + k) % 3) {
            IS(p, pthread_rwlock_rdlock(&p->rw), 0);
            IS(p, p->word, p->ready);
            pauses(p, i, k);
            IS(p, p->word, p->ready);
        } else {
            IS(p, pthread_rwlock_wrlock(&p->rw), 0);
            p->word++;
            pauses(p, i, k);
            p->ready++;
        }
        IS(p, pthread_rwlock_unlock(&p->rw), 0);
    }
}
static void spin_make(Player *p) { pthread_spin_init(&p->spin, 0); }
static void spin_member(Player *p, int i) {
    for (int k = 0; k < TURNS; k++) {
        IS(p, pthread_spin_lock(&p->spin), 0);
        p->word++;
        IS(p, pthread_spin_unlock(&p->spin), 0);
        pauses(p, i, k);
    }
}

/* ---- conditions, barriers, semaphores -------------------------------------------------------- */

/* A queue with room for three: the even members put, the odd ones take. */
static void queue_member(Player *p, int i) {
    int pairs = p->n / 2;
    if (i / 2 >= pairs) return;
    for (int k = 0; k < TURNS; k++) {
        IS(p, pthread_mutex_lock(&p->mu), 0);
        while (i % 2 ? p->ready == 0 : p->ready == 3) pthread_cond_wait(&p->cond, &p->mu);
        p->ready += i % 2 ? -1 : 1;
        if (i % 2) p->word++;
        pthread_cond_broadcast(&p->cond);
        IS(p, pthread_mutex_unlock(&p->mu), 0);
        pauses(p, i, k);
    }
}
static void queue_make(Player *p) { mutex_make(p); }
static void queue_settle(Player *p) {
    IS(p, p->word, p->n / 2 * TURNS);
    IS(p, pthread_cond_destroy(&p->cond), 0);
}
/* Turns, in order; each wakes all, or has a short deadline. */
static void turns_member(Player *p, int i) {
    for (int k = 0; k < TURNS / 4; k++) {
        IS(p, pthread_mutex_lock(&p->mu), 0);
        while (p->word % p->n != i) {
            struct timespec soon = from_ns(now_ns(CLOCK_REALTIME) + 500000);
            if (k % 2) pthread_cond_timedwait(&p->cond, &p->mu, &soon);
            else pthread_cond_wait(&p->cond, &p->mu);
        }
        p->word++;
        pthread_cond_broadcast(&p->cond);
        IS(p, pthread_mutex_unlock(&p->mu), 0);
    }
}
static void turns_settle(Player *p) { IS(p, p->word, p->n * (TURNS / 4)); }

static void barrier_make(Player *p) {
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    if (pick(p, 1, 4) == 0) pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    IS(p, pthread_barrier_init(&p->barrier, &attr, (unsigned)p->n), 0);
}
static void barrier_member(Player *p, int i) {
    for (int k = 0; k < COUNTS; k++) {
        add(&p->counts[k], 1);
        int r = pthread_barrier_wait(&p->barrier);
        if (r == PTHREAD_BARRIER_SERIAL_THREAD) add(&p->word, 1);
        else IS(p, r, 0);
        IS(p, get(&p->counts[k]), p->n);
    }
}
static void barrier_settle(Player *p) {
    IS(p, p->word, COUNTS);
    IS(p, pthread_barrier_destroy(&p->barrier), 0);
}
static void sem_make(Player *p) { sem_init(&p->sem, 0, 2); }
static void sem_member(Player *p, int i) {
    for (int k = 0; k < TURNS; k++) {
        while (sem_wait(&p->sem) != 0) IS(p, errno, EINTR);
        HOLDS(p, add(&p->ready, 1) <= 2);
        add(&p->word, 1);
        pauses(p, i, k);
        add(&p->ready, -1);
        IS(p, sem_post(&p->sem), 0);
    }
}
static void futex_member(Player *p, int i) { /* a lock of one's own: 0, 1, 2: somebody waits */
    for (int k = 0; k < TURNS; k++) {
        int c = 0;
        if (!__atomic_compare_exchange_n(&p->id, &c, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            if (c != 2) c = __atomic_exchange_n(&p->id, 2, __ATOMIC_SEQ_CST);
            while (c) {
                syscall(SYS_futex, &p->id, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
                c = __atomic_exchange_n(&p->id, 2, __ATOMIC_SEQ_CST);
            }
        }
        p->word++;
        pauses(p, i, k);
        if (__atomic_exchange_n(&p->id, 0, __ATOMIC_SEQ_CST) == 2)
            syscall(SYS_futex, &p->id, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void pipe_make(Player *p) { HOLDS(p, pipe(p->fd) == 0); }
static void pipe_settle(Player *p) {
    all_turns(p);
    close(p->fd[0]), close(p->fd[1]);
}
static void pipe_member(Player *p, int i) { /* a token goes around */
    char c = 'x';
    if (i == 0) IS(p, write(p->fd[1], &c, 1), 1);
    for (int k = 0; k < TURNS; k++) {
        while (read(p->fd[0], &c, 1) != 1) IS(p, errno, EINTR);
        p->word++;
        IS(p, write(p->fd[1], &c, 1), 1);
    }
}
static void epoll_make(Player *p) { /* one shot each */
    struct epoll_event e = {EPOLLIN | EPOLLONESHOT, {0}};
    p->fd[0] = eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE);
    p->fd[1] = epoll_create1(0);
    HOLDS(p, epoll_ctl(p->fd[1], EPOLL_CTL_ADD, p->fd[0], &e) == 0);
}
static void epoll_member(Player *p, int i) {
    struct epoll_event e;
    eventfd_t v;
    for (int k = 0; k < TURNS; k++) {
        int r;
        while ((r = epoll_wait(p->fd[1], &e, 1, -1)) < 0) IS(p, errno, EINTR);
        IS(p, r, 1);
        IS(p, eventfd_read(p->fd[0], &v), 0);
        p->word++;
        pauses(p, i, k);
        IS(p, eventfd_write(p->fd[0], 1), 0);
        e.events = EPOLLIN | EPOLLONESHOT;
        IS(p, epoll_ctl(p->fd[1], EPOLL_CTL_MOD, p->fd[0], &e), 0);
    }
}

static void stdio_make(Player *p) { p->file = tmpfile(); }
static void stdio_member(Player *p, int i) {
    for (int k = 0; k < TURNS; k++) {
        if (k % 3 == 0) flockfile(p->file);
        fprintf(p->file, "member %d line", i);
        if (k % 3 == 0) pauses(p, i, k);
        fprintf(p->file, "%s", "");
        if (k % 3 == 0) fputc('.', p->file), funlockfile(p->file);
        add(&p->word, 1);
    }
}
static void stdio_settle(Player *p) {
    int lines = 0, dots = 0, c;
    all_turns(p);
    rewind(p->file);
    while ((c = getc(p->file)) != EOF) lines += c == 'l', dots += c == '.';
    IS(p, lines, p->n * TURNS);
    IS(p, dots, p->n * TURNS / 3);
    fclose(p->file);
}

/* ---- threads and their own ------------------------------------------------------------------- */

static __thread int own[100];
static void tls_member(Player *p, int i) {
    for (int k = 0; k < 100; k++) IS(p, own[k], 0);
    for (int k = 0; k < TURNS; k++) {
        own[k] = i + k;
        errno = i + 100;
        pauses(p, i, k);
        sched_yield();
        IS(p, own[k], i + k);
        add(&p->word, 1);
    }
}
static void key_gone(void *count) { add(count, 1); }
static void keys_make(Player *p) { pthread_key_create(&p->key, key_gone); }
static void *sets_key(void *arg) {
    Player *p = arg;
    pthread_setspecific(p->key, &p->word);
    return NULL;
}
static void keys_member(Player *p, int i) {
    for (int k = 0; k < 10; k++) {
        pthread_key_t other;
        IS(p, pthread_key_create(&other, NULL), 0);
        HOLDS(p, pthread_getspecific(other) == NULL);
        pthread_setspecific(other, &other);
        finish(helper(sets_key, p));
        HOLDS(p, pthread_getspecific(other) == &other);
        IS(p, pthread_key_delete(other), 0);
    }
    sets_key(p);
}
static void keys_settle(Player *p) {
    IS(p, p->word, p->n * 11);
    pthread_key_delete(p->key);
}
static void *lives(void *count) {
    add(count, 1);
    return NULL;
}
static void churn_member(Player *p, int i) {
    for (int k = 0; k < 20; k++) {
        pthread_t t = helper(lives, &p->word);
        if (k % 3 == 0) IS(p, pthread_detach(t), 0);
        else finish(t);
    }
}
static void churn_settle(Player *p) { wait_until(get(&p->word) == p->n * 20); }
static void *waits_for_ever(void *arg) {
    Player *p = arg;
    struct pollfd none = {p->fd[0], POLLIN, 0};
    char c;
    for (;;) switch (pick(p, (unsigned)add(&p->made, 1), 6)) {
        case 0: read(p->fd[0], &c, 1); break;
        case 1: poll(&none, 1, -1); break;
        case 2: sem_wait(&p->sem); break;
        case 3: pause(); break;
        case 4: usleep(50); break;
        default: sleep(1000); break;
        }
    return NULL;
}
static void cancel_make(Player *p) { pipe_make(p), sem_init(&p->sem, 0, 0); }
static void cancel_member(Player *p, int i) {
    for (int k = 0; k < 10; k++) {
        void *value;
        pthread_t t = helper(waits_for_ever, p);
        pauses(p, i, k);
        if (k % 2) usleep(pick(p, (unsigned)k, 200));
        IS(p, pthread_cancel(t), 0);
        IS(p, pthread_join(t, &value), 0);
        HOLDS(p, value == PTHREAD_CANCELED);
    }
}
static void cancel_settle(Player *p) { close(p->fd[0]), close(p->fd[1]); }

static pthread_once_t once[PLAYERS];
static Player *once_of;
static pthread_mutex_t once_mutex = PTHREAD_MUTEX_INITIALIZER;
static void initializes(void) {
    usleep(200);
    add(&once_of->word, 1);
}
static void once_make(Player *p) {
    pthread_mutex_lock(&once_mutex); /* until it is settled: the routine knows no player */
    once_of = p;
    once[p->index] = (pthread_once_t)PTHREAD_ONCE_INIT;
}
static void once_member(Player *p, int i) {
    IS(p, pthread_once(&once[p->index], initializes), 0);
    IS(p, get(&p->word), 1);
}
static void once_settle(Player *p) { pthread_mutex_unlock(&once_mutex); }

/* ---- processes, signals, memory -------------------------------------------------------------- */

static void fork_member(Player *p, int i) {
    for (int k = 0; k < 3; k++) {
        pid_t pid = fork();
        HOLDS(p, pid >= 0);
        if (pid == 0) {
            pthread_t t;
            int n = i;
            free(malloc(1000));
            if (k == 1 && (pthread_create(&t, NULL, lives, &n) || pthread_join(t, NULL))) _exit(98);
            _exit(n);
        }
        IS(p, ends_child(pid), (i + (k == 1)) << 8);
    }
}
static void popen_member(Player *p, int i) {
    char line[20] = "";
    FILE *f = popen("echo there", "re");
    HOLDS(p, f && fgets(line, sizeof line, f));
    IS(p, strcmp(line, "there\n"), 0);
    IS(p, pclose(f), 0);
    IS(p, system("exit 4"), 4 << 8);
}
/* Member 0 sends to each of the others, which wait for signals. */
static void signal_make(Player *p) { sem_init(&p->sem, 0, 0); }
static void signal_member(Player *p, int i) {
    siginfo_t info;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIG_AWAITED);
    if (i == 0) {
        for (int k = 1; k < p->n; k++)
            while (sem_wait(&p->sem) != 0) {}
        for (int k = 0; k < TURNS; k++)
            for (int j = 1; j < p->n; j++)
                while (pthread_sigqueue(p->members[j], SIG_AWAITED, (union sigval){k}) != 0)
                    nap(50);
        return;
    }
    IS(p, sem_post(&p->sem), 0);
    for (int k = 0; k < TURNS; k++) {
        while (sigwaitinfo(&one, &info) < 0) IS(p, errno, EINTR);
        IS(p, info.si_value.sival_int, k);
        add(&p->word, 1);
    }
}
static void signal_settle(Player *p) { IS(p, p->word, (p->n - 1) * TURNS); }
/* To the process: each is taken by one. */
static void process_member(Player *p, int i) {
    int s;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIG_ALONE + p->index);
    for (int k = 0; k < TURNS / 4; k++) {
        while (sigqueue(getpid(), SIG_ALONE + p->index, (union sigval){k}) != 0) nap(50);
        IS(p, sigwait(&one, &s), 0);
        add(&p->word, 1);
    }
}
static void process_settle(Player *p) { IS(p, p->word, p->n * (TURNS / 4)); }
static void malloc_member(Player *p, int i) { /* freed by others */
    for (int k = 0; k < TURNS; k++) {
        void *mine = malloc(10 + pick(p, (unsigned)(k * 13 + i), 3000));
        free(__atomic_exchange_n(&p->p, mine, __ATOMIC_SEQ_CST));
        add(&p->word, 1);
        pauses(p, i, k);
    }
}
static void malloc_settle(Player *p) {
    all_turns(p);
    free(p->p);
}
static void load_member(Player *p, int i) {
    for (int k = 0; k < 5; k++) {
        void *lib = dlopen("libm.so.6", RTLD_NOW);
        HOLDS(p, lib && dlsym(lib, "sin"));
        IS(p, dlclose(lib), 0);
    }
}
static void semop_make(Player *p) { HOLDS(p, (p->id = semget(IPC_PRIVATE, p->n, 0600)) >= 0); }
static void semop_member(Player *p, int i) { /* around, each wakes the next */
    struct sembuf up = {(unsigned short)((i + 1) % p->n), 1, 0}, down = {(unsigned short)i, -1, 0};
    for (int k = 0; k < TURNS / 2; k++) {
        if (i == 0) IS(p, semop(p->id, &up, 1), 0);
        while (semop(p->id, &down, 1) != 0) IS(p, errno, EINTR);
        p->word++;
        if (i != 0) IS(p, semop(p->id, &up, 1), 0);
    }
}
static void semop_settle(Player *p) {
    IS(p, p->word, p->n * (TURNS / 2));
    semctl(p->id, 0, IPC_RMID);
}

#define CROWD(name_, make_, member_, settle_) \
    { {.name = name_}, make_, member_, settle_ }
const Crowd crowds[] = {
    CROWD("mutex", mutex_make, mutex_member, mutex_settle),
    CROWD("robust", robust_make, robust_member, robust_settle),
    CROWD("rwlock", rw_make, rw_member, nothing),
    CROWD("spin", spin_make, spin_member, all_turns),
    CROWD("queue", queue_make, queue_member, queue_settle),
    CROWD("turns", mutex_make, turns_member, turns_settle),
    CROWD("barrier", barrier_make, barrier_member, barrier_settle),
    CROWD("sem", sem_make, sem_member, all_turns),
    CROWD("futex", nothing, futex_member, all_turns),
    CROWD("pipe", pipe_make, pipe_member, pipe_settle),
    CROWD("epoll", epoll_make, epoll_member, pipe_settle),
    CROWD("stdio", stdio_make, stdio_member, stdio_settle),
    CROWD("tls", nothing, tls_member, all_turns),
    CROWD("keys", keys_make, keys_member, keys_settle),
    CROWD("churn", nothing, churn_member, churn_settle),
    CROWD("cancel", cancel_make, cancel_member, cancel_settle),
    CROWD("once", once_make, once_member, once_settle),
    CROWD("fork", nothing, fork_member, nothing),
    CROWD("popen", nothing, popen_member, nothing),
    CROWD("signal", signal_make, signal_member, signal_settle),
    CROWD("process", nothing, process_member, process_settle),
    CROWD("malloc", nothing, malloc_member, malloc_settle),
    CROWD("load", nothing, load_member, nothing),
    CROWD("semop", semop_make, semop_member, semop_settle),
    {{.name = NULL}, NULL, NULL, NULL},
};
