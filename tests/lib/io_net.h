/* What the tests of descriptors share. _GNU_SOURCE comes before the first include. */
#ifndef IO_NET_H
#define IO_NET_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A listener on the loopback, and its address as text. */
TEST_UNUSED static int listen_loopback(char *addr, size_t size) {
    int l = gort_listen("127.0.0.1:0", 0);
    CHECK_GE(l, 0);
    CHECK_EQ(gort_local_addr(l, addr, size), 0);
    return l;
}

/* Dials, waits for the other side to close, and closes. */
TEST_UNUSED static void dial_until_closed(const char *addr) {
    char b;
    int fd = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_read(fd, &b, 1), 0);
    CHECK_EQ(gort_close(fd), 0);
}

/* A TCP connection with itself: both ends. */
TEST_UNUSED static void tcp_pair(int fd[2]) {
    char addr[64];
    int l = listen_loopback(addr, sizeof addr);
    fd[0] = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(fd[0], 0);
    fd[1] = gort_accept(l, NULL, NULL);
    CHECK_GE(fd[1], 0);
    CHECK_EQ(gort_close(l), 0);
}

TEST_UNUSED static void reset_peer(int fd) { /* closes with RST */
    struct linger l = {1, 0};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    CHECK_EQ(gort_close(fd), 0);
}

/* The monitor looks into a file of /proc at any time, by the lowest number that is free. Around
 * what makes a descriptor whose number is to be free at some moment and then nobody else's: lower
 * ones stay free for the monitor. */
static int low_numbers[4];
TEST_UNUSED static void hold_low_numbers(void) {
    for (int i = 0; i < 4; i++) CHECK_GE(low_numbers[i] = dup(0), 0);
}
TEST_UNUSED static void free_low_numbers(void) {
    for (int i = 0; i < 4; i++) CHECK_EQ(close(low_numbers[i]), 0);
}

/* Open descriptors of this process, but for files of /proc, the directory itself and what the
 * monitor looks into for a moment, at any time; and but for timerfds: the monitor gives its alarm
 * up where the kernel refuses to wait for it. */
TEST_UNUSED static int count_fds(void) {
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    int n = 0, saved = errno;
    if (d == NULL) SKIP("no /proc");
    while ((e = readdir(d)) != NULL) {
        char to[21] = ""; /* anew: "/" is shorter than what may stand here from the one before */
        n += readlinkat(dirfd(d), e->d_name, to, sizeof to) > 0 && memcmp(to, "/proc/", 6) != 0 &&
             memcmp(to, "anon_inode:[timerfd]", 20) != 0;
    }
    closedir(d);
    errno = saved;
    return n;
}

/* Goroutines that wait for a descriptor, as the dump shows them. */
TEST_UNUSED static int count_io_waiters(void) {
    static char text[1 << 20];
    int fd = memfd_create("dump", MFD_CLOEXEC), n = 0;
    CHECK_GE(fd, 0);
    gort_dump(fd);
    ssize_t k = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    text[k > 0 ? k : 0] = 0;
    for (char *s = text; (s = strstr(s, "[IO wait")) != NULL; s++) n++;
    return n;
}

/* Waits until n goroutines wait for a descriptor. */
#define wait_parked(n) wait_until(count_io_waiters() == (n))

/* Gives parked goroutines the time to park. Nothing may depend on it but how much is tested. */
TEST_UNUSED static void settle(void) {
    for (int i = 0; i < 30; i++) gort_yield();
    gort_sleep(GORT_MS);
}

#endif
