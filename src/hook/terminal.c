/*
 * Reading terminals. What read(2) does there is termios(3)'s to say, and only partly what poll(2)
 * says. In lines (ICANON) both mean a line. Else, by VMIN and VTIME:
 *
 *     VMIN  VTIME   read waits for                          poll is ready with
 *     0     0       nothing: it returns what is there       a byte
 *     0     t       a byte, t tenths of a second long       a byte
 *     n     0       n bytes, or all that it asked for       n bytes
 *     n     t       a byte; then n bytes, or for t          a byte
 *
 * In the first case the call is made as it is. In the second the wait has a deadline, and gives 0.
 * In the third a call that asks for less than n bytes looks how many there are, by the clock. In
 * the last the thread waits between the bytes: no other call takes the first ones out. For the same
 * reason no read of a terminal is made as it is where it may sleep (optimistic.c): a signal, also
 * the monitor's, ends it with the bytes that it has.
 *
 * A process in the background of its terminal does not wait at all: read raises SIGTTIN, or is EIO.
 * So the call is made as it is, and a handler's EINTR is the caller's.
 *
 * The master of a pair (pty(7)) answers with the settings of the other side, and has none.
 */
#include "hook/hook_internal.h"

#include <sys/ioctl.h>
#include <termios.h>

bool is_terminal(int fd) {
    struct termios t;
    unsigned number;
    return tcgetattr(fd, &t) == 0 && sys(SYS_ioctl, fd, TIOCGPTN, &number, 0, 0, 0) < 0;
}

static bool returns_at_once(const struct termios *t) {
    return !(t->c_lflag & ICANON) && t->c_cc[VMIN] == 0 && t->c_cc[VTIME] == 0;
}

static int64_t wait_ends(const struct termios *t) {
    bool ends = !(t->c_lflag & ICANON) && t->c_cc[VMIN] == 0;
    return ends ? deadline_after(t->c_cc[VTIME] * (GORT_SEC / 10)) : GORT_FOREVER;
}

/* Bytes that are enough for a call of that many, where poll asks for more; 0: it does not. */
static uint32_t enough(const struct termios *t, size_t all) {
    bool asks = !(t->c_lflag & ICANON) && t->c_cc[VTIME] == 0 && all < t->c_cc[VMIN];
    return asks ? (uint32_t)all : 0;
}

ssize_t terminal_read(int fd, const struct iovec *iov, int n) {
    struct termios t;
    uint32_t life = life_of(fd);
    if (!caller_waits(fd) || core->in_background(fd) || tcgetattr(fd, &t) != 0 ||
        returns_at_once(&t))
        return returned(sys(SYS_readv, fd, iov, n, 0, 0, 0));
    if (!here()) return vector_on_thread(SYS_readv, fd, iov, n, life);
    int64_t deadline = wait_ends(&t);
    uint32_t least = enough(&t, iov_total(iov, (size_t)n));
    hint_settle(fd);
    long r = staying(core->read_terminal(fd, iov, n, deadline, least));
    return r == -ETIMEDOUT && deadline <= gort_now() ? 0 : returned(r);
}
