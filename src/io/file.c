/*
 * Files that cannot be polled: regular files, directories, block devices. And what goes with them:
 * open, fsync, the resolver.
 *
 * A read first asks for what is in the page cache (RWF_NOWAIT), which needs nobody's help. What is
 * not there, every write and every fsync may sleep in the kernel for as long as a disk likes. At an
 * explicit offset they go through io_uring (uring.c), where it is to be had; else, and always where
 * the file's own position is used, on this thread with the P handed off. (io_uring does not
 * lock the position, so two readers of one descriptor would see the same bytes.)
 *
 * The entry's count of calls is not held while a thread sleeps: a close would have to wait for the
 * disk. As with plain close(2), the call then goes on with the file it had; close.c sees to it that
 * one which is not in the kernel yet does not find another.
 *
 * Opening may block for as long as a FIFO has no other end, so it is always handed off.
 */
#include "io/fdcall.h"
#include "os/linux/uring.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define AT_MOST 0x7ffff000 /* what one read(2) moves */

static bool is_vector(Call *c) { return c->flags & FILE_VECTOR; }

/* What is cached; -EAGAIN: not here, or not supported. */
static long read_cached(Call *c) {
    struct iovec one = {c->buf, c->n};
    long r = sys6(SYS_preadv2, c->fd, is_vector(c) ? c->buf : &one, is_vector(c) ? c->n : 1,
                  c->offset, c->offset < 0 ? -1 : 0, RWF_NOWAIT);
    /* a filter may refuse the call */
    return r == -EOPNOTSUPP || r == -ENOSYS || r == -EPERM ? -EAGAIN : r;
}

static long sleep_in_kernel(Call *c, int op) {
    static const int at_position[2][2] = {{SYS_read, SYS_write}, {SYS_readv, SYS_writev}};
    if (op == FILE_FSYNC) return sys6(SYS_fsync, c->fd, 0, 0, 0, 0, 0);
    if (c->offset < 0) return sys6(at_position[is_vector(c)][op], c->fd, c->buf, c->n, 0, 0, 0);
    return sys6(op == FILE_READ ? SYS_pread64 : SYS_pwrite64, c->fd, c->buf, c->n, c->offset, 0, 0);
}

/* The P goes to somebody else meanwhile. */
static long on_this_thread(Call *c, int op) {
    call_doze(c);
    c->m = block_begin(c->m);
    long r = sleep_in_kernel(c, op);
    c->m = block_end(c->m);
    call_rouse(c);
    return r;
}

/* io_uring takes no notice of an offset on a pipe, where pread(2) says ESPIPE. */
static bool has_offsets(int fd) {
    struct stat st;
    return sys6(SYS_fstat, fd, &st, 0, 0, 0, 0) == 0 &&
           (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

static void entry_is_put(M *m, void *desc) { desc_unref(m, desc); }

/* The ring has not done it, and nothing of it. -ECANCELED: the thread that handed the entry over
 * has ended since, with a goroutine that was locked to it, or a plain one out of gort_close; the
 * kernel cancels what it has not begun. */
static bool undone(long result) {
    return result == -EAGAIN || result == -EINVAL || result == -EOPNOTSUPP || result == -ECANCELED;
}

static bool through_uring(Call *c, int op, long *result) {
    static const int opcode[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC};
    if (!is_goroutine(c->m) || c->m->pins || (op != FILE_FSYNC && c->offset < 0)) return false;
    if (op != FILE_FSYNC && !has_offsets(c->fd)) return false;
    UringOp u = {.opcode = opcode[op],
                 .fd = c->fd,
                 .buf = c->buf,
                 .offset = c->offset,
                 .put = entry_is_put,
                 .arg = c->d};
    u.n = c->n > AT_MOST ? AT_MOST : (uint32_t)c->n;
    if (!netpoll_file(&c->m, &u)) return false;
    call_reref(c);
    *result = u.result;
    if (!undone(u.result)) return true;
    *result = -EBADF; /* the number may be somebody else's by now */
    return call_closed(c);
}

static long slowly(Call *c, int op) {
    long r;
    desc_note(c->fd); /* a close has to know of it */
    return through_uring(c, op, &r) ? r : on_this_thread(c, op);
}

/* A cached beginning is there: the rest from the disk, so that a read is short at the end of a
 * file only. */
static long read_on(Call *c, long got) {
    c->buf = (char *)c->buf + got;
    c->n -= (size_t)got;
    if (c->offset >= 0) c->offset += got;
    long r = slowly(c, FILE_READ);
    return r < 0 ? got : got + r;
}

long file_run(Call *c, int op) {
    if (op != FILE_READ) return slowly(c, op);
    long r = read_cached(c);
    if (r == -EAGAIN) return slowly(c, op);
    if (r > 0 && !is_vector(c) && (size_t)r < c->n && c->n <= AT_MOST) return read_on(c, r);
    return r;
}

/* ---- the calls ------------------------------------------------------------------------------ */

/* Nothing to move, or more than there is memory: the kernel has its say, and does not wait. */
static bool is_odd(Call *c) { return unlikely(c->n == 0 || (ssize_t)c->n < 0); }

static long try_pread(Call *c) {
    return is_odd(c) ? sleep_in_kernel(c, FILE_READ) : file_run(c, FILE_READ);
}
static long try_pwrite(Call *c) {
    return is_odd(c) ? sleep_in_kernel(c, FILE_WRITE) : file_run(c, FILE_WRITE);
}
static long try_fsync(Call *c) { return file_run(c, FILE_FSYNC); }

EXPORT ssize_t gort_pread(int fd, void *buf, size_t n, off_t offset) {
    if (offset < 0) return -EINVAL;
    Call c = {
        .attempt = try_pread, .fd = fd, .dir = DIR_READ, .buf = buf, .n = n, .offset = offset};
    return call_run(&c, GORT_FOREVER);
}

EXPORT ssize_t gort_pwrite(int fd, const void *buf, size_t n, off_t offset) {
    if (offset < 0) return -EINVAL;
    Call c = {.attempt = try_pwrite,
              .fd = fd,
              .dir = DIR_WRITE,
              .buf = (void *)buf,
              .n = n,
              .offset = offset};
    return call_run(&c, GORT_FOREVER);
}

EXPORT int gort_fsync(int fd) {
    Call c = {.attempt = try_fsync, .fd = fd, .dir = DIR_WRITE};
    return (int)call_run(&c, GORT_FOREVER);
}

EXPORT int gort_open(const char *path, int flags, mode_t mode) {
    if (in_forked_child()) return -ENOTCONN;
    long r;
    do {
        M *m = block_begin(enter());
        r = sys6(SYS_openat, AT_FDCWD, path, flags, mode, 0, 0);
        leave(block_end(m));
    } while (r == -EINTR || netpoll_more_numbers(r));
    if (r >= 0) {
        M *m = enter();
        desc_born((int)r);
        leave(m);
    }
    return (int)r;
}

typedef struct Lookup {
    const char *node, *service;
    const struct addrinfo *hints;
    struct addrinfo **res;
} Lookup;

static long lookup(void *arg) {
    Lookup *l = arg;
    return getaddrinfo(l->node, l->service, l->hints, l->res);
}

EXPORT int gort_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                            struct addrinfo **res) {
    if (in_forked_child()) return -ENOTCONN;
    Lookup l = {node, service, hints, res};
    int saved = *gort_errno_location();
    long r = gort_blocking(lookup, &l);
    *gort_errno_location() = saved;
    return (int)r;
}
