/* Descriptors and files: close, dup, dup2, fcntl, open, fsync, flock. */
#include "hook.h"
#include <sys/file.h>
#include <sys/stat.h>

static char path[] = "/tmp/gort-hook-XXXXXX";
static int done, fds[2];

static void reopened(void) {
    for (int i = 0; i < 50; i++) { /* one number, now a pipe, now a socket, now a file */
        int p[2];
        char c = 0;
        CHECK_EQ(i % 2 ? pipe(p) : socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
        CHECK_EQ(write(p[1], "y", 1), 1);
        CHECK_EQ(read(p[0], &c, 1), 1);
        CHECK_EQ(c, 'y');
        int copy = dup(p[0]);
        CHECK_GE(copy, 0);
        CHECK_EQ(dup2(p[1], p[0]), p[0]); /* p[0] is the writing end now */
        if (i % 2) CHECK_FAILS(read(p[0], &c, 1), EBADF);
        CHECK_EQ(write(p[0], "z", 1), 1);
        CHECK_EQ(read(copy, &c, 1), 1);
        CHECK_EQ(c, 'z');
        CHECK_EQ(dup3(copy, p[1], O_CLOEXEC), p[1]);
        int high = fcntl(copy, F_DUPFD, 100);
        CHECK_GE(high, 100);
        CHECK_EQ(close(high), 0);
        CHECK_EQ(close(copy), 0);
        CHECK_EQ(close(p[0]), 0);
        CHECK_EQ(close(p[1]), 0);
        CHECK_FAILS(close(p[1]), EBADF);
        int fd = open(path, O_RDWR);
        CHECK_GE(fd, 0);
        CHECK_EQ(read(fd, &c, 1), 1);
        CHECK_EQ(c, 'f');
        CHECK_EQ(close(fd), 0);
    }
}

static void files(void) {
    char buf[16] = "";
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_GE(fd, 0);
    struct stat st;
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(write(fd, "file", 4), 4);
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(fdatasync(fd), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(read(fd, buf, sizeof buf), 4);
    CHECK_STR(buf, "file");
    CHECK_EQ(read(fd, buf, sizeof buf), 0);
    CHECK_EQ(close(fd), 0);
    CHECK_FAILS(open("/nowhere/at/all", O_RDONLY), ENOENT);
    CHECK_FAILS(fsync(fd), EBADF);
}

static void flocker(void *arg) {
    CHECK_FAILS(flock(fds[1], LOCK_EX | LOCK_NB), EWOULDBLOCK);
    CHECK_EQ(flock(fds[1], LOCK_EX), 0);
    add(&done, 1);
}

static void range_locker(void *arg) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_EQ(fcntl(fds[1], F_OFD_SETLKW, &l), 0);
    add(&done, 1);
}

static void locks(void) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (int i = 0; i < 2; i++) CHECK_GE(fds[i] = open(path, O_RDWR), 0);
    set(&done, 0);
    CHECK_EQ(flock(fds[0], LOCK_EX), 0);
    gort_go(flocker, NULL);
    wait_for_waiting("syscall", 1);
    CHECK_EQ(flock(fds[0], LOCK_UN), 0);
    wait_until(get(&done) == 1);
    CHECK_EQ(fcntl(fds[0], F_OFD_SETLK, &l), 0);
    gort_go(range_locker, NULL);
    wait_for_waiting("syscall", 1);
    l.l_type = F_UNLCK;
    CHECK_EQ(fcntl(fds[0], F_OFD_SETLK, &l), 0);
    wait_until(get(&done) == 2);
    CHECK_EQ(fcntl(fds[0], F_SETLKW, &l), 0);
    close(fds[0]);
    close(fds[1]);
}

static void fifo_reader(void *arg) {
    char c;
    int fd = open(arg, O_RDONLY);
    CHECK_GE(fd, 0);
    CHECK_EQ(read(fd, &c, 1), 1);
    close(fd);
    add(&done, 1);
}

static void fifo(void) {
    char name[64];
    snprintf(name, sizeof name, "%s.fifo", path);
    CHECK_EQ(mkfifo(name, 0600), 0);
    set(&done, 0);
    gort_go(fifo_reader, name);
    int fd = open(name, O_WRONLY);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, "x", 1), 1);
    wait_until(get(&done) == 1);
    close(fd);
    unlink(name);
}

static int run(int argc, char **argv) {
    close(mkstemp(path));
    files();
    reopened();
    locks();
    fifo();
    unlink(path);
    return 0;
}
HOOK_MAIN(run)
