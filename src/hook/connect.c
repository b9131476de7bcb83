/*
 * connect.
 *
 * No flag makes one connect non-blocking. Most do not block: to a unix socket or the loopback
 * (whose handshake is over before connect(2) returns), of a socket without connections, with
 * O_NONBLOCK. Those are made as they are. If one waits after all, since its peer's backlog is full,
 * the monitor takes the P, and the next connects go the long way.
 *
 * The long way (hookio.c) sets O_NONBLOCK for the moment of the call: no other call uses a socket
 * that is not yet connected. A timeout shows as the kernel's: EINPROGRESS.
 */
#include "hook/hook_internal.h"

#include <netinet/in.h>

#define DOUBT_FIRST 64
#define DOUBT_MOST 65536

/* atomic, a hint: so many connects go the long way after one that has waited (known.doubt: left) */
static uint32_t connect_lesson;

static bool is_near(const struct sockaddr *sa, socklen_t len) {
    if (len < sizeof sa->sa_family) return true; /* connect(2) says what is wrong with it */
    if (sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in))
        return *(const uint8_t *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr == 127;
    if (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6))
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
    return sa->sa_family == AF_UNIX || sa->sa_family == AF_UNSPEC;
}

static bool connect_trusted(void) {
    uint32_t left = load_rlx(&known.doubt);
    if (likely(left == 0)) return true;
    store_rlx(&known.doubt, left - 1);
    return false;
}

/* The runtime's table has nothing of the number's last file. */
static bool is_fresh(int fd, int flags) {
    return (flags & HINT_BORN) || !desc_known(known.descs, fd);
}

static bool is_short(M *m, int fd, int flags, const struct sockaddr *sa, socklen_t len) {
    if (!readable(sa, len < sizeof(struct sockaddr_in6) ? len : sizeof(struct sockaddr_in6)) ||
        !is_fresh(fd, flags) || !hot_allowed(m))
        return false;
    if (!(flags & (HINT_NONBLOCK | HINT_MESSAGES)) && !(is_near(sa, len) && connect_trusted()))
        return false;
    return known.retakes;
}

static COLD void connect_slept(M *m, int fd) {
    uint32_t next = load_rlx(&connect_lesson) * 2;
    next = next < DOUBT_FIRST ? DOUBT_FIRST : next > DOUBT_MOST ? DOUBT_MOST : next;
    store_rlx(&connect_lesson, next);
    store_rlx(&known.doubt, next);
    flags_take(fd, HINT_NONBLOCK | HINT_MESSAGES);
    if (was_taken(m)) core_pass();
}

static long connect_parked(int fd, const struct sockaddr *sa, socklen_t len, int64_t deadline,
                           uint32_t life) {
    if (!is_fresh(fd, flags_hint(fd))) core->forget(fd);
    return core->connect(fd, sa, len, deadline, life);
}

/* life: of the number when a call began that has slept; 0: the call begins here. */
static NOINLINE int connect_long(int fd, const struct sockaddr *sa, socklen_t len, uint32_t life) {
    if (!here()) return libc(connect)(fd, sa, len);
    long flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    if (flags < 0 || (flags & O_NONBLOCK)) return libc(connect)(fd, sa, len);
    kind_set_both(fd, KIND_SOCKET);
    int64_t deadline = socket_deadline(fd, SO_SNDTIMEO);
    long r = staying_until(deadline, connect_parked(fd, sa, len, deadline, life));
    return (int)returned(r);
}

/* A call that was made as it is. If the monitor has ended it, it goes on as a goroutine's. */
static COLD int connect_failed(int fd, const struct sockaddr *sa, socklen_t len, uint32_t life,
                               long r) {
    if (r != -EINTR) return (int)errno_failed(r);
    if (!life_goes_on(fd, life)) return (int)errno_failed(-EBADF);
    if (handler_ended(socket_deadline(fd, SO_SNDTIMEO) == GORT_FOREVER))
        return (int)errno_failed(-EINTR);
    return connect_long(fd, sa, len, life);
}

/* Not expected to wait. If a signal ends a wait, a unix socket has not begun to connect; any other
 * goes on, and the next connect(2) says EALREADY. */
static NOINLINE int connect_short(int fd, const struct sockaddr *sa, socklen_t len, M *m) {
    if (!is_short(m, fd, flags_hint(fd), sa, len)) return connect_long(fd, sa, len, 0);
    uint32_t looks = load_rlx(known.looks), life = life_of(fd);
    long r = hot_call(m, SYS_connect, fd, sa, len, 0);
    if (slept(m, looks) || r == -EINTR) connect_slept(m, fd);
    return likely(r >= 0) ? 0 : connect_failed(fd, sa, len, life, r);
}

/* A socket made here without connections, or with O_NONBLOCK: nothing to wait for. */
static NOINLINE int connect_at_once(int fd, const struct sockaddr *sa, socklen_t len, M *m) {
    uint32_t life = life_of(fd);
    long r = hot_call(m, SYS_connect, fd, sa, len, 0);
    if (was_taken(m) || r == -EINTR) connect_slept(m, fd);
    return likely(r >= 0) ? 0 : connect_failed(fd, sa, len, life, r);
}

HOOK int connect(int fd, const struct sockaddr *sa, socklen_t len) {
    M *m = runner(connect);
    if (m == NULL) return libc(connect)(fd, sa, len);
    int flags = flags_hint(fd);
    bool at_once = (flags & HINT_BORN) && (flags & (HINT_NONBLOCK | HINT_MESSAGES));
    return at_once ? connect_at_once(fd, sa, len, m) : connect_short(fd, sa, len, m);
}
