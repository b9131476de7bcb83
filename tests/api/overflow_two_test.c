// not-with: emulation
/* Two goroutines overflow their stacks at the same moment: one report, whole, and the end by
 * SIGSEGV. And with SIGQUIT on top of it, which has a report of its own: whoever is first. */
#include "../lib/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int arrived;

static __attribute__((noinline)) int recurse(volatile char *above) {
    volatile char frame[1000];
    frame[0] = above ? above[0] : 1;
    if (frame[0] == 2) return 0; /* never */
    int n = recurse(frame) + frame[0];
    frame[1] = (char)n;
    return n;
}
static long meet(void *arg) { /* on threads of their own, wherever the Ps are */
    add(&arrived, 1);
    while (get(&arrived) < 2) sched_yield();
    return 0;
}
static void deep(void *arg) {
    gort_blocking(meet, NULL);
    recurse(NULL);
}
static void neighbour(void *arg) { gort_chan_recv(arg, NULL); }

static void *quits(void *arg) {
    while (get(&arrived) < 2) sched_yield();
    for (;;) kill(getpid(), SIGQUIT);
    return NULL;
}

static int body(int argc, char **argv) {
    pthread_t t;
    if (argc > 2) CHECK_EQ(pthread_create(&t, NULL, quits, NULL), 0);
    gort_chan *c = gort_chan_new(0, 0);
    for (int i = 0; i < 30; i++) gort_go(neighbour, c); /* a report of some length */
    for (int i = 0; i < 2; i++) gort_go(deep, NULL);
    gort_chan_recv(c, NULL);
    return 0;
}

static int count(const char *text, const char *word) {
    int n = 0;
    while ((text = strstr(text, word)) != NULL) n++, text += strlen(word);
    return n;
}

static void one_round(const char *self, const char *quit) {
    static char text[1 << 20];
    int p[2], status;
    size_t n = 0;
    ssize_t r;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(p[1], 2);
        execl(self, self, "overflow", quit, (char *)NULL);
        _exit(9);
    }
    close(p[1]);
    while ((r = read(p[0], text + n, sizeof text - 1 - n)) > 0) n += (size_t)r;
    text[n] = 0;
    close(p[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECKF(count(text, "goroutine 1 [") == 1, "the report is not whole, or not alone:\n%s", text);
    CHECKF(count(text, "gort: fatal: ") + count(text, "SIGQUIT: quit") == 1, "two reports:\n%s",
           text);
    if (quit) return;
    CHECKF(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %x: %s", status, text);
    CHECK(strncmp(text, "gort: fatal: goroutine ", 23) == 0 && strstr(text, ": stack overflow ("));
}

int main(int argc, char **argv) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("a sanitizer has its own report");
#endif
    if (test_valgrind()) SKIP("valgrind has its own report");
    if (argc > 1) return gort_main(body, argc, argv);
    for (int i = 0; i < 10; i++) one_round("/proc/self/exe", i % 2 ? "quit" : NULL);
    return 0;
}
