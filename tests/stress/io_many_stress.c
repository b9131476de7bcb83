#define _GNU_SOURCE 1
/* Many connections held open, a tenth of them busy: every byte comes back, a few threads do it, and
 * nothing is left over: no descriptor, no goroutine, no allocation, and the memory of their stacks
 * is given back. The client is a process of its own; IO_MANY sets the number (1000). */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <malloc.h>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MESSAGE 64
static int many = 1000, open_now, most_threads;

/* ---- the client: one thread, blocking calls -------------------------------------------------- */

static int connect_to(uint16_t port) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (void *)&in, sizeof in) < 0) _exit(3);
    return fd;
}

static void exchange(int fd, unsigned tag) {
    unsigned char out[MESSAGE], in[MESSAGE];
    for (int i = 0; i < MESSAGE; i++) out[i] = (unsigned char)(tag * 31 + (unsigned)i);
    if (send(fd, out, MESSAGE, 0) != MESSAGE) _exit(4);
    if (recv(fd, in, MESSAGE, MSG_WAITALL) != MESSAGE || memcmp(in, out, MESSAGE) != 0) _exit(5);
}

static void client(int from) {
    uint16_t port;
    if (read(from, &port, sizeof port) != sizeof port) _exit(2);
    int *fd = malloc(sizeof(int) * (size_t)many);
    for (int i = 0; i < many; i++) fd[i] = connect_to(port);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned round = 0;; round++) {
        for (int i = (int)(round % 10); i < many; i += 10) exchange(fd[i], round + (unsigned)i);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (round >= 10 && now.tv_sec - start.tv_sec >= stress_seconds()) break;
    }
    for (int i = 0; i < many; i++) close(fd[i]);
    _exit(0);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    char buf[MESSAGE];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0)
        CHECK_EQ(gort_write_full(fd, buf, (size_t)n), n);
    CHECK_EQ(n, 0);
    CHECK_EQ(gort_close(fd), 0);
    add(&open_now, -1);
}

static int tell = -1;

static long rss_kb(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1) SKIP("no /proc");
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What malloc has handed out; a sanitizer has a malloc of its own. */
static long allocated(void) {
#ifdef __GLIBC__
    return (long)mallinfo2().uordblks;
#else
    return 0;
#endif
}

static int run(int argc, char **argv) {
    char addr[64];
    gort_stats s;
    int before = count_fds();
    long rss_before = rss_kb(), rss_most = 0, allocated_before = allocated();
    int l = listen_loopback(addr, sizeof addr);
    uint16_t port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
    CHECK_EQ(gort_write(tell, &port, sizeof port), sizeof port);
    for (int i = 0; i < many; i++) {
        int fd = gort_accept(l, NULL, NULL);
        CHECK_GE(fd, 0);
        add(&open_now, 1);
        CHECK_EQ(gort_go(serve, (void *)(intptr_t)fd), 0);
    }
    while (get(&open_now) > 0) {
        gort_sleep(5 * GORT_MS);
        gort_stats_read(&s);
        if ((int)s.threads > most_threads) most_threads = (int)s.threads;
        long now = rss_kb();
        if (now > rss_most) rss_most = now;
    }
    /* a goroutine preempted by signal keeps its thread: rare, and not meant here */
    gort_stats_read(&s);
    CHECK_LE(most_threads, gort_maxprocs(0) + 8 + (int)s.preemptions);
    CHECK_EQ(gort_close(l), 0);
    wait_until(gort_count() == 1);
    CHECK_EQ(count_fds(), before);
    /* of threads: seven bytes a connection at most */
    CHECK_LE(allocated(), allocated_before + 65536);
    if (many >= 5000 && !SANITIZED)
        wait_until(rss_kb() <= rss_before + (rss_most - rss_before) / 2);
    printf("memory: %ld kB before, %ld kB at most, %ld kB after\n", rss_before, rss_most, rss_kb());
    return 0;
}

int main(int argc, char **argv) {
    int p[2], status;
    struct rlimit lim;
    if (getenv("IO_MANY")) many = atoi(getenv("IO_MANY"));
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
    if (many > (int)lim.rlim_cur - 100) SKIP("only %d descriptors", (int)lim.rlim_cur);
    CHECK_EQ(pipe(p), 0);
    pid_t child = fork();
    if (child == 0) {
        close(p[1]); /* so that it notices when the server ends early */
        client(p[0]);
    }
    close(p[0]);
    tell = p[1];
    CHECK_EQ(gort_main(run, argc, argv), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the client ended with 0x%x", status);
    printf("%d connections, at most %d threads\n", many, most_threads);
    return 0;
}
