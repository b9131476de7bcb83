/* Where the kernel has no preadv2 and pwritev2 at all (a filter takes them away): hooked reads and
 * writes on pipes are asked by poll first. A goroutine waits and no thread does, a large write is
 * not cut short, and a pipe that the program has made O_NONBLOCK answers at once. */
#include "hook.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define REFUSE(nr)                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

static void become_old(void) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              REFUSE(SYS_preadv2), REFUSE(SYS_pwritev2),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof f / sizeof f[0], f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        SKIP("no seccomp");
}

#define WAITERS 50
#define BIG ((size_t)1 << 20)
static int ends[WAITERS][2], p[2], got;
static char big[BIG], back[BIG];

static void reader(void *arg) {
    int *end = arg, value = -1;
    CHECK_EQ(read(end[0], &value, sizeof value), sizeof value);
    CHECK_EQ(value, (int)((int(*)[2])end - ends));
    add(&got, 1);
}

static void waiters(void) {
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(pipe(ends[i]), 0);
        CHECK_EQ(gort_go(reader, ends[i]), 0);
    }
    wait_for_waiting("IO wait", WAITERS);
    CHECK_LT(threads(), 30);
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(write(ends[i][1], &i, sizeof i), sizeof i);
    wait_until(get(&got) == WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(fcntl(ends[i][0], F_GETFL) & O_NONBLOCK, 0);
        close(ends[i][0]), close(ends[i][1]);
    }
}

static void writer(void *arg) {
    struct iovec v[2] = {{big, BIG / 2}, {big + BIG / 2, BIG / 2}};
    int to = p[1]; /* the reader goes on before the close: p may be the next pipe by then */
    CHECK_EQ(arg ? writev(to, v, 2) : write(to, big, BIG), (ssize_t)BIG);
    close(to);
}

static void large_write(void *pieces) {
    size_t n = 0;
    CHECK_EQ(pipe(p), 0);
    CHECK_EQ(gort_go(writer, pieces), 0);
    for (ssize_t r; (r = read(p[0], back + n, BIG - n)) > 0; n += (size_t)r) continue;
    CHECK_EQ(n, BIG);
    CHECK(memcmp(big, back, BIG) == 0);
    close(p[0]);
}

static void nonblocking(void) {
    char c;
    CHECK_EQ(pipe2(p, O_NONBLOCK), 0);
    CHECK(read(p[0], &c, 1) == -1 && errno == EAGAIN);
    ssize_t r = write(p[1], big, BIG); /* what fits */
    CHECK(r > 0 && r < (ssize_t)BIG);
    CHECK(write(p[1], big, BIG) == -1 && errno == EAGAIN);
    close(p[0]), close(p[1]);
}

static int app(int argc, char **argv) {
    check_hooked();
    for (size_t i = 0; i < BIG; i++) big[i] = (char)(i * 7 + i / 4096);
    waiters();
    large_write(NULL);
    large_write(p);
    nonblocking();
    return 0;
}

int main(int argc, char **argv) {
    become_old();
    return gort_main(app, argc, argv);
}
