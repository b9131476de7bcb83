#define _GNU_SOURCE 1
/* A file closed, and its number taken by another, while a call on it is on its way into the kernel
 * on a thread of its own: it gives -EBADF, and the other file is not touched. The kernel itself
 * holds the call there, by a seccomp filter that asks us first whenever somebody writes or reads
 * LATE bytes. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LATE 4242
#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

static int listener, arrived, go_on, done;
static char path[2][64];
static char bytes[LATE];

/* A plain thread: for each call that arrives, waits for our word. */
static void *doorkeeper(void *arg) {
    for (;;) {
        struct seccomp_notif in = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0) {
            if (errno == EINTR || errno == ENOENT) continue;
            FAILF("receiving: %s", strerror(errno));
        }
        add(&arrived, 1);
        while (!get(&go_on)) sched_yield();
        struct seccomp_notif_resp out = {.id = in.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out) < 0 && errno != ENOENT)
            FAILF("sending: %s", strerror(errno));
    }
}

static void install_filter(void) {
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LATE, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
    struct sock_fprog program = {.len = sizeof f / sizeof *f, .filter = f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) SKIP("no seccomp");
    listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            &program);
    if (listener < 0) SKIP("no notifications by seccomp: %s", strerror(errno));
}

static void write_late(void *arg) {
    int fd = (int)(intptr_t)arg;
    CHECK_EQ(gort_write(fd, bytes, LATE), -EBADF);
    add(&done, 1);
}

static void *write_late_plain(void *arg) {
    write_late(arg);
    return NULL;
}

static off_t size_of(int fd) {
    struct stat st;
    CHECK_EQ(fstat(fd, &st), 0);
    return st.st_size;
}

static int new_file(int i) {
    int fd = gort_open(path[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    return fd;
}

/* The number is nobody's while the calls are out, and free once they are back. */
static void test_late(bool plain) {
    char b[8];
    pthread_t th;
    int fd = new_file(0);
    set(&arrived, 0), set(&go_on, 0), set(&done, 0);
    gort_go(write_late, (void *)(intptr_t)fd);
    if (plain) CHECK_EQ(pthread_create(&th, NULL, write_late_plain, (void *)(intptr_t)fd), 0);
    wait_until(get(&arrived) == 1); /* of two: the other is asked for later, or begins too late */
    CHECK_EQ(gort_close(fd), 0);
    CHECK_EQ(gort_close(fd), -EBADF);
    CHECK_EQ(gort_read(fd, b, 8), -EBADF);
    int other = new_file(1);
    CHECK_NE(other, fd);
    set(&go_on, 1);
    wait_until(get(&done) == 1 + plain);
    if (plain) CHECK_EQ(pthread_join(th, NULL), 0);
    CHECK_EQ(size_of(other), 0);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    int again = new_file(0);
    CHECK_EQ(again, fd);
    CHECK_EQ(gort_write(again, "fine", 4), 4);
    CHECK_EQ(gort_close(again), 0);
    CHECK_EQ(gort_close(other), 0);
}

/* Closed behind the runtime's back: what stands in for it must not be taken for it. */
static void test_behind(void) {
    int fd = new_file(0);
    set(&arrived, 0), set(&go_on, 0), set(&done, 0);
    gort_go(write_late, (void *)(intptr_t)fd);
    wait_until(get(&arrived) == 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(gort_close(fd), -EBADF);
    CHECK_EQ(gort_close(fd), -EBADF);
    set(&go_on, 1);
    wait_until(get(&done));
}

/* There is no number for a placeholder: the close waits for the call, which has its file. */
static int last;
static void write_in_time(void *arg) {
    CHECK_EQ(gort_write(last, bytes, LATE), LATE);
    add(&done, 1);
}
static void open_the_door(void *arg) {
    settle();
    set(&go_on, 1);
}
static void test_no_number(void) {
    struct rlimit all, none;
    last = new_file(0);
    set(&arrived, 0), set(&go_on, 0), set(&done, 0);
    gort_go(write_in_time, NULL);
    wait_until(get(&arrived) == 1);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = all;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    gort_go(open_the_door, NULL);
    CHECK_EQ(gort_close(last), 0);
    set(&go_on, 1);
    wait_until(get(&done));
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &all), 0);
}

static int run(int argc, char **argv) {
    int before = count_fds();
    test_late(false);
    test_late(true);
    test_behind();
    test_no_number();
    CHECK_EQ(count_fds(), before);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t th;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "/var/tmp/gort_late_%d_%d", (int)getpid(), i);
    install_filter();
    CHECK_EQ(pthread_create(&th, NULL, doorkeeper, NULL), 0);
    int r = gort_main(run, argc, argv);
    for (int i = 0; i < 2; i++) unlink(path[i]);
    return r;
}
