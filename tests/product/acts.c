/* The acts: every call that waits, with what it takes to end it and what must be true then, and
 * those that do not wait. Each table entry is one; a new call gets one, and no more. */
#include "product.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/un.h>

#define BY_FORM(p, plain, until, tried) \
    ((p)->form == FOREVER ? (plain) : (p)->form == UNTIL ? (until) : (tried))
#define DONE(call) ((call), 0)

static void take(Player *p) { add(&p->taken, 1); }
static void give(Player *p) { add(&p->given, 1); }
/* What was given was taken, or is left. */
static void balance(Player *p, int left) {
    if (get(&p->given) != get(&p->taken) + left)
        WRONG(p, "%d given, %d taken, %d left", get(&p->given), get(&p->taken), left);
}
static void nothing(Player *p) {}

/* ---- channels -------------------------------------------------------------------------------- */

static void make_chan(Player *p, size_t cap) {
    p->c = gort_chan_new(sizeof p->token, cap);
    p->c2 = gort_chan_new(sizeof p->token, 0);
    HOLDS(p, p->c && p->c2);
}
static void make_0(Player *p) { make_chan(p, 0); }
static void make_1(Player *p) { make_chan(p, 1); }
static void make_full(Player *p) {
    long other = -1;
    make_chan(p, 1);
    HOLDS(p, gort_chan_send(p->c, &other) == 0);
}
static void drop_chan(Player *p) {
    gort_chan_release(p->c);
    gort_chan_release(p->c2);
}
static void close_chan(Player *p) { HOLDS(p, gort_chan_close(p->c) == 0); }

static long received(Player *p, long r, long v) {
    if (r == 0 && v != p->token) WRONG(p, "%ld came, not %ld", v, p->token);
    if (r == -EPIPE && v != 0) WRONG(p, "%ld came from a closed channel", v);
    if (r == 0) take(p);
    return r;
}
static long recv_one(Player *p) {
    long v = 77;
    long r = BY_FORM(p, gort_chan_recv(p->c, &v), gort_chan_recv_until(p->c, &v, p->deadline),
                     gort_chan_try_recv(p->c, &v));
    return received(p, r, v);
}
static long pick(Player *p, gort_case *cases, int n, int mine) {
    long i = BY_FORM(p, gort_select(cases, n), gort_select_until(cases, n, p->deadline),
                     gort_try_select(cases, n));
    if (i < 0) return i;
    if (i != mine) WRONG(p, "case %ld of a select ran, not %d", i, mine);
    return cases[i].result;
}
static long select_recv(Player *p) {
    long v = 77, w = 0;
    gort_case cases[] = {gort_on_recv(p->c2, &w), gort_on_recv(p->c, &v), gort_on_send(NULL, &w)};
    long r = pick(p, cases, 3, 1);
    return received(p, r, v);
}
static long select_many(Player *p) {
    long v = 77, w = 0;
    gort_case cases[40];
    for (int i = 0; i < 40; i++) cases[i] = gort_on_send(p->c2, &w);
    cases[p->index] = gort_on_recv(p->c, &v);
    long r = pick(p, cases, 40, p->index);
    return received(p, r, v);
}
/* Between two calls, so that one to a player that waits and one to a player that left differ. */
static void send_token(Player *p) {
    for (unsigned i = 0; !get(&p->ended); i++) {
        int r = i % 2 ? gort_chan_try_send(p->c, &p->token)
                      : gort_chan_send_until(p->c, &p->token, gort_now() + 300 * GORT_US);
        if (r == 0) {
            give(p);
            return;
        }
        HOLDS(p, r == -EAGAIN || r == -ETIMEDOUT);
        test_pause(i);
    }
}
static void put_token(Player *p) {
    HOLDS(p, gort_chan_try_send(p->c, &p->token) == 0);
    give(p);
}
static void settle_recv(Player *p) {
    long v = 0;
    int left = 0;
    while (gort_chan_try_recv(p->c, &v) == 0) left++;
    balance(p, left);
    drop_chan(p);
}

static long sent(Player *p, long r) {
    if (r == 0) take(p);
    return r;
}
static long send_one(Player *p) {
    return sent(p, BY_FORM(p, gort_chan_send(p->c, &p->token),
                           gort_chan_send_until(p->c, &p->token, p->deadline),
                           gort_chan_try_send(p->c, &p->token)));
}
static long select_send(Player *p) {
    long w = 0;
    gort_case cases[] = {gort_on_send(p->c, &p->token), gort_on_recv(p->c2, &w)};
    return sent(p, pick(p, cases, 2, 0));
}
static void got(Player *p, long v) {
    if (v != p->token) WRONG(p, "%ld was sent, not %ld", v, p->token);
    give(p);
}
static void recv_token(Player *p) {
    long v = 0;
    for (unsigned i = 0; !get(&p->ended); i++) {
        int r = i % 2 ? gort_chan_try_recv(p->c, &v)
                      : gort_chan_recv_until(p->c, &v, gort_now() + 300 * GORT_US);
        if (r == 0) {
            got(p, v);
            return;
        }
        HOLDS(p, r == -EAGAIN || r == -ETIMEDOUT);
        test_pause(i);
    }
}
static void make_room(Player *p) {
    long v = 0;
    HOLDS(p, gort_chan_try_recv(p->c, &v) == 0 && v == -1);
}
static void settle_send(Player *p) {
    long v = 0;
    while (gort_chan_try_recv(p->c, &v) == 0)
        if (v != -1) got(p, v);
    balance(p, 0);
    drop_chan(p);
}

static long recv_nil(Player *p) {
    return BY_FORM(p, gort_chan_recv(NULL, NULL), gort_chan_recv_until(NULL, NULL, p->deadline),
                   gort_chan_try_recv(NULL, NULL));
}
static long select_none(Player *p) {
    return BY_FORM(p, gort_select(NULL, 0), gort_select_until(NULL, 0, p->deadline),
                   gort_try_select(NULL, 0));
}

static long recv_after(Player *p) {
    int64_t from = gort_now(), v = 0;
    gort_chan *c = gort_after(GORT_MS);
    HOLDS(p, c != NULL);
    long r = BY_FORM(p, gort_chan_recv(c, &v), gort_chan_recv_until(c, &v, p->deadline),
                     gort_chan_try_recv(c, &v));
    if (r == 0) HOLDS(p, v >= from + GORT_MS && v <= gort_now());
    gort_chan_release(c);
    return r;
}
static long recv_ticks(Player *p) {
    gort_timer *owner = NULL;
    int64_t last = gort_now();
    gort_chan *c = gort_tick(500 * GORT_US, &owner);
    HOLDS(p, c != NULL);
    long r = 0;
    for (int i = 0; i < 3 && r == 0; i++) {
        int64_t v = 0;
        r = BY_FORM(p, gort_chan_recv(c, &v), gort_chan_recv_until(c, &v, p->deadline),
                    gort_chan_try_recv(c, &v));
        if (r == 0) HOLDS(p, v >= last && v <= gort_now());
        if (r == 0) last = v;
    }
    gort_timer_free(owner);
    gort_chan_release(c);
    return r;
}

/* ---- locks and counts ------------------------------------------------------------------------ */

static void entered(Player *p) {
    HOLDS(p, add(&p->inside, 1) == 1);
    HOLDS(p, add(&p->inside, -1) == 0);
    take(p);
}
static void make_mutex(Player *p) { HOLDS(p, gort_mutex_try_lock(&p->mu) == 0); }
static long lock_mutex(Player *p) {
    long r = BY_FORM(p, DONE(gort_mutex_lock(&p->mu)), gort_mutex_lock_until(&p->mu, p->deadline),
                     gort_mutex_try_lock(&p->mu));
    if (r < 0) return r;
    entered(p);
    gort_mutex_unlock(&p->mu);
    return 0;
}
static void unlock_mutex(Player *p) {
    give(p);
    gort_mutex_unlock(&p->mu);
}
static void settle_mutex(Player *p) {
    if (!get(&p->given)) gort_mutex_unlock(&p->mu);
    HOLDS(p, gort_mutex_try_lock(&p->mu) == 0);
    gort_mutex_unlock(&p->mu);
    HOLDS(p, AT_REST(p->mu) == 0);
}

static void make_read(Player *p) { HOLDS(p, gort_rwmutex_try_rlock(&p->rw) == 0); }
static void make_write(Player *p) { HOLDS(p, gort_rwmutex_try_lock(&p->rw) == 0); }
static long lock_write(Player *p) {
    long r = BY_FORM(p, DONE(gort_rwmutex_lock(&p->rw)),
                     gort_rwmutex_lock_until(&p->rw, p->deadline), gort_rwmutex_try_lock(&p->rw));
    if (r < 0) return r;
    entered(p);
    gort_rwmutex_unlock(&p->rw);
    return 0;
}
static long lock_read(Player *p) {
    long r = BY_FORM(p, DONE(gort_rwmutex_rlock(&p->rw)),
                     gort_rwmutex_rlock_until(&p->rw, p->deadline), gort_rwmutex_try_rlock(&p->rw));
    if (r < 0) return r;
    entered(p);
    gort_rwmutex_runlock(&p->rw);
    return 0;
}
static void unlock_read(Player *p) {
    give(p);
    gort_rwmutex_runlock(&p->rw);
}
static void unlock_write(Player *p) {
    give(p);
    gort_rwmutex_unlock(&p->rw);
}
static void rwmutex_free(Player *p) {
    HOLDS(p, gort_rwmutex_try_lock(&p->rw) == 0);
    gort_rwmutex_unlock(&p->rw);
    HOLDS(p, gort_rwmutex_try_rlock(&p->rw) == 0);
    gort_rwmutex_runlock(&p->rw);
}
static void settle_write(Player *p) {
    if (!get(&p->given)) gort_rwmutex_runlock(&p->rw);
    rwmutex_free(p);
}
static void settle_read(Player *p) {
    if (!get(&p->given)) gort_rwmutex_unlock(&p->rw);
    rwmutex_free(p);
}

/* Who has the mutex and sees `inside` knows that the player waits. */
static long wait_cond(Player *p) {
    gort_mutex_lock(&p->mu);
    set(&p->inside, 1);
    long r = BY_FORM(p, DONE(gort_cond_wait(&p->cond, &p->mu)),
                     gort_cond_wait_until(&p->cond, &p->mu, p->deadline), -EBUSY);
    HOLDS(p, gort_mutex_try_lock(&p->mu) == -EBUSY);
    set(&p->inside, 0);
    gort_mutex_unlock(&p->mu);
    return r;
}
static bool signals(Player *p) {
    bool waits;
    gort_mutex_lock(&p->mu);
    waits = get(&p->inside);
    if (waits && p->seed % 2) gort_cond_signal(&p->cond);
    else if (waits) gort_cond_broadcast(&p->cond);
    gort_mutex_unlock(&p->mu);
    return waits;
}
static void signal_cond(Player *p) { wait_until(get(&p->ended) || signals(p)); }
static void settle_cond(Player *p) {
    if (get(&p->over)) return; /* locked by whom the end has stopped, perhaps */
    HOLDS(p, p->cond.head_ == NULL);
    HOLDS(p, gort_mutex_try_lock(&p->mu) == 0);
    gort_mutex_unlock(&p->mu);
}

static long acquire(Player *p) {
    int64_t n = 1 + p->index;
    long r =
        BY_FORM(p, DONE(gort_sem_acquire(&p->sem, n)),
                gort_sem_acquire_until(&p->sem, n, p->deadline), gort_sem_try_acquire(&p->sem, n));
    if (r == 0) take(p);
    return r;
}
static void release(Player *p) {
    give(p);
    gort_sem_release(&p->sem, 1 + p->index);
}
static void settle_sem(Player *p) {
    int left = gort_sem_try_acquire(&p->sem, 1 + p->index) == 0;
    HOLDS(p, gort_sem_try_acquire(&p->sem, 1) == -EBUSY);
    if (!get(&p->over)) balance(p, left);
}

static void make_wg(Player *p) { gort_wg_add(&p->wg, 1); }
static long wait_wg(Player *p) {
    return BY_FORM(p, DONE(gort_wg_wait(&p->wg)), gort_wg_wait_until(&p->wg, p->deadline), -EBUSY);
}
static void done_wg(Player *p) {
    give(p);
    gort_wg_done(&p->wg);
}
static void settle_wg(Player *p) {
    if (!get(&p->given)) gort_wg_done(&p->wg);
    HOLDS(p, gort_wg_wait_until(&p->wg, 0) == 0);
}

static void counts(void *arg) {
    Player *p = arg;
    set(&p->inside, 1);
    wait_until(get(&p->opened));
    add(&p->fired, 1);
}
static void does_once(void *arg) {
    Player *p = arg;
    gort_once_do(&p->once, counts, p);
    add(&p->given, 1);
}
static void make_once(Player *p) {
    HOLDS(p, gort_go(does_once, p) == 0);
    wait_until(get(&p->inside));
}
static long do_once(Player *p) {
    gort_once_do(&p->once, counts, p);
    HOLDS(p, get(&p->fired) == 1);
    return 0;
}
static void open_door(Player *p) { set(&p->opened, 1); }
static void settle_once(Player *p) {
    set(&p->opened, 1);
    if (!get(&p->over)) wait_until(get(&p->given) == 1);
    gort_once_do(&p->once, counts, p);
    HOLDS(p, get(&p->fired) >= 1);
}

static int member(gort_ctx *c, void *arg) {
    Player *p = arg;
    HOLDS(p, gort_ctx_used() == c);
    wait_until(get(&p->opened));
    return -EIO;
}
static int second(gort_ctx *c, void *arg) {
    add(&((Player *)arg)->fired, 1);
    return 0;
}
static void make_group(Player *p) {
    p->group = gort_group_new(NULL, 1);
    HOLDS(p, p->group && gort_group_go(p->group, member, p) == 0);
    HOLDS(p, gort_group_try_go(p->group, second, p) == -EAGAIN);
}
static long join_group(Player *p) {
    long r = BY_FORM(p, gort_group_go(p->group, second, p), -EAGAIN,
                     gort_group_try_go(p->group, second, p));
    if (r == 0) take(p);
    return r;
}
static void settle_join(Player *p) {
    set(&p->opened, 1);
    int r = gort_group_wait(p->group);
    if (get(&p->over)) return;
    HOLDS(p, r == -EIO);
    HOLDS(p, get(&p->fired) == get(&p->taken));
}
static long wait_group(Player *p) {
    long r = gort_group_wait(p->group);
    HOLDS(p, r == -EIO && get(&p->opened));
    return 0;
}
static void settle_group(Player *p) {
    if (get(&p->over) && !get(&p->ended)) gort_group_wait(p->group);
}

/* ---- contexts and time ----------------------------------------------------------------------- */

static void make_ctx(Player *p) { HOLDS(p, (p->other = gort_ctx_new(NULL)) != NULL); }
static long wait_done(Player *p) {
    gort_chan *c = gort_ctx_done(p->other);
    long r = BY_FORM(p, gort_chan_recv(c, NULL), gort_chan_recv_until(c, NULL, p->deadline),
                     gort_chan_try_recv(c, NULL));
    HOLDS(p, r != 0);
    return r == -EPIPE ? 0 : r;
}
static void cancel_other(Player *p) { gort_ctx_cancel_cause(p->other, -EXDEV); }
static void settle_ctx(Player *p) {
    if (get(&p->granting)) HOLDS(p, gort_ctx_cause(p->other) == -EXDEV);
    gort_ctx_release(p->other);
}
static void fires(void *arg) {
    Player *p = arg;
    add(&p->fired, 1);
    HOLDS(p, gort_chan_try_send(p->c, &p->token) == 0);
    add(&p->given, 1);
}
static void make_after(Player *p) {
    make_1(p);
    make_ctx(p);
    HOLDS(p, gort_ctx_after(p->other, fires, p) == 0);
}
static void settle_after(Player *p) {
    if (get(&p->granting) && !get(&p->over)) wait_until(get(&p->given) == 1);
    settle_ctx(p);
    if (!get(&p->over)) wait_until(get(&p->given) == 1);
    settle_recv(p);
}

/* One that is to be ended would sleep for an hour. */
static long nap_of(Player *p) { return p->brief ? GORT_MS : (long)p->hour; }
static long sleeps(Player *p) {
    int64_t from = gort_now();
    long ns = nap_of(p);
    long r = gort_sleep(ns);
    if (r == 0) HOLDS(p, gort_now() - from >= ns);
    return r;
}
static long sleeps_until(Player *p) {
    int64_t until = gort_now() + nap_of(p);
    long r = gort_sleep_until(until);
    if (r == 0) HOLDS(p, gort_now() >= until);
    return r;
}
static long waits_for_timer(Player *p) {
    int64_t from = gort_now();
    p->timer = gort_timer_new(p->hour, fires, p);
    HOLDS(p, p->timer != NULL && gort_timer_reset(p->timer, GORT_MS) == 1);
    long r = recv_one(p);
    if (r == 0) HOLDS(p, gort_now() - from >= GORT_MS);
    int armed = gort_timer_stop(p->timer);
    if (r == 0) HOLDS(p, armed == 0);
    if (armed) HOLDS(p, get(&p->fired) == 0);
    set(&p->opened, !armed);
    return r;
}
static void settle_timer(Player *p) {
    if (get(&p->opened) && !get(&p->over)) wait_until(get(&p->given) == 1);
    if (p->timer) gort_timer_free(p->timer);
    settle_recv(p);
}

static void make_signal(Player *p) {
    p->c = gort_chan_new(sizeof(int), 2);
    p->signo = SIGRTMIN + 5 + p->index;
    HOLDS(p, gort_signal_notify(p->c, p->signo) == 0);
}
static long recv_signal(Player *p) {
    int v = 0;
    long r = BY_FORM(p, gort_chan_recv(p->c, &v), gort_chan_recv_until(p->c, &v, p->deadline),
                     gort_chan_try_recv(p->c, &v));
    if (r == 0) HOLDS(p, v == p->signo);
    if (r == 0) take(p);
    return r;
}
static void raise_signal(Player *p) {
    give(p);
    HOLDS(p, kill(getpid(), p->signo) == 0);
}
static void settle_signal(Player *p) {
    if (get(&p->given) && !get(&p->taken) && !get(&p->over))
        wait_until(gort_chan_try_recv(p->c, NULL) == 0);
    HOLDS(p, gort_signal_stop(p->c) == 0);
    HOLDS(p, gort_chan_try_recv(p->c, NULL) == -EAGAIN || get(&p->over));
    gort_chan_release(p->c);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void make_pipe(Player *p) {
    HOLDS(p, pipe2(p->fd, O_CLOEXEC) == 0);
    p->fd[0] = number_apart(p, p->fd[0]);
    p->fd[1] = number_apart(p, p->fd[1]);
}
static void make_pair(Player *p) {
    HOLDS(p, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->fd) == 0);
    p->fd[0] = number_apart(p, p->fd[0]);
    p->fd[1] = number_apart(p, p->fd[1]);
}
static int nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
static int udp_socket(Player *p, struct sockaddr_in *at) {
    socklen_t len = sizeof *at;
    int fd = gort_listen_udp("127.0.0.1:0");
    HOLDS(p, fd >= 0);
    HOLDS(p, getsockname(fd, (struct sockaddr *)at, &len) == 0);
    return number_apart(p, fd);
}
static void make_udp(Player *p) {
    struct sockaddr_in at;
    p->fd[0] = udp_socket(p, &at);
    p->fd[1] = number_apart(p, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    HOLDS(p, connect(p->fd[1], (struct sockaddr *)&at, sizeof at) == 0);
}
static void close_reader(Player *p) {
    HOLDS(p, gort_close(p->fd[0]) == 0);
    p->fd[0] = -1;
}
static void close_writer(Player *p) {
    HOLDS(p, gort_close(p->fd[1]) == 0);
    p->fd[1] = -1;
}
static void drop_fds(Player *p) {
    for (int i = 0; i < 2; i++)
        if (p->fd[i] >= 0) HOLDS(p, gort_close(p->fd[i]) == 0);
}

static char letter(Player *p) { return (char)('a' + p->token % 26); }
static long read_in(Player *p, long r, char c) {
    if (r > 0 && c != letter(p)) WRONG(p, "'%c' was read, not '%c'", c, letter(p));
    if (r == 1) take(p);
    if (r > 1) WRONG(p, "%ld bytes were read", r);
    return r == 0 ? -ENODATA : r;
}
static long read_one(Player *p) {
    char c = 0;
    long r = BY_FORM(p, gort_read(p->fd[0], &c, 1), gort_read_until(p->fd[0], &c, 1, p->deadline),
                     -EBUSY);
    return read_in(p, r, c);
}
static long read_vector(Player *p) {
    char c = 0;
    struct iovec v[2] = {{NULL, 0}, {&c, 1}};
    long r = BY_FORM(p, gort_readv(p->fd[0], v, 2), gort_readv_until(p->fd[0], v, 2, p->deadline),
                     -EBUSY);
    return read_in(p, r, c);
}
static long recv_byte(Player *p) {
    char c = 0;
    int fd = p->fd[0];
    long r = BY_FORM(p, gort_recv(fd, &c, 1, 0), gort_recv_until(fd, &c, 1, 0, p->deadline),
                     gort_recv(fd, &c, 1, MSG_DONTWAIT));
    return read_in(p, r, c);
}
static long recv_from(Player *p) {
    char c = 0;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    struct sockaddr *sa = (struct sockaddr *)&at;
    int fd = p->fd[0];
    long r = BY_FORM(p, gort_recvfrom(fd, &c, 1, 0, sa, &len),
                     gort_recvfrom_until(fd, &c, 1, 0, sa, &len, p->deadline),
                     gort_recvfrom(fd, &c, 1, MSG_DONTWAIT, sa, &len));
    if (r > 0) HOLDS(p, at.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    return read_in(p, r, c);
}
static long recv_message(Player *p) {
    char c = 0;
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    int fd = p->fd[0];
    long r = BY_FORM(p, gort_recvmsg(fd, &m, 0), gort_recvmsg_until(fd, &m, 0, p->deadline),
                     gort_recvmsg(fd, &m, MSG_DONTWAIT));
    return read_in(p, r, c);
}
static void put_byte(Player *p) {
    char c = letter(p);
    give(p);
    HOLDS(p, write(p->fd[1], &c, 1) == 1);
}
static void settle_read_fd(Player *p) {
    char c;
    if (p->fd[0] >= 0 && !get(&p->over)) {
        nonblocking(p->fd[0]);
        balance(p, read(p->fd[0], &c, 1) == 1);
    }
    drop_fds(p);
}

static long full_in(Player *p, long r, const char *c) {
    if (r < 0) return r;
    HOLDS(p, r == 2 && c[0] == letter(p) && c[1] == '!');
    take(p);
    return r;
}
static long read_whole(Player *p) {
    char c[2] = "";
    long r = BY_FORM(p, gort_read_full(p->fd[0], c, 2),
                     gort_read_full_until(p->fd[0], c, 2, p->deadline), -EBUSY);
    return full_in(p, r, c);
}
static void put_pieces(Player *p) {
    char c[2] = {letter(p), '!'};
    give(p);
    HOLDS(p, write(p->fd[1], c, 1) == 1);
    if (p->seed % 2) test_pause(0);
    HOLDS(p, write(p->fd[1], c + 1, 1) == 1);
}
/* No balance: an error may have eaten a byte, or the buffer may hold it. */
static void settle_whole(Player *p) {
    if (p->reader) gort_reader_free(p->reader);
    drop_fds(p);
}

/* Whatever ends a call of the reader, nothing is lost. */
static void make_reader(Player *p) {
    make_pair(p);
    HOLDS(p, (p->reader = gort_reader_new(p->fd[0], 0)) != NULL);
}
static long read_line(Player *p) {
    char *text = NULL;
    if (p->form == UNTIL) gort_reader_deadline(p->reader, p->deadline);
    long r = p->seed % 2 ? gort_reader_line(p->reader, &text)
                         : gort_reader_until(p->reader, '\n', &text);
    gort_reader_deadline(p->reader, GORT_FOREVER);
    if (r >= 0) HOLDS(p, r == 2 && text[0] == letter(p) && text[1] == '!' && text[2] == 0);
    if (r >= 0) take(p);
    return r;
}
static long read_buffered(Player *p) {
    char c = 0;
    if (p->form == UNTIL) gort_reader_deadline(p->reader, p->deadline);
    long r = gort_reader_read(p->reader, &c, 1);
    gort_reader_deadline(p->reader, GORT_FOREVER);
    if (r == 1) HOLDS(p, c == letter(p));
    if (r == 1) take(p);
    return r;
}
static void put_line(Player *p) {
    put_pieces(p);
    HOLDS(p, write(p->fd[1], "\n", 1) == 1);
}
static void settle_reader(Player *p) {
    char *text;
    if (p->fd[0] >= 0 && get(&p->given) && !get(&p->taken) && !get(&p->over)) {
        HOLDS(p, gort_reader_line(p->reader, &text) == 2);
        HOLDS(p, text[0] == letter(p));
    }
    gort_reader_free(p->reader);
    drop_fds(p);
}

/* Full: not one byte more goes in. */
static void fill(Player *p, int fd) {
    char buf[4096];
    memset(buf, '-', sizeof buf);
    nonblocking(fd);
    for (size_t n = sizeof buf; n > 0;)
        if (write(fd, buf, n) < 0) n /= 2;
}
static void make_full_pipe(Player *p) {
    make_pipe(p);
    fill(p, p->fd[1]);
}
static void make_full_pair(Player *p) {
    make_pair(p);
    fill(p, p->fd[1]);
}
/* What came out, until nothing does: the filling, then at most one token. */
static int drain(Player *p) {
    char buf[4096];
    int tokens = 0;
    nonblocking(p->fd[0]);
    for (ssize_t n; (n = read(p->fd[0], buf, sizeof buf)) > 0;)
        for (ssize_t i = 0; i < n; i++) tokens += buf[i] == letter(p);
    return tokens;
}
static void drain_some(Player *p) { add(&p->given, drain(p)); }
static long written(Player *p, long r) {
    if (r > 0) HOLDS(p, r == 1);
    if (r > 0) take(p);
    return r;
}
static long write_one(Player *p) {
    char c = letter(p);
    return written(p, BY_FORM(p, gort_write(p->fd[1], &c, 1),
                              gort_write_until(p->fd[1], &c, 1, p->deadline), -EBUSY));
}
static long write_whole(Player *p) {
    char c = letter(p);
    return written(p, BY_FORM(p, gort_write_full(p->fd[1], &c, 1),
                              gort_write_full_until(p->fd[1], &c, 1, p->deadline), -EBUSY));
}
static long write_vector(Player *p) {
    char c = letter(p);
    struct iovec v[2] = {{&c, 1}, {NULL, 0}};
    return written(p, BY_FORM(p, gort_writev(p->fd[1], v, 2),
                              gort_writev_until(p->fd[1], v, 2, p->deadline), -EBUSY));
}
static long send_byte(Player *p) {
    char c = letter(p);
    int fd = p->fd[1];
    return written(p,
                   BY_FORM(p, gort_send(fd, &c, 1, 0), gort_send_until(fd, &c, 1, 0, p->deadline),
                           gort_send(fd, &c, 1, MSG_DONTWAIT)));
}
static long send_message(Player *p) {
    char c = letter(p);
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    int fd = p->fd[1];
    return written(p,
                   BY_FORM(p, gort_sendmsg(fd, &m, 0), gort_sendmsg_until(fd, &m, 0, p->deadline),
                           gort_sendmsg(fd, &m, MSG_DONTWAIT)));
}
static void settle_write_fd(Player *p) {
    if (!get(&p->over) && p->fd[1] >= 0) {
        add(&p->given, drain(p));
        balance(p, 0);
    }
    drop_fds(p);
}

static void make_writer(Player *p) {
    make_full_pair(p);
    HOLDS(p, (p->writer = gort_writer_new(p->fd[1], 100)) != NULL);
}
static long flush(Player *p) {
    char c = letter(p);
    long r =
        p->seed % 2 ? gort_writer_write(p->writer, &c, 1) : gort_writer_printf(p->writer, "%c", c);
    HOLDS(p, r == 1);
    take(p);
    if (p->form == UNTIL) gort_writer_deadline(p->writer, p->deadline);
    r = gort_writer_flush(p->writer);
    gort_writer_deadline(p->writer, GORT_FOREVER);
    return r;
}
static void settle_writer(Player *p) {
    if (!get(&p->over) && p->fd[1] >= 0) {
        add(&p->given, drain(p));
        HOLDS(p, gort_writer_flush(p->writer) == 0);
        add(&p->given, drain(p));
        balance(p, 0);
    }
    gort_writer_free(p->writer);
    drop_fds(p);
}

static long poll_one(Player *p) {
    struct pollfd f[2] = {{.fd = p->fd[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    nfds_t n = 1 + p->seed % 2;
    long r =
        BY_FORM(p, gort_poll(f, n, -1), gort_poll_until(f, n, p->deadline), gort_poll(f, n, 0));
    if (r > 0) HOLDS(p, r == 1 && (f[0].revents & (POLLIN | POLLNVAL)));
    if (r > 0 && (f[0].revents & POLLNVAL)) return -EBADF;
    if (r <= 0) HOLDS(p, f[0].revents == 0);
    return r == 0 ? -EAGAIN : r;
}
static void settle_poll(Player *p) { drop_fds(p); }

static void make_listener(Player *p) {
    int fd = gort_listen("127.0.0.1:0", 0);
    HOLDS(p, fd >= 0);
    HOLDS(p, gort_local_addr(fd, p->addr, sizeof p->addr) == 0);
    p->port = atoi(strrchr(p->addr, ':') + 1);
    p->fd[0] = number_apart(p, fd);
    p->fd[1] = -1;
}
static void make_unix_listener(Player *p) {
    snprintf(p->addr, sizeof p->addr, "unix:@product-%d-%d", (int)getpid(), p->index);
    int fd = gort_listen(p->addr, 0);
    HOLDS(p, fd >= 0);
    p->fd[0] = number_apart(p, fd);
    p->fd[1] = -1;
}
static long accepts(Player *p) {
    long r = BY_FORM(p, gort_accept(p->fd[0], NULL, NULL),
                     gort_accept_until(p->fd[0], NULL, NULL, p->deadline), -EBUSY);
    if (r < 0) return r;
    HOLDS(p, fcntl((int)r, F_GETFD) & FD_CLOEXEC);
    HOLDS(p, fcntl((int)r, F_GETFL) & O_NONBLOCK);
    HOLDS(p, gort_close((int)r) == 0);
    take(p);
    return 0;
}
static void connects(Player *p) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)p->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t len = strlen(p->addr);
    give(p);
    p->fd[1] = number_apart(p, socket(p->port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!p->port) memcpy(un.sun_path + 1, p->addr + 6, len - 6);
    int r = p->port ? connect(p->fd[1], (struct sockaddr *)&in, sizeof in)
                    : connect(p->fd[1], (struct sockaddr *)&un,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len - 6));
    HOLDS(p, r == 0);
}
static void settle_accept(Player *p) {
    if (p->fd[0] >= 0 && !get(&p->over)) {
        int left = 0;
        for (int fd; (fd = gort_accept_until(p->fd[0], NULL, NULL, 0)) >= 0; left++) close(fd);
        balance(p, left);
    }
    drop_fds(p);
}

static void make_copy(Player *p) {
    make_pair(p);
    HOLDS(p, pipe2(p->out, O_CLOEXEC) == 0);
}
static long copies(Player *p) {
    long r = gort_copy(p->out[1], p->fd[0]);
    if (r >= 0) HOLDS(p, r == 2);
    return r;
}
static void put_end(Player *p) {
    put_pieces(p);
    HOLDS(p, shutdown(p->fd[1], SHUT_WR) == 0);
}
static void settle_copy(Player *p) {
    drop_fds(p);
    close(p->out[0]);
    close(p->out[1]);
}

/* Calls that the runtime is told of, and one that it is not. */
static long read_plain(void *arg) {
    Player *p = arg;
    char c = 0;
    ssize_t r;
    /* a signal handler of the scene's may interrupt it */
    do r = read(p->fd[0], &c, 1);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : read_in(p, r, c);
}
static long in_blocking(Player *p) { return gort_blocking(read_plain, p); }
static long in_syscall(Player *p) {
    gort_enter_syscall();
    long r = read_plain(p);
    gort_exit_syscall();
    return r;
}
static long unannounced(Player *p) { return read_plain(p); }
static long polls_plain(Player *p) {
    struct pollfd f = {.fd = p->fd[0], .events = POLLIN};
    int r;
    do r = poll(&f, 1, -1);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

/* ---- what ends by itself --------------------------------------------------------------------- */

static long dials(Player *p) {
    int fd = gort_dial(p->addr, p->form == UNTIL ? p->deadline : GORT_FOREVER);
    if (fd < 0) return fd;
    char peer[64];
    int r = gort_peer_addr(fd, peer, sizeof peer);
    HOLDS(p, r == 0 && strcmp(peer, p->addr) == 0);
    HOLDS(p, gort_close(fd) == 0);
    return 0;
}
static long listens(Player *p) {
    char addr[64], local[64];
    snprintf(addr, sizeof addr, "unix:@product-listens-%d-%d", (int)getpid(), p->index);
    int fd = gort_listen(p->seed % 2 ? addr : "127.0.0.1:0", 1);
    HOLDS(p, fd >= 0 && gort_local_addr(fd, local, sizeof local) == 0);
    HOLDS(p, gort_close(fd) == 0);
    return 0;
}
static long looks_up(Player *p) {
    struct addrinfo *found = NULL;
    long r = gort_getaddrinfo("localhost", "80", NULL, &found);
    if (r == 0) HOLDS(p, found != NULL);
    if (r == 0) freeaddrinfo(found);
    return r;
}
static long on_file(Player *p) {
    char path[64], buf[8] = "";
    snprintf(path, sizeof path, "file-%d", p->index);
    int fd = gort_open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HOLDS(p, fd >= 0);
    HOLDS(p, gort_pwrite(fd, &p->token, sizeof p->token, 3) == sizeof p->token);
    if (p->seed % 2) HOLDS(p, gort_fsync(fd) == 0);
    HOLDS(p, gort_pread(fd, buf, sizeof buf, 3) == sizeof buf);
    HOLDS(p, memcmp(buf, &p->token, sizeof buf) == 0);
    HOLDS(p, gort_read(fd, buf, 8) == 8 && gort_write(fd, "x", 1) == 1);
    HOLDS(p, gort_close(fd) == 0);
    return unlink(path) == 0 ? 0 : -errno;
}
static long to_self(Player *p) {
    struct sockaddr_in at;
    char c = letter(p), back = 0;
    socklen_t len = sizeof at;
    HOLDS(p, getsockname(p->fd[0], (struct sockaddr *)&at, &len) == 0);
    HOLDS(p, gort_sendto(p->fd[0], &c, 1, 0, (struct sockaddr *)&at, sizeof at) == 1);
    HOLDS(p, gort_read(p->fd[0], &back, 1) == 1 && back == c);
    return 0;
}

static long yields(Player *p) {
    for (int i = 0; i < 20; i++) gort_yield();
    return 0;
}
/* As long as two slices. */
static long computes(Player *p) {
    int64_t until = gort_now() + 20 * GORT_MS;
    for (volatile unsigned i = 0; gort_now() < until; i++) continue;
    return 0;
}
static void bumps(void *arg) { add(*(int **)arg, 1); }
static void bumps_arg(void *arg) { add((int *)arg, 1); }
static long starts_some(Player *p) {
    gort_attr attr = {.name = "some", .stack_size = 64 << 10}, thread = {.thread = 1};
    int *fired = &p->fired, want = 3;
    HOLDS(p, gort_go(bumps_arg, fired) == 0);
    HOLDS(p, gort_go_with(&attr, bumps_arg, fired) == 0);
    HOLDS(p, gort_go_copy(bumps, &fired, sizeof fired) == 0);
    int r = gort_go_with(&thread, bumps_arg, fired);
    HOLDS(p, r == 0 || r == -ENOTSUP);
    if (r == 0) want++;
    set(&p->opened, want);
    return 0;
}
static void settle_starts(Player *p) {
    if (!get(&p->over)) wait_until(get(&p->fired) == get(&p->opened));
}
static long waits_for_some(Player *p) {
    for (int i = 0; i < 3; i++) HOLDS(p, gort_wg_go(&p->wg, bumps_arg, &p->fired) == 0);
    gort_wg_wait(&p->wg);
    HOLDS(p, get(&p->fired) == 3);
    return 0;
}
static long objects(Player *p) {
    char *all[40];
    for (size_t i = 0; i < 40; i++) {
        HOLDS(p, (all[i] = gort_alloc(i * 17)) != NULL);
        memset(all[i], (int)i, i * 17);
    }
    for (size_t i = 0; i < 40; i++) {
        for (size_t k = 0; k < i * 17; k++) HOLDS(p, all[i][k] == (char)i);
        gort_free(all[i]);
    }
    return 0;
}
static gort_pool *pool;
static void *makes(void *arg) { return calloc(1, 16); }
static void make_pool(Player *p) {
    static int made;
    if (__atomic_exchange_n(&made, 1, __ATOMIC_SEQ_CST) == 0)
        set(&pool, gort_pool_new(makes, free, NULL));
    wait_until(get(&pool));
}
static long pooled(Player *p) {
    for (int i = 0; i < 10; i++) {
        int *o = gort_pool_get(get(&pool));
        HOLDS(p, o != NULL && add(o, 1) == 1 && add(o, -1) == 0);
        gort_pool_put(get(&pool), o);
    }
    return 0;
}
static long in_libc(Player *p) {
    char text[100];
    FILE *f = fopen("/dev/null", "w");
    HOLDS(p, f != NULL);
    for (int i = 0; i < 50; i++) {
        fprintf(f, "%d %s %g\n", i, "a line", 1.5 * i);
        free(malloc((size_t)(1 + i * 100)));
        snprintf(text, sizeof text, "%g", 1.5 * i);
    }
    fclose(f);
#ifndef __SANITIZE_THREAD__ /* the text of its error is the thread's */
    HOLDS(p, dlsym(RTLD_DEFAULT, "no_such_name") == NULL);
#endif
    return 0;
}
static long dumps(Player *p) {
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    gort_dump(fd);
    close(fd);
    return 0;
}
static long figures(Player *p) {
    gort_stats s;
    gort_stats_read(&s);
    HOLDS(p, s.goroutines >= 1 && s.goroutines <= s.goroutines_created && s.maxprocs >= 1);
    HOLDS(p, gort_count() >= 1 && gort_version() == GORT_VERSION_NUM);
    return 0;
}
#ifndef LEAN
static long traces(Player *p) {
    char path[64];
    snprintf(path, sizeof path, "own-%d.%s", p->index, p->seed % 2 ? "pftrace" : "json");
    add(&tracing, 1);
    int r = gort_trace_start(path);
    HOLDS(p, r == 0 || r == -EBUSY);
    if (r < 0) {
        add(&tracing, -1);
        return 0;
    }
    gort_region_begin("own");
    for (int i = 0; i < 5; i++) gort_yield();
    gort_region_end("own");
    HOLDS(p, gort_trace_stop() == 0 || get(&dying));
    add(&tracing, -1);
    return 0;
}
static long regions(Player *p) {
    gort_region_begin("outer");
    gort_region_begin("inner");
    gort_yield();
    gort_region_end("inner");
    gort_region_end("outer");
    return 0;
}
#endif
static long procs(Player *p) {
    int n = gort_maxprocs(0);
    HOLDS(p, n >= 1);
    HOLDS(p, gort_maxprocs(1 + (int)(p->seed % 5)) >= 1);
    gort_maxprocs(n);
    return 0;
}
static long worlds(Player *p) {
    static int stopped;
    gort_stop_world();
    HOLDS(p, add(&stopped, 1) == 1);
    HOLDS(p, add(&stopped, -1) == 0);
    gort_start_world();
    return 0;
}
static long pins(Player *p) {
    int n = gort_pin();
    if (n < 0) return n == -ENOTCONN && gort_id() == 0 ? 0 : n;
    HOLDS(p, gort_pin() == n);
    gort_unpin();
    gort_unpin();
    return 0;
}
static long forks(Player *p) {
    fork_child(p, p->seed >> 8);
    return 0;
}
static long execs(Player *p) {
    exec_child(p);
    return 0;
}

#define WORD(text, ...) \
    { .name = text, .is = __VA_ARGS__ }
#define IN_CHAN BY_CTX | HAS_UNTIL | HAS_TRY | GRANTED
#define ON_FD BY_CTX | HAS_UNTIL | GRANTED
#define ACT(w, m, c, g, s) \
    { .word = w, .make = m, .call = c, .grant = g, .settle = s }
#define ACT_CLOSED(w, m, c, g, s, cl, e) \
    { .word = w, .make = m, .call = c, .grant = g, .settle = s, .close = cl, .closed = e }

/* clang-format off */
const Act acts[] = {
    ACT_CLOSED(WORD("recv", IN_CHAN | CLOSES), make_0, recv_one, send_token, settle_recv,
               close_chan, -EPIPE),
    ACT_CLOSED(WORD("recv1", IN_CHAN | CLOSES | READY), make_1, recv_one, put_token, settle_recv,
               close_chan, -EPIPE),
    ACT_CLOSED(WORD("select", IN_CHAN | CLOSES | READY), make_1, select_recv, put_token,
               settle_recv, close_chan, -EPIPE),
    ACT_CLOSED(WORD("select0", IN_CHAN | CLOSES), make_0, select_recv, send_token, settle_recv,
               close_chan, -EPIPE),
    ACT_CLOSED(WORD("select40", IN_CHAN | CLOSES | READY), make_1, select_many, put_token,
               settle_recv, close_chan, -EPIPE),
    ACT_CLOSED(WORD("send", IN_CHAN | CLOSES), make_0, send_one, recv_token, settle_send,
               close_chan, -EPIPE),
    ACT_CLOSED(WORD("send1", IN_CHAN | CLOSES | READY), make_full, send_one, make_room,
               settle_send, close_chan, -EPIPE),
    ACT_CLOSED(WORD("select_send", IN_CHAN | CLOSES), make_0, select_send, recv_token,
               settle_send, close_chan, -EPIPE),
    ACT(WORD("nil", BY_CTX | HAS_UNTIL | HAS_TRY | ENDLESS), nothing, recv_nil, NULL, nothing),
    ACT(WORD("select_none", BY_CTX | HAS_UNTIL | HAS_TRY | ENDLESS), nothing, select_none, NULL,
        nothing),
    ACT(WORD("after", BY_CTX | HAS_UNTIL | HAS_TRY | WAITS), nothing, recv_after, NULL, nothing),
    ACT(WORD("tick", BY_CTX | HAS_UNTIL | HAS_TRY | WAITS), nothing, recv_ticks, NULL, nothing),
    ACT(WORD("mutex", HAS_UNTIL | HAS_TRY | GRANTED | READY), make_mutex, lock_mutex,
        unlock_mutex, settle_mutex),
    ACT(WORD("rlock", HAS_UNTIL | HAS_TRY | GRANTED | READY), make_write, lock_read,
        unlock_write, settle_read),
    ACT(WORD("wlock", HAS_UNTIL | HAS_TRY | GRANTED | READY), make_read, lock_write,
        unlock_read, settle_write),
    ACT(WORD("cond", HAS_UNTIL | GRANTED | WAITS), nothing, wait_cond, signal_cond, settle_cond),
    ACT(WORD("sem", HAS_UNTIL | HAS_TRY | GRANTED | READY), nothing, acquire, release,
        settle_sem),
    ACT(WORD("wg", HAS_UNTIL | GRANTED | READY), make_wg, wait_wg, done_wg, settle_wg),
    ACT(WORD("once", GRANTED | WAITS), make_once, do_once, open_door, settle_once),
    ACT(WORD("group_go", GRANTED | HAS_TRY | WAITS), make_group, join_group, open_door,
        settle_join),
    ACT(WORD("group_wait", GRANTED | WAITS), make_group, wait_group, open_door, settle_group),
    ACT(WORD("done", IN_CHAN | READY), make_ctx, wait_done, cancel_other, settle_ctx),
    ACT(WORD("ctx_after", IN_CHAN), make_after, recv_one, cancel_other, settle_after),
    ACT(WORD("sleep", BY_CTX | WAITS), nothing, sleeps, NULL, nothing),
    ACT(WORD("sleep_until", BY_CTX | WAITS), nothing, sleeps_until, NULL, nothing),
    ACT(WORD("timer", BY_CTX | HAS_UNTIL | WAITS), make_1, waits_for_timer, NULL, settle_timer),
    ACT(WORD("signal", IN_CHAN | OS), make_signal, recv_signal, raise_signal, settle_signal),
    ACT_CLOSED(WORD("read", ON_FD | READY | CLOSES), make_pair, read_one, put_byte,
               settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("read_pipe", ON_FD | READY | CLOSES), make_pipe, read_one, put_byte,
               settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("readv", ON_FD | READY | CLOSES), make_pipe, read_vector, put_byte,
               settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("recv_socket", ON_FD | HAS_TRY | READY | CLOSES), make_pair, recv_byte,
               put_byte, settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("recvfrom", ON_FD | HAS_TRY | CLOSES), make_udp, recv_from, put_byte,
               settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("recvmsg", ON_FD | HAS_TRY | READY | CLOSES), make_pair, recv_message,
               put_byte, settle_read_fd, close_reader, -EBADF),
    ACT_CLOSED(WORD("read_full", ON_FD | READY | CLOSES), make_pipe, read_whole, put_pieces,
               settle_whole, close_reader, -EBADF),
    ACT_CLOSED(WORD("reader_line", ON_FD | READY | CLOSES), make_reader, read_line, put_line,
               settle_reader, close_reader, -EBADF),
    ACT_CLOSED(WORD("reader_read", ON_FD | READY | CLOSES), make_reader, read_buffered, put_byte,
               settle_whole, close_reader, -EBADF),
    ACT_CLOSED(WORD("write", ON_FD | READY | CLOSES), make_full_pair, write_one, drain_some,
               settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("write_pipe", ON_FD | READY | CLOSES), make_full_pipe, write_one, drain_some,
               settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("write_full", ON_FD | READY | CLOSES), make_full_pipe, write_whole,
               drain_some, settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("writev", ON_FD | READY | CLOSES), make_full_pair, write_vector, drain_some,
               settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("send_socket", ON_FD | HAS_TRY | READY | CLOSES), make_full_pair, send_byte,
               drain_some, settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("sendmsg", ON_FD | HAS_TRY | READY | CLOSES), make_full_pair, send_message,
               drain_some, settle_write_fd, close_writer, -EBADF),
    ACT_CLOSED(WORD("writer", ON_FD | READY | CLOSES), make_writer, flush, drain_some,
               settle_writer, close_writer, -EBADF),
    ACT_CLOSED(WORD("poll", ON_FD | HAS_TRY | READY | CLOSES), make_pair, poll_one, put_byte,
               settle_poll, close_reader, -EBADF),
    ACT_CLOSED(WORD("accept", ON_FD | CLOSES), make_listener, accepts, connects,
               settle_accept, close_reader, -EBADF),
    ACT_CLOSED(WORD("accept_unix", ON_FD | READY | CLOSES), make_unix_listener, accepts, connects,
               settle_accept, close_reader, -EBADF),
    ACT_CLOSED(WORD("copy", BY_CTX | GRANTED | CLOSES | WAITS), make_copy, copies, put_end,
               settle_copy, close_reader, -EBADF),
    ACT(WORD("blocking", GRANTED | WAITS | OS | OWN_ERRNO), make_pipe, in_blocking, put_byte,
        settle_read_fd),
    ACT(WORD("syscall", GRANTED | WAITS | OS | OWN_ERRNO), make_pipe, in_syscall, put_byte,
        settle_read_fd),
    ACT(WORD("unannounced", GRANTED | WAITS | OS | OWN_ERRNO | NUMBERED), make_pipe, unannounced,
        put_byte, settle_read_fd),
    ACT(WORD("poll_plain", GRANTED | WAITS | OS | OWN_ERRNO | NUMBERED), make_pipe, polls_plain,
        put_byte, settle_poll),
    ACT(WORD("dial", HAS_UNTIL | BY_CTX | WAITS | LIBC, .refuses = RUNTIME_ENDS), make_listener,
        dials, NULL, drop_fds),
    ACT(WORD("listen", WAITS | LIBC, .refuses = RUNTIME_ENDS), nothing, listens, NULL, nothing),
    ACT(WORD("getaddrinfo", BY_CTX | WAITS | LIBC), nothing, looks_up, NULL, nothing),
    ACT(WORD("file", WAITS | LIBC | OWN_ERRNO, .refuses = RUNTIME_ENDS), nothing, on_file, NULL,
        nothing),
    ACT(WORD("udp", WAITS), make_udp, to_self, NULL, drop_fds),
    ACT(WORD("yield", WAITS), nothing, yields, NULL, nothing),
    ACT(WORD("compute", 0), nothing, computes, NULL, nothing),
    ACT(WORD("go", 0), nothing, starts_some, NULL, settle_starts),
    ACT(WORD("wg_go", WAITS), nothing, waits_for_some, NULL, nothing),
    ACT(WORD("alloc", 0), nothing, objects, NULL, nothing),
    ACT(WORD("pool", LIBC), make_pool, pooled, NULL, nothing),
    ACT(WORD("libc", LIBC | OWN_ERRNO, .refuses = RUNTIME_ENDS), nothing, in_libc, NULL, nothing),
    ACT(WORD("dump", LIBC, .refuses = RUNTIME_ENDS), nothing, dumps, NULL, nothing),
    ACT(WORD("stats", 0), nothing, figures, NULL, nothing),
#ifndef LEAN
    ACT(WORD("trace", WAITS | LIBC), nothing, traces, NULL, nothing),
    ACT(WORD("region", WAITS), nothing, regions, NULL, nothing),
#endif
    ACT(WORD("maxprocs", WAITS | WORLD), nothing, procs, NULL, nothing),
    ACT(WORD("world", WAITS | WORLD, .refuses = PLAIN), nothing, worlds, NULL, nothing),
    ACT(WORD("pin", WORLD), nothing, pins, NULL, nothing),
    ACT(WORD("fork", WAITS | LIBC | OS | OWN_ERRNO), nothing, forks, NULL, nothing),
    ACT(WORD("exec", WAITS | LIBC | OS | OWN_ERRNO), nothing, execs, NULL, nothing),
    ACT(WORD(NULL, 0), NULL, NULL, NULL, NULL),
};
/* clang-format on */
