// not-with: emulation (it counts threads, and qemu has one of its own)
/* Children: of main before it has made a thread, as of a server that goes into the background; of
 * main and of another thread beside others. A child of threads has the one that forked, which is as
 * it was: its variables, its values under keys, its mutexes; it can make threads, and when it ends
 * the process ends. Handlers of pthread_atfork run; exec, posix_spawn, system and popen work. */
#include "threads_test.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static __thread int mine = 1;
static pthread_key_t key;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER; /* by the handlers */
static int prepared, in_parent, in_child;
static pthread_t forker;

static void prepare(void) {
    pthread_mutex_lock(&guarded);
    __atomic_add_fetch(&prepared, 1, __ATOMIC_SEQ_CST);
}
static void parent(void) {
    in_parent++;
    pthread_mutex_unlock(&guarded);
}
static void child(void) {
    in_child++;
    pthread_mutex_unlock(&guarded);
}

static int ends(pid_t pid) {
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void *adds(void *arg) {
    CHECK(mine == 1 && pthread_getspecific(key) == NULL);
    mine = 2;
    usleep(100);
    pthread_mutex_lock(&guarded);
    ++*(int *)arg;
    pthread_mutex_unlock(&guarded);
    return arg;
}

static void makes_threads(int n) {
    pthread_t threads[20];
    int sum = 0;
    for (int i = 0; i < n; i++) CHECK(pthread_create(&threads[i], NULL, adds, &sum) == 0);
    for (int i = 0; i < n; i++) {
        void *value;
        CHECK(pthread_join(threads[i], &value) == 0 && value == &sum);
    }
    CHECK(sum == n);
}

/* ---- before there is a thread ---------------------------------------------------------------- */

static int beside; /* how many the kernel has seen while 20 wait */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *arg) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return arg;
}

static void twenty_wait(void) {
    pthread_t threads[20];
    pthread_mutex_lock(&held);
    for (int i = 0; i < 20; i++) CHECK(pthread_create(&threads[i], NULL, waits, NULL) == 0);
    usleep(1000);
    beside = kernel_threads();
    pthread_mutex_unlock(&held);
    for (int i = 0; i < 20; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* What main has locked before it makes its first thread is its own afterwards. */
static void background(void) {
    CHECK(kernel_threads() == 1);
    pthread_mutex_lock(&recursive);
    CHECK(pthread_mutex_lock(&checked) == 0);
    mine = 5;
    pthread_setspecific(key, &mine);
    errno = 9;
    twenty_wait();
    CHECK(mine == 5 && pthread_getspecific(key) == &mine && gettid() == getpid());
    CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
    CHECK(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&checked) == 0);
    CHECK(pthread_equal(forker, pthread_self()));
    if (as_goroutines()) CHECK(beside < 20);
    else CHECK(beside == 21);
    makes_threads(20);
    exit(7);
}

/* ---- of a thread ----------------------------------------------------------------------------- */

static void destroy(void *value) {
    if (value == &forker && write(1, "destroyed\n", 10) != 10) abort();
}

static void in_child_of_thread(int way) {
    CHECK(kernel_threads() == 1 && gettid() == getpid());
    CHECK(mine == 3 && pthread_getspecific(key) == &forker &&
          pthread_equal(forker, pthread_self()));
    CHECK(pthread_mutex_trylock(&recursive) == EBUSY); /* the parent's, as by number */
    pthread_mutex_init(&checked, NULL);
    CHECK(pthread_mutex_lock(&checked) == 0 && pthread_mutex_unlock(&checked) == 0);
    makes_threads(10);
    makes_threads(10);
    CHECK(sched_getcpu() >= 0 && mine == 3);
    pid_t pid = fork();
    if (pid == 0) _exit(5);
    CHECK(ends(pid) == 5);
    if (way == 0) _exit(6);
    if (way == 1) exit(6);
    if (way == 2) pthread_exit(&mine);
}

static void *forks(void *arg) {
    static const int codes[] = {6, 6, 0, 0};
    mine = 3;
    pthread_setspecific(key, &forker);
    forker = pthread_self();
    for (int way = 0; way < 4; way++) {
        int before = in_child;
        pid_t pid = fork();
        if (pid == 0) {
            CHECK(in_child == before + 1);
            in_child_of_thread(way);
            return arg; /* its last thread ends: exit(0) */
        }
        CHECK(ends(pid) == codes[way]);
    }
    CHECK(mine == 3 && pthread_mutex_trylock(&recursive) == EBUSY);
    pthread_setspecific(key, NULL);
    return arg;
}

static void *spins(void *stop) {
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&guarded);
        free(malloc(100));
        pthread_mutex_unlock(&guarded);
    }
    return NULL;
}

static void *runs_programs(void *arg) {
    char *args[] = {"sh", "-c", "exit 4", NULL}, text[20] = "";
    pid_t pid;
    CHECK(posix_spawnp(&pid, "sh", NULL, NULL, args, environ) == 0 && ends(pid) == 4);
    pid = vfork();
    if (pid == 0) {
        execvp("sh", args);
        _exit(9);
    }
    CHECK(ends(pid) == 4);
    pid = fork();
    if (pid == 0) {
        execvp("sh", args);
        _exit(9);
    }
    CHECK(ends(pid) == 4);
    CHECK(WEXITSTATUS(system("exit 3")) == 3);
    FILE *f = popen("sleep 0.01; echo hello", "r");
    CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "hello\n") == 0 && pclose(f) == 0);
    return arg;
}

int main(void) {
    pthread_t threads[8], computes[3];
    int stop = 0;
    forker = pthread_self();
    CHECK(pthread_key_create(&key, destroy) == 0);
    CHECK(pthread_atfork(prepare, parent, child) == 0);
    pid_t pid = fork();
    if (pid == 0) background();
    CHECK(ends(pid) == 7 && kernel_threads() == 1);

    for (int i = 0; i < 3; i++) CHECK(pthread_create(&computes[i], NULL, spins, &stop) == 0);
    pthread_mutex_lock(&recursive);
    CHECK(pthread_create(&threads[0], NULL, forks, NULL) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    mine = 3;
    pthread_setspecific(key, &forker);
    forker = pthread_self();
    pthread_mutex_unlock(&recursive);
    pid = fork();
    if (pid == 0) {
        CHECK(pthread_mutex_lock(&recursive) == 0);
        pthread_mutex_unlock(&recursive);
        makes_threads(10);
        pthread_exit(NULL); /* the last one: exit(0) */
    }
    CHECK(ends(pid) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, runs_programs, NULL) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_mutex_lock(&guarded) == 0);
    CHECK(in_parent == prepared);
    pthread_mutex_unlock(&guarded);
    stop = 1;
    for (int i = 0; i < 3; i++) CHECK(pthread_join(computes[i], NULL) == 0);
    return 0;
}
