/*
 * Where there is no goroutine the calls are libc's: a plain thread, before, beside and after a
 * runtime; pinned; inside gort_blocking; in a child.
 */
#include "hook.h"

static int ends[2];

static void use(void) {
    char c = 0;
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    CHECK_EQ(pthread_mutex_init(&recursive, &a), 0);
    CHECK_EQ(poll(&p, 1, 0), 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(poll(&p, 1, -1), 1);
    CHECK_EQ(read(ends[0], &c, 1), 1);
    CHECK_EQ(usleep(1), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    int fd = dup(ends[0]);
    CHECK_GE(fd, 0);
    CHECK_EQ(close(fd), 0);
}

static long blocking(void *arg) {
    use();
    return 5;
}

static void *thread(void *arg) {
    use();
    return arg;
}

/* Waits for a lock when its runtime ends, and is forgotten. */
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;

static void left_behind(void *arg) {
    pthread_mutex_lock(&left);
    FAILF("a goroutine of a runtime that has ended");
}

static int run(int argc, char **argv) {
    pthread_t t;
    use();
    CHECK_GE(gort_pin(), 0);
    use();
    gort_unpin();
    gort_enter_syscall();
    use();
    gort_exit_syscall();
    CHECK_EQ(gort_blocking(blocking, NULL), 5);
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(pipe(ends), 0);
        use();
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(pthread_mutex_lock(&left), 0);
    gort_go(left_behind, NULL);
    wait_for_waiting("sync.Mutex.Lock", 1);
    return 0;
}

int main(int argc, char **argv) {
    check_hooked();
    CHECK_EQ(pipe(ends), 0);
    use();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_main(run, argc, argv), 0);
        CHECK_EQ(pthread_mutex_unlock(&left), 0);
    }
    use();
    return 0;
}
