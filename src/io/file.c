/*
 * Files that cannot be polled: regular ones, directories, block devices; open, and the resolver.
 *
 * A read first asks for what is in the page cache (RWF_NOWAIT), which needs no other thread. A read
 * that misses it, a write and an fsync may sleep in the kernel for as long as a disk likes. At an
 * explicit offset they go through io_uring (uring.c), where there is one. Else, and always at the
 * file's own position, they run on this thread with the P handed off: io_uring does not lock the
 * position, so two readers of one descriptor would see the same bytes. So do those of a goroutine
 * that is locked to its thread, which may have a descriptor table of its own.
 *
 * While its thread sleeps a call counts apart, and a close does not wait for it (close.c). Opening
 * a FIFO blocks for as long as it has no other end, so gort_open always hands off.
 */
#include "io/fdcall.h"
#include "os/linux/uring.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/stat.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define AT_MOST 0x7ffff000 /* the most that one read(2) moves */

static bool at_offset(const Call *c) { return c->flags & FILE_AT; }

long file_call_nowait(Call *c, int op) {
    struct iovec one = {c->buf, c->n};
    return sys6(op == FILE_WRITE ? SYS_pwritev2 : SYS_preadv2, c->fd, is_vector(c) ? c->buf : &one,
                is_vector(c) ? c->n : 1, at_offset(c) ? c->offset : -1, at_offset(c) ? 0 : -1,
                RWF_NOWAIT);
}

static long call_number(const Call *c, int op) {
    static const int at_position[2][2] = {{SYS_read, SYS_write}, {SYS_readv, SYS_writev}};
    if (op == FILE_FSYNC) return SYS_fsync;
    if (!at_offset(c)) return at_position[is_vector(c)][op];
    return op == FILE_READ ? SYS_pread64 : SYS_pwrite64;
}

/* Each takes as many of these as it knows. */
long file_call(Call *c, int op) {
    return sys6(call_number(c, op), c->fd, c->buf, c->n, c->offset, 0, 0);
}

long file_sleep(Call *c, int op) {
    call_doze(c);
    store_rlx(&c->m->numbered, call_number(c, op));
    M *m = block_begin(c->m);
    long r = file_call(c, op);
    store_rlx(&m->numbered, 0);
    c->m = block_end(m);
    call_rouse(c);
    return r;
}

/* io_uring ignores an offset on a pipe, where pread(2) says ESPIPE. */
static bool has_offsets(int fd) {
    struct stat st;
    return sys6(SYS_fstat, fd, &st, 0, 0, 0, 0) == 0 &&
           (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

static void entry_is_put(M *m, void *desc) { desc_unref(m, desc); }

/* The ring did nothing. -ECANCELED: its thread has ended before the kernel began. */
static bool undone(long result) {
    return result == -EAGAIN || result == -EINVAL || result == -EOPNOTSUPP || result == -ECANCELED;
}

static bool through_uring(Call *c, int op, long *result) {
    static const int opcode[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC};
    if (!shares_numbers(c->m) || c->m->pins || (op != FILE_FSYNC && !at_offset(c))) return false;
    if (op != FILE_FSYNC && !has_offsets(c->fd)) return false;
    UringOp u = {.opcode = opcode[op], .fd = c->fd, .buf = c->buf, .offset = c->offset};
    u.put = entry_is_put;
    u.arg = c->d;
    u.n = c->n > AT_MOST ? AT_MOST : (uint32_t)c->n;
    if (!netpoll_file(&c->m, &u)) return false;
    call_reref(c);
    *result = u.result;
    if (!undone(u.result)) return true;
    *result = -EBADF; /* the number may have another owner by now */
    return call_closed(c);
}

static long slowly(Call *c, int op) {
    long r;
    desc_note(c->fd); /* so that a close goes through gort_close */
    return through_uring(c, op, &r) ? r : file_sleep(c, op);
}

/* The uncached rest, from the disk: a read is short at the end of a file only. */
static long file_read_rest(Call *c, long got) {
    c->buf = (char *)c->buf + got;
    c->n -= (size_t)got;
    c->offset += got;
    long r = slowly(c, FILE_READ);
    return r < 0 ? got : got + r;
}

long file_run(Call *c, int op) {
    if (op != FILE_READ) return slowly(c, op);
    long r = file_call_nowait(c, op);
    if (r == -EAGAIN || nowait_refused(r)) return slowly(c, op);
    if (r > 0 && !is_vector(c) && (size_t)r < c->n && c->n <= AT_MOST) return file_read_rest(c, r);
    return r;
}

static long try_at_offset(Call *c) {
    return unlikely(odd_length(c->n)) ? file_call(c, c->dir) : file_run(c, c->dir);
}
static long try_fsync(Call *c) { return file_run(c, FILE_FSYNC); }

static ssize_t run_at_offset(int fd, int dir, const void *buf, size_t n, off_t offset) {
    if (offset < 0) return -EINVAL;
    Call c = call_of(try_at_offset, fd, dir, buf, n);
    c.flags = FILE_AT;
    c.offset = offset;
    return call_run(&c, GORT_FOREVER);
}

EXPORT ssize_t gort_pread(int fd, void *buf, size_t n, off_t offset) {
    return run_at_offset(fd, DIR_READ, buf, n, offset);
}

EXPORT ssize_t gort_pwrite(int fd, const void *buf, size_t n, off_t offset) {
    return run_at_offset(fd, DIR_WRITE, buf, n, offset);
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
        /* left behind by the end of the runtime: this thread returns to nobody */
        if (r >= 0 && !m->plain && (load_rlx(&m->attn) & ATTN_EXIT))
            sys6(SYS_close, r, 0, 0, 0, 0, 0);
        m = block_end(m);
        if (r >= 0) desc_born((int)r);
        leave(m);
    } while (r == -EINTR || netpoll_more_numbers(r));
    return (int)r;
}
