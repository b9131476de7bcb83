/* gort_copy between every two sorts of descriptors, of sizes around the buffer's and the pipe's;
 * its end by an error, a close, a context and a shutdown. No descriptor is left behind. */
#define _GNU_SOURCE 1
#include "../lib/test.h"
#include "../lib/io_net.h"
#include <signal.h>
#include <sys/resource.h>

enum { TCP, UNIX, BLOCKING, PIPE, FILES, APPEND, SORTS };
static const char *const names[] = {"tcp", "unix", "blocking", "pipe", "file", "append"};
#define MOST (3 << 20)
static char data[MOST], got[MOST + 1];

/* ends[0] is read from, ends[1] written to; a file is both. */
typedef struct Way {
    int sort, ends[2];
} Way;

static Way way_new(int sort) {
    Way w = {.sort = sort};
    switch (sort) {
    case TCP: tcp_pair(w.ends); break;
    case UNIX: CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w.ends), 0); break;
    case BLOCKING: CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w.ends), 0); break;
    case PIPE: CHECK_EQ(pipe(w.ends), 0); break;
    default:
        w.ends[0] = w.ends[1] = memfd_create("copy", MFD_CLOEXEC);
        if (sort == APPEND) CHECK_EQ(fcntl(w.ends[0], F_SETFL, O_APPEND), 0);
    }
    return w;
}
static bool is_file(const Way *w) { return w->sort >= FILES; }
static void way_end(Way *w, int i) {
    if (w->ends[i] >= 0 && !(is_file(w) && i)) CHECK_EQ(gort_close(w->ends[i]), 0);
    w->ends[i] = -1;
}

typedef struct Job {
    Way *way;
    size_t n;
    ssize_t result;
    bool ended;
} Job;

static void produce(void *arg) {
    Job *j = arg;
    CHECK_EQ(gort_write_full(j->way->ends[1], data, j->n), (ssize_t)j->n);
    way_end(j->way, 1);
}
static void consume(void *arg) {
    Job *j = arg;
    ssize_t n;
    size_t at = 0;
    while ((n = gort_read(j->way->ends[0], got + at, sizeof got - at)) > 0) at += (size_t)n;
    CHECK_EQ(n, 0);
    j->result = (ssize_t)at;
}

static void check_copy(int from, int to, size_t n) {
    gort_wg wg = {0};
    Way in = way_new(from), out = way_new(to);
    Job a = {.way = &in, .n = n}, b = {.way = &out};
    if (is_file(&in)) {
        CHECK_EQ(write(in.ends[0], data, n), (ssize_t)n);
        CHECK_EQ(lseek(in.ends[0], 0, SEEK_SET), 0);
    } else {
        gort_wg_go(&wg, produce, &a);
    }
    if (!is_file(&out)) gort_wg_go(&wg, consume, &b);
    ssize_t r = gort_copy(out.ends[1], in.ends[0]);
    CHECKF(r == (ssize_t)n, "%s to %s, %zu bytes: %zd", names[from], names[to], n, r);
    if (is_file(&out)) {
        CHECK_EQ(lseek(out.ends[0], 0, SEEK_SET), 0);
        consume(&b);
    }
    way_end(&out, 1);
    gort_wg_wait(&wg);
    CHECK_EQ(b.result, (ssize_t)n);
    CHECKF(memcmp(data, got, n) == 0, "%s to %s, %zu bytes differ", names[from], names[to], n);
    way_end(&in, 0), way_end(&in, 1), way_end(&out, 0);
}

/* ---- its ends -------------------------------------------------------------------------------- */

static int dst, src;
static Way in, out;
static gort_ctx *ctx;

static void copies(void *arg) {
    Job *j = arg;
    if (ctx) gort_ctx_use(ctx);
    j->result = gort_copy(dst, src);
    set(&j->ended, true);
}
static void pour(void *arg) { /* without an end */
    (void)arg;
    while (gort_write(in.ends[1], data, 100000) > 0) {}
}
static void *copies_on_thread(void *arg) {
    copies(arg);
    gort_ctx_use(NULL);
    return NULL;
}

/* A copy whose source is dry, or whose destination is full, is ended in one of four ways. */
enum { BY_CONTEXT, BY_CLOSE_SRC, BY_CLOSE_DST, BY_SHUTDOWN, WAYS };
static void check_end(int from, int to, bool full, int how, bool thread) {
    static const ssize_t want[WAYS] = {-ECANCELED, -EBADF, -EBADF, 0};
    Job j = {0};
    gort_wg wg = {0};
    pthread_t t;
    if (how == BY_SHUTDOWN && (full ? to : from) > BLOCKING) return;
    if (how == BY_CLOSE_SRC && full) return; /* it is seen after the write */
    if (how == BY_CLOSE_DST && !full) return;
    in = way_new(from), out = way_new(to);
    src = in.ends[0], dst = out.ends[1];
    ctx = how == BY_CONTEXT ? gort_ctx_new(NULL) : NULL;
    if (full) gort_wg_go(&wg, pour, NULL);
    else CHECK_EQ(gort_write_full(in.ends[1], "some", 4), 4);
    if (thread) CHECK_EQ(pthread_create(&t, NULL, copies_on_thread, &j), 0);
    else gort_go(copies, &j);
    if (full) {
        struct pollfd p = {.fd = dst, .events = POLLOUT};
        wait_until(poll(&p, 1, 0) == 0);
        p.fd = in.ends[1];
        wait_until(poll(&p, 1, 0) == 0);
    } else {
        CHECK_EQ(gort_read_full(out.ends[0], got, 4), 4);
    }
    if (thread) settle();
    else wait_parked(full ? 2 : 1);
    switch (how) {
    case BY_CONTEXT: gort_ctx_cancel(ctx); break;
    case BY_CLOSE_SRC: way_end(&in, 0); break;
    case BY_CLOSE_DST: way_end(&out, 1); break;
    default: CHECK_EQ(gort_shutdown(full ? dst : src, full ? SHUT_WR : SHUT_RD), 0);
    }
    wait_until(get(&j.ended));
    ssize_t expect = how == BY_SHUTDOWN ? (full ? -EPIPE : 4) : want[how];
    CHECKF(j.result == expect, "%s to %s, full %d, how %d: %zd, not %zd", names[from], names[to],
           full, how, j.result, expect);
    way_end(&in, 0);
    gort_wg_wait(&wg);
    if (thread) CHECK_EQ(pthread_join(t, NULL), 0);
    if (ctx) gort_ctx_release(ctx);
    way_end(&in, 1), way_end(&out, 0), way_end(&out, 1);
}

/* A copy that never waits is ended by a context as well. */
static void test_endless(void) {
    Job j = {0};
    src = open("/dev/zero", O_RDONLY), dst = open("/dev/null", O_WRONLY);
    ctx = gort_ctx_new(NULL);
    gort_go(copies, &j);
    gort_sleep(GORT_MS);
    gort_ctx_cancel(ctx);
    wait_until(get(&j.ended));
    CHECK_EQ(j.result, -ECANCELED);
    gort_ctx_release(ctx);
    ctx = NULL;
    CHECK_EQ(gort_close(src), 0);
    CHECK_EQ(gort_close(dst), 0);
}

/* Errors, even after some bytes; and no SIGPIPE for a socket, whoever handles it. */
static int signals;
static void count_signal(int signo) { add(&signals, signo == SIGPIPE); }
static void test_errors(void) {
    struct sigaction old, sa = {.sa_handler = count_signal};
    CHECK_EQ(sigaction(SIGPIPE, &sa, &old), 0);
    for (int to = TCP; to <= BLOCKING; to++) {
        Way w = way_new(to), f = way_new(FILES);
        for (int i = 0; i < 16; i++) CHECK_EQ(write(f.ends[0], data, MOST), MOST);
        CHECK_EQ(lseek(f.ends[0], 0, SEEK_SET), 0);
        Job j = {0};
        src = f.ends[0], dst = w.ends[1];
        gort_go(copies, &j);
        CHECK_EQ(gort_read_full(w.ends[0], got, MOST), MOST);
        way_end(&w, 0);
        wait_until(get(&j.ended));
        CHECKF(j.result == -EPIPE || j.result == -ECONNRESET, "%s: %zd", names[to], j.result);
        CHECK_EQ(gort_copy(w.ends[1], f.ends[0]), -EPIPE);
        way_end(&w, 1), way_end(&f, 0);
    }
    CHECK_EQ(get(&signals), 0);
    CHECK_EQ(sigaction(SIGPIPE, &old, NULL), 0);
    int dir = open("/", O_RDONLY | O_DIRECTORY), none = open("/dev/null", O_RDWR);
    CHECK_EQ(gort_copy(none, dir), -EISDIR);
    CHECK_EQ(gort_copy(none, -1), -EBADF);
    CHECK_EQ(gort_copy(none, none), 0);
    int full = open("/dev/full", O_RDWR);
    CHECK_EQ(gort_copy(full, full), -ENOSPC);
    CHECK_EQ(gort_close(dir), 0);
    CHECK_EQ(gort_close(none), 0);
    CHECK_EQ(gort_close(full), 0);
}

/* Without numbers for a pipe, the buffer does it. */
static void test_no_numbers(void) {
    struct rlimit old, few;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    Way a = way_new(FILES), b = way_new(PIPE);
    Job j = {.way = &b};
    gort_wg wg = {0};
    CHECK_EQ(write(a.ends[0], data, MOST), MOST);
    CHECK_EQ(lseek(a.ends[0], 0, SEEK_SET), 0);
    few = old;
    few.rlim_cur = (rlim_t)b.ends[1] + 1;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    gort_wg_go(&wg, consume, &j);
    CHECK_EQ(gort_copy(b.ends[1], a.ends[0]), MOST);
    way_end(&b, 1);
    gort_wg_wait(&wg);
    CHECK_EQ(j.result, MOST);
    CHECK_EQ(memcmp(got, data, MOST), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    way_end(&a, 0), way_end(&b, 0);
}

static int body(int argc, char **argv) {
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 400000, MOST};
    (void)argc, (void)argv;
    uint64_t seed = stress_seed();
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)test_random(&seed);
    int before = count_fds();
    for (int from = 0; from < SORTS; from++)
        for (int to = 0; to < SORTS; to++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                check_copy(from, to, sizes[i]);
    for (int from = 0; from <= PIPE; from++)
        for (int to = 0; to <= PIPE; to++)
            for (int k = 0; k < 4 * WAYS; k++)
                if (!(k & 2) || !test_simulated()) check_end(from, to, k & 1, k / 4, k & 2);
    test_endless();
    test_errors();
    test_no_numbers();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
