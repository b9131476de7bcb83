/*
 * Descriptors that the library keeps: a trace's files, the live page's sockets, gort-top's page.
 *
 * The program may close their numbers: by closefrom(3), a loop over all numbers, a close too many.
 * The next file gets the number, and what the library writes to it, accepts on it or closes would
 * be the program's. So the library notes what the descriptor was when it was made, and asks before
 * each use: fstat(2) tells the file, and a mark the open file. The mark is the signal number that
 * F_SETSIG chooses for O_ASYNC, which we never use. It tells apart what fstat does not: two
 * openings of one file, and a file with the inode of one that is gone.
 *
 * A moment between question and use remains: it takes a program that closes what it has not opened,
 * out of the way (os_fd_away), on another thread, just then. A number whose descriptor could not be
 * told when it was made is trusted. One that cannot be told later is not: to leave a descriptor of
 * the library open does less harm than to close a stranger's. The poller tells its own by its epoll
 * set.
 */
#include "os/ownfd.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MARK 64 /* the last signal number that the kernel takes */
#define TRIES 4 /* a refusal may pass */

static long ask_about(int fd, long nr, long arg) {
    long r = -EINTR;
    for (int i = 0; i < TRIES && r < 0 && r != -EBADF; i++) r = sys6(nr, fd, arg, 0, 0, 0, 0);
    return r;
}

static int mark_of(int fd) { return (int)ask_about(fd, SYS_fcntl, F_GETSIG); }

/* 0, -errno. */
static int identify(int fd, OwnFd *o) {
    struct stat st;
    long r = ask_about(fd, SYS_fstat, (long)&st);
    o->told = r == 0;
    if (!o->told) return (int)r;
    o->dev = st.st_dev;
    o->ino = st.st_ino;
    return 0;
}

OwnFd own_fd(int fd) {
    OwnFd o = {0};
    if (fd < 0) return o;
    o.number = fd + 1;
    identify(fd, &o);
    sys6(SYS_fcntl, fd, F_SETSIG, MARK, 0, 0, 0);
    o.mark = mark_of(fd) == MARK ? MARK : 0;
    return o;
}

int own_fd_number(const OwnFd *o) {
    OwnFd now = {0};
    int fd = o->number - 1;
    if (fd < 0) return -EBADF;
    if (o->mark && mark_of(fd) != o->mark) return -EBADF;
    if (!o->told) return fd;
    bool same = identify(fd, &now) == 0 && now.dev == o->dev && now.ino == o->ino;
    return same ? fd : -EBADF;
}

void own_fd_close(OwnFd *o) {
    int fd = own_fd_number(o);
    if (fd >= 0) sys6(SYS_close, fd, 0, 0, 0, 0, 0);
    *o = (OwnFd){0};
}
