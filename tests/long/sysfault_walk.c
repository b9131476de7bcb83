/*
 * A little of everything the library asks the system for, for tests/long/sysfault.sh, which lets
 * each of these calls fail in turn. Any call here may report an error, and then the program goes on
 * without it; what may not happen is a crash, a hang, or something that is left over at the end.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <gort.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static gort_wg wg;

static void say(const char *what, long r) {
    if (r < 0) printf("%s: %ld (%s)\n", what, r, strerror((int)-r));
}

static int descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* ---- goroutines, stacks, threads ------------------------------------------------------------- */

static void sleeps(void *arg) { gort_sleep(GORT_MS); }
static long naps(void *arg) { return usleep(1000); }
static void blocks(void *arg) {
    gort_blocking(naps, NULL);
    gort_enter_syscall();
    usleep(500);
    gort_exit_syscall();
}
static void big_ends(void *arg) {
    volatile char room[300 << 10];
    room[0] = room[sizeof room - 1] = 1;
    gort_wg_done(arg);
}

static void goroutines(void) {
    static const gort_attr big = {.name = "big", .stack_size = 1 << 20};
    for (int i = 0; i < 300; i++) say("wg_go", gort_wg_go(&wg, sleeps, NULL));
    for (int i = 0; i < 6; i++) say("wg_go", gort_wg_go(&wg, blocks, NULL));
    for (int i = 0; i < 6; i++) {
        gort_wg_add(&wg, 1);
        int r = gort_go_with(&big, big_ends, &wg);
        say("go_with", r);
        if (r < 0) gort_wg_done(&wg);
    }
    gort_wg_wait(&wg);
    /* a thread sleeps in the poller for long */
    gort_timer *far = gort_timer_new(3600 * GORT_SEC, sleeps, NULL);
    for (int64_t i = 0, end = gort_now() + GORT_MS; i < 3; i++, end = gort_now() + GORT_MS) {
        while (gort_now() < end) continue;
        gort_sleep(GORT_MS);
    }
    gort_timer_free(far);
    say("maxprocs", gort_maxprocs(3));
    gort_stop_world();
    gort_start_world();
}

/* ---- channels, timers, contexts -------------------------------------------------------------- */

static void fires(void *arg) {}
static int member(gort_ctx *ctx, void *arg) { return 0; }

static void objects(void) {
    gort_chan *c = gort_chan_new(8, 4);
    if (c) {
        int64_t v = 1;
        gort_chan_send(c, &v);
        gort_case k[20];
        for (int i = 0; i < 20; i++) k[i] = gort_on_recv(c, &v); /* many: memory of its own */
        say("select", gort_select(k, 20));
    }
    gort_chan_release(c);
    gort_timer *t = gort_timer_new(GORT_MS, fires, NULL);
    if (t) gort_timer_free(t);
    if ((c = gort_after(GORT_MS)) != NULL) gort_chan_recv(c, NULL);
    gort_chan_release(c);
    gort_ctx *ctx = gort_ctx_with_deadline(NULL, gort_now() + GORT_MS);
    if (ctx) gort_chan_recv(gort_ctx_done(ctx), NULL);
    gort_group *g = gort_group_new(ctx, 2);
    if (g) {
        for (int i = 0; i < 4; i++) say("group_go", gort_group_go(g, member, NULL));
        gort_group_wait(g);
    }
    gort_ctx_release(ctx);
    c = gort_chan_new(sizeof(int), 1);
    if (c) {
        int r = gort_signal_notify(c, SIGUSR1), signo;
        say("notify", r);
        if (r == 0) {
            kill(getpid(), SIGUSR1);
            gort_chan_recv(c, &signo);
            gort_signal_stop(c);
        }
    }
    gort_chan_release(c);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void echo(void *arg) {
    int fd = (int)(intptr_t)arg;
    char c;
    while (gort_read_until(fd, &c, 1, gort_now() + 2 * GORT_SEC) == 1 &&
           gort_write(fd, &c, 1) == 1) {}
    gort_close(fd);
}
static void accepts(void *arg) {
    int fd = gort_accept_until((int)(intptr_t)arg, NULL, NULL, gort_now() + GORT_SEC);
    say("accept", fd);
    if (fd >= 0 && gort_wg_go(&wg, echo, (void *)(intptr_t)fd) < 0) gort_close(fd);
}

static void network(void) {
    char where[64], c = 'x';
    int listener = gort_listen("127.0.0.1:0", 8);
    say("listen", listener);
    if (listener < 0) return;
    if (gort_local_addr(listener, where, sizeof where) >= 0 &&
        gort_wg_go(&wg, accepts, (void *)(intptr_t)listener) == 0) {
        int fd = gort_dial(where, gort_now() + GORT_SEC);
        say("dial", fd);
        if (fd >= 0) {
            say("write", gort_write(fd, &c, 1));
            say("read", gort_read_until(fd, &c, 1, gort_now() + GORT_SEC));
            gort_close(fd);
        }
        gort_wg_wait(&wg);
    }
    gort_close(listener);
}

static void others(void) {
    int p[2];
    char buf[100] = "text";
    if (pipe2(p, O_CLOEXEC) == 0) {
        struct pollfd f = {.fd = p[0], .events = POLLIN};
        say("poll", gort_poll(&f, 1, 1));
        say("pipe read", gort_read_until(p[0], buf, 1, gort_now() + GORT_MS));
        say("pipe write", gort_write(p[1], buf, 4));
        say("pipe read", gort_read_until(p[0], buf, 4, gort_now() + GORT_SEC));
        gort_close(p[0]);
        gort_close(p[1]);
    }
    char path[] = "/tmp/gort-walk-XXXXXX";
    int made = mkstemp(path);
    if (made >= 0) close(made);
    int fd = gort_open(path, O_RDWR | O_CLOEXEC, 0);
    say("open", fd);
    if (fd >= 0) {
        say("pwrite", gort_pwrite(fd, buf, 4, 0));
        say("pread", gort_pread(fd, buf, 4, 0));
        say("fsync", gort_fsync(fd));
        gort_close(fd);
    }
    unlink(path);
}

/* ---- looking inside -------------------------------------------------------------------------- */

static void inside(void) {
    gort_stats s;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    gort_stats_read(&s);
    gort_dump(null);
    say("trace", gort_trace_start("/dev/null"));
    gort_yield();
    say("trace", gort_trace_stop());
    if (null >= 0) close(null);
}

static int app(int argc, char **argv) {
    goroutines();
    objects();
    network();
    others();
    inside();
    /* a timer's goroutine on its way */
    for (int i = 0; i < 2000 && gort_count() > 1; i++) gort_sleep(GORT_MS);
    if (gort_count() > 1) {
        fprintf(stderr, "%d goroutines are left\n", gort_count());
        gort_dump(2);
        return 4;
    }
    return 0;
}

/* A plain thread, with no runtime and beside one. */
static void *thread(void *arg) {
    int s[2];
    char c = 'x';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) return NULL;
    say("thread's read", gort_read_until(s[0], &c, 1, gort_now() + GORT_MS));
    say("thread's write", gort_write(s[1], &c, 1));
    say("thread's read", gort_read_until(s[0], &c, 1, gort_now() + GORT_SEC));
    gort_close(s[0]);
    gort_close(s[1]);
    return NULL;
}

static long joins(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }

static int app_and_thread(int argc, char **argv) {
    pthread_t t;
    if (pthread_create(&t, NULL, thread, NULL) != 0) return 5;
    int r = app(argc, argv);
    gort_blocking(joins, &t);
    return r;
}

int main(int argc, char **argv) {
    int before = descriptors(), r = gort_main(app_and_thread, argc, argv);
    say("gort_main", r);
    int after = descriptors();
    if (after > before) {
        fprintf(stderr, "%d descriptors before, %d after\n", before, after);
        return 6;
    }
    return r < 0 ? 0 : r;
}
