/* fork while a runtime runs: in the child it does not, and every call says so and touches
 * nothing. */
#include "../lib/test.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static gort_chan *chan;
static gort_mutex held;
static int pipes[2];

static void nothing(void *arg) {}
static int never(int argc, char **argv) { return 0; }

/* In the child. */
static void check_child(void) {
    char b[4] = "abc";
    gort_stats s;
    CHECK_EQ(gort_go(nothing, NULL), -ENOTCONN);
    CHECK_EQ(gort_main(never, 0, NULL), -ENOTCONN);
    CHECK_EQ(gort_count(), -ENOTCONN);
    CHECK_EQ(gort_maxprocs(0), -ENOTCONN);
    CHECK_EQ(gort_pin(), -ENOTCONN);
    CHECK_EQ(gort_id(), 0);
    CHECK_EQ(gort_chan_send(chan, b), -ENOTCONN);
    CHECK_EQ(gort_chan_recv(chan, b), -ENOTCONN);
    CHECK_EQ(gort_chan_try_recv(chan, b), -ENOTCONN);
    CHECK_EQ(gort_chan_close(chan), -ENOTCONN);
    CHECK_EQ(gort_chan_len(chan), 0);
    CHECK_EQ(gort_chan_cap(chan), 0);
    CHECK(gort_chan_new(1, 1) == NULL);
    CHECK(gort_after(1) == NULL);
    CHECK(gort_alloc(10) == NULL);
    gort_free(chan); /* nothing */
    CHECK(gort_ctx_new(NULL) == NULL);
    CHECK_EQ(gort_select_of(gort_on_recv(chan, b)), -ENOTCONN);
    CHECK_EQ(gort_mutex_try_lock(&held), -ENOTCONN);
    gort_mutex_lock(&held); /* held by somebody who does not exist here: returns all the same */
    gort_mutex_unlock(&held);
    CHECK_EQ(gort_read(pipes[0], b, 1), -ENOTCONN);
    CHECK_EQ(gort_write(pipes[1], b, 1), -ENOTCONN);
    CHECK_EQ(gort_close(pipes[0]), -ENOTCONN);
    CHECK(fcntl(pipes[0], F_GETFD) >= 0); /* untouched */
    CHECK_EQ(gort_listen("127.0.0.1:0", 1), -ENOTCONN);
    CHECK_STR(b, "abc");
    gort_yield();
    gort_sleep(GORT_SEC * 3600);
    gort_lock_thread();
    gort_unlock_thread();
    gort_stop_world();
    gort_start_world();
    gort_stats_read(&s);
    int64_t t = gort_now();
    CHECK(t > 0 && gort_now() >= t);
}

static long reap(void *arg) {
    int status = -1;
    while (waitpid(*(pid_t *)arg, &status, 0) < 0) {}
    return status;
}

static void in_a_child(bool then_exec) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        check_child();
        if (then_exec) execl("/bin/sh", "sh", "-c", "exit 33", (char *)NULL);
        _exit(32);
    }
    long status = gort_blocking(reap, &pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), then_exec ? 33 : 32);
}

static void noise(void *arg) {
    while (!get((int *)arg)) gort_yield();
}

static int body(int argc, char **argv) {
    int stop = 0;
    chan = gort_chan_new(4, 4);
    gort_chan_send(chan, "one");
    CHECK_EQ(pipe(pipes), 0);
    gort_mutex_lock(&held);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(noise, &stop), 0);
    for (int i = 0; i < 10; i++) in_a_child(i % 2);
    /* and the parent has noticed nothing */
    CHECK_EQ(gort_chan_len(chan), 1);
    CHECK_EQ(gort_write(pipes[1], "x", 1), 1);
    set(&stop, 1);
    wait_until(gort_count() == 1);
    gort_mutex_unlock(&held);
    gort_chan_release(chan);
    return 0;
}

static int child;
static int forks(int argc, char **argv) {
    pid_t pid = fork();
    if (pid == 0) return 7; /* goroutine 1 ends in the child, where there is no runtime to end */
    child = (int)pid;
    return 0;
}
static void main_ends_in_child(int argc, char **argv) {
    CHECK_EQ(gort_main(forks, argc, argv), 0);
    pid_t pid = child;
    CHECK_EQ(WEXITSTATUS(reap(&pid)), 2);
}

static int in_child_of_plain(int argc, char **argv) {
    CHECK_EQ(gort_go(nothing, NULL), 0);
    return 31;
}

/* The threads of a runtime are detached, and may still be in their destructors when gort_main has
 * returned. libc holds its own locks over a fork, ASan does not (gcc 12): one that such a thread
 * has at that moment, to give its cache back, nobody ever unlocks in the child, whose first thread
 * that ends spins on it. So there they are let go first. */
static void last_threads_go(void) {
#ifdef __SANITIZE_ADDRESS__
    for (int n = 2; n > 1;) {
        DIR *d = opendir("/proc/self/task");
        CHECK(d != NULL);
        n = 0;
        for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
        closedir(d);
        sched_yield();
    }
#endif
}

int main(int argc, char **argv) {
    pid_t pid = fork(); /* before any runtime: the child has one of its own */
    if (pid == 0) _exit(gort_main(in_child_of_plain, argc, argv));
    CHECK_EQ(WEXITSTATUS(reap(&pid)), 31);
    CHECK_EQ(gort_main(body, argc, argv), 0);
    last_threads_go();
    pid = fork(); /* and after it has ended */
    if (pid == 0) _exit(gort_main(in_child_of_plain, argc, argv));
    CHECK_EQ(WEXITSTATUS(reap(&pid)), 31);
    for (int i = 0; i < 20; i++) main_ends_in_child(argc, argv);
    return 0;
}
