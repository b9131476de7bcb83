#define _GNU_SOURCE 1
/* A ring that was to be had at the start and takes nothing later: now and then, or for good, or
 * since the program forbade itself the call. What is not taken is done on a thread: every operation
 * ends, with the right bytes, and so does the runtime. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define WORKERS 24
#define BLOCK 512

static int fd;
static int done;
static bool filtered;

static void worker(void *arg) {
    intptr_t k = (intptr_t)arg;
    unsigned char b[BLOCK], c[BLOCK];
    memset(b, (int)k + 1, sizeof b);
    for (int i = 0; i < 3; i++) {
        off_t at = (off_t)(k * 3 + i) * BLOCK;
        CHECK_EQ(gort_pwrite(fd, b, BLOCK, at), BLOCK);
        if (k % 8 == 0) CHECK_EQ(gort_fsync(fd), 0);
        CHECK_EQ(gort_pread(fd, c, BLOCK, at), BLOCK);
        CHECK(memcmp(b, c, BLOCK) == 0);
    }
    add(&done, 1);
}

/* Files that are closed while others are in the ring. */
static void closer(void *arg) {
    char path[] = "/tmp/gort-refused-XXXXXX";
    int mine = mkstemp(path);
    CHECK_GE(mine, 0);
    unlink(path);
    CHECK_EQ(gort_pwrite(mine, "abc", 3, 0), 3);
    CHECK_EQ(gort_close(mine), 0);
    add(&done, 1);
}

static void forbid(void) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof f / sizeof f[0], f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        SKIP("no seccomp");
}

static int app(int argc, char **argv) {
    char path[] = "/tmp/gort-refused-XXXXXX";
    CHECK_GE(fd = mkstemp(path), 0);
    unlink(path);
    set(&done, 0);
    for (intptr_t i = 0; i < WORKERS; i++) {
        CHECK_EQ(gort_go(worker, (void *)i), 0);
        if (i == WORKERS / 2 && argc == 0) forbid(), filtered = true; /* some are in the ring */
        CHECK_EQ(gort_go(closer, NULL), 0);
    }
    wait_until(get(&done) == 2 * WORKERS);
    /* Alone, with a poller that sleeps. */
    gort_sleep(GORT_MS);
    CHECK_EQ(gort_pwrite(fd, "x", 1, 0), 1);
    CHECK_EQ(gort_close(fd), 0);
    return 0;
}

static void with(const char *rules) {
    setenv("GORT_DEBUG", rules, 1);
    CHECK_EQ(gort_main(app, 1, NULL), 0);
}

int main(void) {
    /* What is in the page cache needs no ring, unless it is said not to be. */
#define UNCACHED ",sysfault=preadv2:EAGAIN:1+"
    static const char *const errors[] = {"EBUSY", "EAGAIN", "EINTR", "ENOMEM",
                                         "EPERM", "ENXIO",  "EINVAL"};
    char rules[128];
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        snprintf(rules, sizeof rules, "sysfault=io_uring_enter:%s:1+" UNCACHED, errors[i]);
        with(rules);
        snprintf(rules, sizeof rules, "sysfault=io_uring_enter:%s:1/2:%d" UNCACHED, errors[i],
                 (int)i);
        with(rules);
    }
    setenv("GORT_DEBUG", "sysfault=preadv2:EAGAIN:1+", 1);
    CHECK_EQ(gort_main(app, 0, NULL), 0);
    CHECK(filtered);
    return 0;
}
