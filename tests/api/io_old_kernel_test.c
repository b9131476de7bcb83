#define _GNU_SOURCE 1
/* What an older kernel, or a container, does not have: RWF_NOWAIT on pipes, epoll_pwait2, io_uring,
 * kcmp. A seccomp filter takes them away, and everything works all the same. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#define REFUSE(nr, error)                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static void become_old(void) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              REFUSE(SYS_preadv2, EOPNOTSUPP),
                              REFUSE(SYS_pwritev2, EOPNOTSUPP),
                              REFUSE(SYS_epoll_pwait2, ENOSYS),
                              REFUSE(SYS_io_uring_setup, EPERM),
                              REFUSE(SYS_kcmp, EPERM),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof f / sizeof f[0], f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        SKIP("no seccomp");
}

static int p[2], done;

static void reader(void *arg) {
    int v;
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(gort_read_full(p[0], &v, sizeof v), sizeof v);
        CHECK_EQ(v, i);
    }
    CHECK_EQ(gort_read(p[0], &v, sizeof v), 0);
    add(&done, 1);
}

static void test_pipe(void) {
    static char b[200000];
    CHECK_EQ(pipe(p), 0);
    gort_go(reader, NULL);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(gort_write(p[1], &i, sizeof i), sizeof i);
        if (i == 250) CHECK_EQ(fcntl(p[0], F_SETFL, 0), 0); /* the program clears it again */
        if (i % 50 == 0) settle();
    }
    CHECK_EQ(gort_close(p[1]), 0);
    wait_until(get(&done) == 1);
    CHECK_EQ(gort_close(p[0]), 0);
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_read_until(p[0], b, 1, gort_now() + 2 * GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write_full_until(p[1], b, sizeof b, gort_now() + 2 * GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_pread(p[0], b, 1, 0), -ESPIPE);
    gort_close(p[0]), gort_close(p[1]);
}

static void closed_reader(void *arg) {
    char b;
    CHECK_EQ(gort_read(p[0], &b, 1), -EBADF);
    add(&done, 1);
}

/* On 0, where O_NONBLOCK would disturb whoever shares it. */
static void test_inherited(void) {
    char b[8];
    int saved = dup(0);
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(dup2(p[0], 0), 0);
    CHECK_EQ(gort_read_until(0, b, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(p[1], "abc", 3), 3);
    CHECK_EQ(gort_read(0, b, sizeof b), 3);
    CHECK_EQ(fcntl(0, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(dup2(saved, 0), 0);
    close(saved);
    set(&done, 0);
    gort_go(closed_reader, NULL);
    wait_parked(1);
    CHECK_EQ(gort_close(p[0]), 0);
    wait_until(get(&done) == 1);
    CHECK_EQ(gort_close(p[1]), 0);
}

static void test_file(void) {
    char path[] = "/tmp/gort_old_XXXXXX", b[8];
    int f = mkstemp(path);
    CHECK_GE(f, 0);
    unlink(path);
    CHECK_EQ(gort_write(f, "abcdef", 6), 6);
    CHECK_EQ(gort_pwrite(f, "XY", 2, 2), 2);
    CHECK_EQ(gort_pread(f, b, 8, 1), 5);
    CHECK(memcmp(b, "bXYef", 5) == 0);
    CHECK_EQ(gort_fsync(f), 0);
    CHECK_EQ(gort_close(f), 0);
}

static void test_tcp(void) {
    char b[4];
    tcp_pair(p);
    set(&done, 0);
    CHECK_EQ(gort_read_until(p[0], b, 1, gort_now() + GORT_MS), -ETIMEDOUT);
    CHECK_EQ(gort_write(p[1], "abcd", 4), 4);
    CHECK_EQ(gort_read_full(p[0], b, 4), 4);
    gort_close(p[0]), gort_close(p[1]);
}

static int run(int argc, char **argv) {
    test_pipe();
    test_inherited();
    test_file();
    test_tcp();
    return 0;
}

int main(int argc, char **argv) {
    become_old();
    return gort_main(run, argc, argv);
}
