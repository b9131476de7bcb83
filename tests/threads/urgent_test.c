/* SIGURG, by which the runtime preempts, is the program's as any other signal: raise and
 * pthread_kill reach the handler, on the thread that they are for, also in a child of fork, whose
 * threads are the kernel's; so does what another process sends. The handler is there before the
 * first thread. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

static __thread volatile int mine;
static int all, ending; /* atomic */
static sem_t ready;

static void urgent(int signo) {
    mine = mine + 1;
    __atomic_add_fetch(&all, 1, __ATOMIC_SEQ_CST);
}
static int hits(void) { return __atomic_load_n(&all, __ATOMIC_SEQ_CST); }
static bool over(void) { return __atomic_load_n(&ending, __ATOMIC_SEQ_CST); }

static void *computes(void *arg) {
    sem_post(&ready);
    while (!over()) {}
    return (void *)(intptr_t)mine;
}
static void *waits(void *arg) {
    sem_post(&ready);
    while (!over()) usleep(1000);
    return (void *)(intptr_t)mine;
}

/* Each to the caller, to one that computes, to one that waits. */
static void reaches_threads(int each) {
    pthread_t threads[2];
    void *had;
    __atomic_store_n(&all, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ending, 0, __ATOMIC_SEQ_CST);
    mine = 0;
    CHECK(pthread_create(&threads[0], NULL, computes, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, waits, NULL) == 0);
    for (int i = 0; i < 2; i++)
        while (sem_wait(&ready) != 0) CHECK(errno == EINTR);
    for (int i = 0; i < each; i++) {
        CHECK(raise(SIGURG) == 0 && mine == 2 * i + 1);
        CHECK(pthread_kill(pthread_self(), SIGURG) == 0 && mine == 2 * i + 2);
        for (int t = 0; t < 2; t++) {
            int before = hits();
            CHECK(pthread_kill(threads[t], SIGURG) == 0);
            wait_until(hits() > before);
        }
    }
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    for (int t = 0; t < 2; t++) CHECK(pthread_join(threads[t], &had) == 0 && (intptr_t)had == each);
    CHECK(hits() == 4 * each);
}

static void comes_from_outside(void) {
    for (int i = 0; i < 20; i++) {
        int before = hits();
        pid_t pid = fork();
        if (pid == 0) _exit(kill(getppid(), SIGURG) == 0 ? 0 : 1);
        wait_until(hits() > before);
        CHECK(waitpid(pid, NULL, 0) == pid);
    }
}

static int raised(int signo) { return raise(signo); }
static int killed(int signo) { return kill(getpid(), signo); }

/* There is one thread: it has the signal when the call returns. */
static void may_be_blocked(int (*send)(int)) {
    sigset_t set, pending;
    int before = mine;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK(send(SIGURG) == 0 && mine == before);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGURG));
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    CHECK(mine == before + 1);
    CHECK(send(SIGURG) == 0 && mine == before + 2);
}

int main(void) {
    struct sigaction act = {.sa_handler = urgent, .sa_flags = SA_RESTART};
    int status;
    sigemptyset(&act.sa_mask);
    CHECK(sigaction(SIGURG, &act, NULL) == 0);
    sem_init(&ready, 0, 0);
    reaches_threads(20);
    may_be_blocked(raised);
    may_be_blocked(killed);
    comes_from_outside();
    pid_t pid = fork();
    if (pid == 0) {
        reaches_threads(20);
        may_be_blocked(raised);
        may_be_blocked(killed);
        _exit(3);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(signal(SIGURG, SIG_DFL) == urgent && raise(SIGURG) == 0);
    return 0;
}
