/* The process ends: by exit, quick_exit, _exit, abort or a return, from main or another thread,
 * while others wait, compute, hold locks, begin and end. Its status is right, handlers of atexit
 * have run in their order on the thread that called, output is flushed, and nothing hangs. */
#include "threads_test.h"

#include <signal.h>
#include <sys/wait.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_t by; /* the thread that exits */
static int way, order;

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(99);
}

static void first(void) {
    CHECK(order++ == 2 && pthread_equal(by, pthread_self()));
    say("first ");
}
static void *ends(void *arg) { return arg; }
static void second(void) {
    pthread_t thread;
    void *value;
    CHECK(order++ == 1);
    /* a handler may use threads, and wait */
    CHECK(pthread_create(&thread, NULL, ends, &way) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == &way);
    usleep(1000);
    say("second ");
}
static void third(void) {
    CHECK(order++ == 0);
    say("third ");
}
static void quick(void) { say("quick "); }

static void *computes(void *arg) {
    for (;;) {}
    return arg;
}
static void *waits(void *arg) {
    pthread_mutex_lock(&held);
    pthread_cond_wait(&never, &held);
    return arg;
}
static void *sleeps(void *arg) {
    pause();
    return arg;
}
static void *makes(void *arg) {
    pthread_t thread;
    for (;;) {
        CHECK(pthread_create(&thread, NULL, ends, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
}
static void *allocates(void *arg) {
    for (;;) free(malloc(100));
    return arg;
}

static void *leaves(void *arg) {
    usleep(1000);
    by = pthread_self();
    printf("flushed "); /* into a pipe: not before exit */
    switch (way / 2) {
    case 0: exit(3);
    case 1: quick_exit(4);
    case 2: _exit(5);
    case 3: abort();
    default: kill(getpid(), SIGKILL);
    }
    for (;;) pause();
}

/* Even ways: main does it. */
static int program(void) {
    void *(*fns[])(void *) = {computes, waits, waits, sleeps, makes, allocates, computes};
    pthread_t thread;
    pthread_attr_t detached;
    CHECK(atexit(first) == 0 && atexit(second) == 0 && atexit(third) == 0);
    CHECK(at_quick_exit(quick) == 0);
    CHECK(pthread_attr_init(&detached) == 0);
    CHECK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++)
        CHECK(pthread_create(&thread, i % 2 ? &detached : NULL, fns[i], NULL) == 0);
    if (way % 2 == 0) leaves(NULL);
    CHECK(pthread_create(&thread, NULL, leaves, NULL) == 0);
    if (way == 1) pthread_join(thread, NULL); /* main waits, or has left, or computes */
    if (way == 3) pthread_exit(NULL);
    for (;;) {}
}

/* A status and what it has written. */
static int child(const char *self, int n, char *text, size_t size) {
    int fds[2], status;
    char number[12];
    snprintf(number, sizeof number, "%d", n);
    CHECK(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execl(self, self, number, NULL);
        _exit(98);
    }
    CHECK(pid > 0 && close(fds[1]) == 0);
    size_t got = 0;
    for (ssize_t r; (r = read(fds[0], text + got, size - 1 - got)) > 0;) got += (size_t)r;
    text[got] = '\0';
    CHECK(close(fds[0]) == 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    static const struct {
        int status;
        const char *text;
    } want[] = {{3, "third second first flushed "}, {4, "quick "}, {5, ""}, {134, ""}, {137, ""}};
    char text[200];
    if (argc > 1) {
        way = atoi(argv[1]);
        if (way < 10) return program();
        if (way == 11) exit(7); /* no thread was made */
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, computes, NULL) == 0);
        return 6;
    }
    for (int n = 0; n < 10; n++) {
        int status = child(argv[0], n, text, sizeof text);
        if (status == want[n / 2].status && strcmp(text, want[n / 2].text) == 0) continue;
        fprintf(stderr, "way %d: status %d, written: %s\n", n, status, text);
        return 1;
    }
    CHECK(child(argv[0], 10, text, sizeof text) == 6 && child(argv[0], 11, text, sizeof text) == 7);
    return 0;
}
