/* Pipes that never made anybody wait are read by read(2) itself (src/hook/optimistic.c): when one
 * blocks after all, everybody else goes on, few threads wait, and what arrives is right. */
#include "hook.h"

enum { PIPES = 20, CALLS = 6000 };

static int ends[PIPES][2], got;

/* So many calls that all found something. */
static void make_hot(int *end) {
    for (int i = 0; i < CALLS; i++) {
        int value = -1;
        CHECK_EQ(write(end[1], &i, sizeof i), sizeof i);
        CHECK_EQ(read(end[0], &value, sizeof value), sizeof value);
        CHECK_EQ(value, i);
    }
}

static int reader_tid;

static void reader(void *arg) {
    int value = -1, i = (int)(intptr_t)arg;
    set(&reader_tid, (int)syscall(SYS_gettid));
    CHECK_EQ(read(ends[i][0], &value, sizeof value), sizeof value);
    CHECK_EQ(value, i);
    add(&got, 1);
}

static uint64_t retakes(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.retakes;
}

static struct sockaddr_in page = {.sin_family = AF_INET};
static char ask[100];

static void open_page(void) {
    char addr[32];
    socklen_t n = sizeof page;
    page.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (void *)&page, sizeof page), 0); /* a free port */
    CHECK_EQ(getsockname(fd, (void *)&page, &n), 0);
    close(fd);
    snprintf(addr, sizeof addr, "127.0.0.1:%d", ntohs(page.sin_port));
    CHECK_EQ(gort_debug_listen(addr), 0);
    snprintf(ask, sizeof ask, "GET /metrics HTTP/1.0\r\nHost: %s\r\n\r\n", addr);
}

static uint64_t roused(void) {
    static char text[1 << 16];
    static const char name[] = "\ngort_calls_roused_total ";
    size_t n = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (void *)&page, sizeof page), 0);
    CHECK_EQ(send(fd, ask, strlen(ask), 0), strlen(ask));
    for (ssize_t r; (r = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0;) n += (size_t)r;
    close(fd);
    text[n] = 0;
    char *at = strstr(text, name);
    CHECK(at != NULL);
    return strtoull(at + strlen(name), NULL, 10);
}

/* Not by way of the hook, which would know what is in it (pair_test.c). */
static void open_hot(int i) {
    CHECK_EQ(syscall(SYS_pipe2, ends[i], 0), 0);
    make_hot(ends[i]);
}

/* True: the reader slept in read(2), and the monitor has taken the only P from its thread, or told
 * it to leave the call. On a busy machine a read that took long for another reason may have ended
 * the streak: then it parks. */
static bool one_blocks(void) {
    uint64_t taken = retakes(), told = roused();
    int first = 0;
    set(&got, 0);
    open_hot(0);
    CHECK_EQ(gort_go(reader, NULL), 0);
    if (test_procs() == 1) wait_until(retakes() > taken || waiting_for("IO wait") >= 1);
    bool slept = retakes() > taken;
    for (int i = 0; i < 100; i++) gort_yield();
    /* a goroutine's call is not interrupted */
    if (slept) CHECK_EQ(syscall(SYS_tgkill, getpid(), get(&reader_tid), SIGUSR1), 0);
    wait_for_waiting("IO wait", 1);
    slept |= roused() > told;
    CHECK_EQ(write(ends[0][1], &first, sizeof first), sizeof first);
    wait_until(get(&got) == 1);
    CHECK_EQ(close(ends[0][0]), 0);
    CHECK_EQ(close(ends[0][1]), 0);
    return slept;
}

static void some_block(void) {
    for (int i = 0; !one_blocks() && test_procs() == 1; i++) CHECK_LT(i, 500);
    open_hot(0);
}

/* All fall silent together: not each costs a thread. */
static void all_block(void) {
    set(&got, 0);
    for (int i = 1; i < PIPES; i++) open_hot(i);
    for (intptr_t i = 0; i < PIPES; i++) CHECK_EQ(gort_go(reader, (void *)i), 0);
    wait_for_waiting("IO wait", PIPES - 2 * test_procs() - 4);
    CHECK_LT(threads(), 2 * test_procs() + 14);
    for (int i = 0; i < PIPES; i++) CHECK_EQ(write(ends[i][1], &i, sizeof i), sizeof i);
    wait_until(get(&got) == PIPES);
}

/* The end of the other side shows; a number that comes back is another file. */
static void ends_and_numbers(void) {
    int value, pair[2], was[2] = {ends[0][0], ends[0][1]};
    make_hot(ends[0]);
    make_hot(ends[1]);
    CHECK_EQ(close(ends[0][1]), 0);
    CHECK_EQ(read(ends[0][0], &value, sizeof value), 0);
    CHECK_EQ(close(ends[0][0]), 0);
    CHECK_EQ(close(ends[1][0]), 0);
    signal(SIGPIPE, SIG_IGN);
    CHECK_FAILS(write(ends[1][1], &value, sizeof value), EPIPE);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(dup2(pair[0], was[0]), was[0]);
    CHECK_EQ(dup2(pair[1], was[1]), was[1]);
    ends[0][0] = was[0];
    ends[0][1] = was[1];
    set(&got, 0);
    CHECK_EQ(gort_go(reader, NULL), 0);
    wait_for_waiting("IO wait", 1);
    value = 0;
    CHECK_EQ(write(ends[0][1], &value, sizeof value), sizeof value);
    wait_until(get(&got) == 1);
}

static void on_signal(int sig) {}

static int run(int argc, char **argv) {
    struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART */
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    open_page();
    some_block();
    all_block();
    ends_and_numbers();
    return 0;
}

HOOK_MAIN(run)
