/* The ends of the clock go through every call that takes a deadline or a duration: from a
 * goroutine, from a plain thread, with 1, 2,000 and 100,000 timers armed that never come, and from
 * a plain thread without a runtime. A deadline that has passed ends the call; one that never comes
 * leaves the end to the event; and after each call a near timer still fires.
 * tests/script/deadlines.sh sees that no call of the header is missing. */
#include "../lib/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/un.h>
#include <unistd.h>

/* Everything that a call below may wait for, none of it there yet. */
typedef struct Scene {
    gort_chan *empty, *full;
    gort_mutex mu, cond_mu;
    gort_rwmutex rw;
    gort_wg wg;
    gort_cond cond;
    gort_sem sem;
    int in[2], out[2]; /* nothing to read from in[0]; no room to write to out[0] */
    int quiet, busy;   /* listening: nobody comes; no room in the backlog */
    int filler[8], fillers;
    struct sockaddr_un quiet_at, busy_at;
    int64_t value;
    int entered, done, result; /* atomic */
    int refs;                  /* atomic: a wait that nothing ends keeps the scene for ever */
} Scene;

typedef struct Call {
    const char *name;
    int (*fn)(Scene *s, int64_t value);
    enum { DEADLINE, DURATION, MILLISECONDS } takes;
    bool endless; /* nothing but the time ends it */
} Call;

static char byte[64];
static char much[1 << 16];
static struct iovec few[1] = {{byte, 1}}, lots[1] = {{much, sizeof much}};

/* Of an abstract name. */
static socklen_t length(const struct sockaddr_un *at) {
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at->sun_path + 1));
}

#define CALL(name) static int try_##name(Scene *s, int64_t t)
CALL(gort_chan_send_until) { return gort_chan_send_until(s->full, &s->value, t); }
CALL(gort_chan_recv_until) {
    int64_t v;
    return gort_chan_recv_until(s->empty, &v, t);
}
CALL(gort_select_until) {
    int64_t v;
    gort_case cases[] = {gort_on_recv(s->empty, &v), gort_on_send(s->full, &s->value)};
    return gort_select_until(cases, 2, t);
}
CALL(gort_mutex_lock_until) {
    int r = gort_mutex_lock_until(&s->mu, t);
    if (r == 0) gort_mutex_unlock(&s->mu);
    return r;
}
CALL(gort_rwmutex_lock_until) {
    int r = gort_rwmutex_lock_until(&s->rw, t);
    if (r == 0) gort_rwmutex_unlock(&s->rw);
    return r;
}
CALL(gort_rwmutex_rlock_until) {
    int r = gort_rwmutex_rlock_until(&s->rw, t);
    if (r == 0) gort_rwmutex_runlock(&s->rw);
    return r;
}
CALL(gort_wg_wait_until) { return gort_wg_wait_until(&s->wg, t); }
CALL(gort_cond_wait_until) {
    gort_mutex_lock(&s->cond_mu);
    int r = gort_cond_wait_until(&s->cond, &s->cond_mu, t);
    gort_mutex_unlock(&s->cond_mu);
    return r;
}
CALL(gort_sem_acquire_until) { return gort_sem_acquire_until(&s->sem, 1, t); }
CALL(gort_sleep_until) {
    gort_sleep_until(t);
    return -ETIMEDOUT;
}
CALL(gort_sleep) {
    gort_sleep(t);
    return -ETIMEDOUT;
}
CALL(gort_read_until) { return (int)gort_read_until(s->in[0], byte, 1, t); }
CALL(gort_readv_until) { return (int)gort_readv_until(s->in[0], few, 1, t); }
CALL(gort_recv_until) { return (int)gort_recv_until(s->in[0], byte, 1, 0, t); }
CALL(gort_recvfrom_until) { return (int)gort_recvfrom_until(s->in[0], byte, 1, 0, NULL, NULL, t); }
CALL(gort_recvmsg_until) {
    struct msghdr m = {.msg_iov = few, .msg_iovlen = 1};
    return (int)gort_recvmsg_until(s->in[0], &m, 0, t);
}
CALL(gort_read_full_until) { return (int)gort_read_full_until(s->in[0], byte, 4, t); }
CALL(gort_write_until) { return (int)gort_write_until(s->out[0], much, sizeof much, t); }
CALL(gort_writev_until) { return (int)gort_writev_until(s->out[0], lots, 1, t); }
CALL(gort_send_until) { return (int)gort_send_until(s->out[0], much, sizeof much, 0, t); }
CALL(gort_sendto_until) {
    return (int)gort_sendto_until(s->out[0], much, sizeof much, 0, NULL, 0, t);
}
CALL(gort_sendmsg_until) {
    struct msghdr m = {.msg_iov = lots, .msg_iovlen = 1};
    return (int)gort_sendmsg_until(s->out[0], &m, 0, t);
}
CALL(gort_write_full_until) { return (int)gort_write_full_until(s->out[0], much, sizeof much, t); }
CALL(gort_reader_deadline) {
    gort_reader *r = gort_reader_new(s->in[0], 0);
    CHECK(r != NULL);
    gort_reader_deadline(r, t);
    int n = (int)gort_reader_read(r, byte, 1);
    gort_reader_free(r);
    return n;
}
CALL(gort_writer_deadline) {
    gort_writer *w = gort_writer_new(s->out[0], 1);
    CHECK(w != NULL);
    gort_writer_deadline(w, t);
    int n = (int)gort_writer_write(w, much, sizeof much);
    gort_writer_free(w);
    return n;
}
CALL(gort_accept_until) {
    int fd = gort_accept_until(s->quiet, NULL, NULL, t);
    if (fd >= 0) gort_close(fd);
    return fd;
}
CALL(gort_connect_until) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int r = gort_connect_until(fd, (struct sockaddr *)&s->busy_at, length(&s->busy_at), t);
    gort_close(fd);
    return r;
}
static int dial_busy(Scene *s, int64_t t, int (*dial)(const char *, int64_t)) {
    char name[sizeof s->busy_at.sun_path + 8];
    snprintf(name, sizeof name, "unix:@%s", s->busy_at.sun_path + 1);
    int fd = dial(name, t);
    if (fd >= 0) gort_close(fd);
    return fd;
}
CALL(gort_dial) { return dial_busy(s, t, gort_dial); }
CALL(gort_dial_until) { return dial_busy(s, t, gort_dial_until); }
CALL(gort_poll) {
    struct pollfd p = {.fd = s->in[0], .events = POLLIN};
    int r = gort_poll(&p, 1, t > INT32_MAX ? INT32_MAX : t < INT32_MIN ? INT32_MIN : (int)t);
    return r == 0 ? -ETIMEDOUT : r;
}
CALL(gort_poll_until) {
    struct pollfd p = {.fd = s->in[0], .events = POLLIN};
    return gort_poll_until(&p, 1, t);
}
CALL(gort_ctx_with_deadline) {
    gort_ctx *c = gort_ctx_with_deadline(NULL, t);
    CHECK(c != NULL);
    gort_case cases[] = {gort_on_recv(gort_ctx_done(c), NULL), gort_on_recv(s->empty, NULL)};
    int r = gort_select(cases, 2) == 0 ? gort_ctx_err(c) : 0;
    gort_ctx_release(c);
    return r;
}
CALL(gort_ctx_with_timeout) {
    gort_ctx *c = gort_ctx_with_timeout(NULL, t);
    CHECK(c != NULL);
    gort_case cases[] = {gort_on_recv(gort_ctx_done(c), NULL), gort_on_recv(s->empty, NULL)};
    int r = gort_select(cases, 2) == 0 ? gort_ctx_err(c) : 0;
    gort_ctx_release(c);
    return r;
}

/* Timers: as a wait for what they do. */
static void send_one(void *arg) { gort_chan_close(arg); }
static int timed(Scene *s, gort_chan *fired) {
    gort_case cases[] = {gort_on_recv(fired, NULL), gort_on_recv(s->empty, NULL)};
    int r = gort_select(cases, 2) == 0 ? -ETIMEDOUT : 0;
    return r;
}
CALL(gort_timer_new) {
    gort_chan *fired = gort_chan_new(0, 0);
    gort_timer *timer = gort_timer_new(t, send_one, fired);
    if (timer == NULL) return gort_chan_release(fired), -ENOTCONN;
    int r = timed(s, fired);
    gort_timer_free(timer);
    if (r != 0) gort_chan_release(fired); /* else it may just be firing */
    return r;
}
CALL(gort_timer_reset) {
    gort_chan *fired = gort_chan_new(0, 0);
    gort_timer *timer = gort_timer_new(3600 * GORT_SEC, send_one, fired);
    if (timer == NULL) return gort_chan_release(fired), -ENOTCONN;
    CHECK_EQ(gort_timer_reset(timer, t), 1);
    int r = timed(s, fired);
    gort_timer_free(timer);
    if (r != 0) gort_chan_release(fired);
    return r;
}
static void ticks(void *arg) { (void)arg; }
CALL(gort_ticker_new) {
    gort_timer *timer = gort_ticker_new(t, ticks, NULL);
    if (timer == NULL) return -ENOTCONN;
    if (t < GORT_SEC) gort_sleep(50 * GORT_US);
    else timed(s, NULL);
    gort_timer_free(timer);
    return t < GORT_SEC ? -ETIMEDOUT : 0;
}
CALL(gort_after) {
    gort_chan *fired = gort_after(t);
    if (fired == NULL) return -ENOTCONN;
    int r = timed(s, fired);
    gort_chan_release(fired);
    return r;
}
CALL(gort_tick) {
    gort_timer *owner;
    gort_chan *fired = gort_tick(t, &owner);
    if (fired == NULL) return -ENOTCONN;
    int r = timed(s, fired);
    gort_timer_free(owner);
    gort_chan_release(fired);
    return r;
}

#define ENTRY(name, ...) \
    { #name, try_##name, __VA_ARGS__ }
static const Call calls[] = {
    ENTRY(gort_chan_send_until, DEADLINE, false),
    ENTRY(gort_chan_recv_until, DEADLINE, false),
    ENTRY(gort_select_until, DEADLINE, false),
    ENTRY(gort_mutex_lock_until, DEADLINE, false),
    ENTRY(gort_rwmutex_lock_until, DEADLINE, false),
    ENTRY(gort_rwmutex_rlock_until, DEADLINE, false),
    ENTRY(gort_wg_wait_until, DEADLINE, false),
    ENTRY(gort_cond_wait_until, DEADLINE, false),
    ENTRY(gort_sem_acquire_until, DEADLINE, false),
    ENTRY(gort_sleep_until, DEADLINE, true),
    ENTRY(gort_sleep, DURATION, true),
    ENTRY(gort_read_until, DEADLINE, false),
    ENTRY(gort_readv_until, DEADLINE, false),
    ENTRY(gort_recv_until, DEADLINE, false),
    ENTRY(gort_recvfrom_until, DEADLINE, false),
    ENTRY(gort_recvmsg_until, DEADLINE, false),
    ENTRY(gort_read_full_until, DEADLINE, false),
    ENTRY(gort_write_until, DEADLINE, false),
    ENTRY(gort_writev_until, DEADLINE, false),
    ENTRY(gort_send_until, DEADLINE, false),
    ENTRY(gort_sendto_until, DEADLINE, false),
    ENTRY(gort_sendmsg_until, DEADLINE, false),
    ENTRY(gort_write_full_until, DEADLINE, false),
    ENTRY(gort_reader_deadline, DEADLINE, false),
    ENTRY(gort_writer_deadline, DEADLINE, false),
    ENTRY(gort_accept_until, DEADLINE, false),
    ENTRY(gort_connect_until, DEADLINE, false),
    ENTRY(gort_dial, DEADLINE, false),
    ENTRY(gort_dial_until, DEADLINE, false),
    ENTRY(gort_poll, MILLISECONDS, false),
    ENTRY(gort_poll_until, DEADLINE, false),
    ENTRY(gort_ctx_with_deadline, DEADLINE, false),
    ENTRY(gort_ctx_with_timeout, DURATION, false),
    ENTRY(gort_timer_new, DURATION, false),
    ENTRY(gort_timer_reset, DURATION, false),
    ENTRY(gort_ticker_new, DURATION, false),
    ENTRY(gort_after, DURATION, false),
    ENTRY(gort_tick, DURATION, false),
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- a scene -------------------------------------------------------------------------------- */

static void fill(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, much, sizeof much) > 0) {}
}

static int listener(struct sockaddr_un *at, int backlog) {
    static int number;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "gort-extremes-%d-%d", (int)getpid(),
             add(&number, 1));
    CHECK_EQ(bind(fd, (struct sockaddr *)at, length(at)), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    return fd;
}

static int caller(const struct sockaddr_un *at) { /* -1: it would wait */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(fd, (const struct sockaddr *)at, length(at)) == 0) return fd;
    close(fd);
    return -1;
}

static Scene *scene_new(void) {
    Scene *s = calloc(1, sizeof *s);
    s->refs = 2;
    s->empty = gort_chan_new(sizeof(int64_t), 0);
    s->full = gort_chan_new(sizeof(int64_t), 0);
    gort_mutex_lock(&s->mu);
    gort_rwmutex_lock(&s->rw);
    gort_wg_add(&s->wg, 1);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s->in), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s->out), 0);
    fill(s->out[0]);
    s->quiet = listener(&s->quiet_at, 1);
    s->busy = listener(&s->busy_at, 0);
    while ((s->filler[s->fillers] = caller(&s->busy_at)) >= 0) s->fillers++;
    return s;
}

static void scene_unref(Scene *s) {
    if (add(&s->refs, -1) != 0) return;
    gort_chan_release(s->empty);
    gort_chan_release(s->full);
    for (int i = 0; i < 2; i++) gort_close(s->in[i]), gort_close(s->out[i]);
    for (int i = 0; i < s->fillers; i++) gort_close(s->filler[i]);
    gort_close(s->quiet);
    gort_close(s->busy);
    free(s);
}

/* What every wait of the scene waits for comes about, until its caller is back. */
static void bring_about(Scene *s) {
    int64_t v = 1;
    if (write(s->in[1], "abcd", 4) < 0) FAILF("write");
    gort_mutex_unlock(&s->mu);
    gort_rwmutex_unlock(&s->rw);
    gort_wg_done(&s->wg);
    gort_sem_release(&s->sem, 1);
    int guest = caller(&s->quiet_at);
    fcntl(s->busy, F_SETFL, O_NONBLOCK);
    for (unsigned round = 0; !get(&s->done); round++) {
        gort_chan_try_send(s->empty, &v);
        gort_chan_try_recv(s->full, &v);
        gort_mutex_lock(&s->cond_mu);
        gort_cond_broadcast(&s->cond);
        gort_mutex_unlock(&s->cond_mu);
        static char sink[1 << 16];
        while (recv(s->out[1], sink, sizeof sink, MSG_DONTWAIT) > 0) {}
        int fd = accept(s->busy, NULL, NULL);
        if (fd >= 0) close(fd);
        test_pause(round);
    }
    if (guest >= 0) close(guest);
}

/* ---- one value through all calls ------------------------------------------------------------- */

typedef struct Act {
    Scene *s;
    const Call *call;
    int64_t value;
    bool past;
} Act;

static void play(void *arg) {
    Act act = *(Act *)arg;
    set(&act.s->entered, 1);
    int r = act.call->fn(act.s, act.value);
    set(&act.s->result, r);
    set(&act.s->done, 1);
    scene_unref(act.s);
}
static void *play_thread(void *arg) {
    play(arg);
    return NULL;
}

static void start(bool thread, Act *act) {
    pthread_t id;
    pthread_attr_t attr;
    if (!thread) {
        CHECK_EQ(gort_go(play, act), 0);
        return;
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    CHECK_EQ(pthread_create(&id, &attr, play_thread, act), 0);
    pthread_attr_destroy(&attr);
}

static bool is_past(const Call *call, int64_t value) {
    if (call->takes == DEADLINE) return value <= gort_now();
    /* negative: for ever, as poll(2) */
    if (call->takes == MILLISECONDS) return value >= 0 && value <= 1;
    return value <= 1;
}

/* A sleeper stays for good, and what comes later has it as the first timer: so all that never comes
 * is within a microsecond of the end, where a sum with some slack overflows. */
enum { VALUES = 10 };
static int64_t value_of(const Call *call, int i) {
    static const int64_t ends[] = {
        INT64_MIN,        INT64_MIN + 1,    -1,          0, 1, GORT_FOREVER - 100,
        GORT_FOREVER - 2, GORT_FOREVER - 1, GORT_FOREVER};
    return i < VALUES - 1            ? ends[i]
           : call->takes == DEADLINE ? gort_now()
                                     : GORT_FOREVER - gort_now();
}

static void fired(void *arg) { set((int *)arg, 1); }

/* A plain thread arms it while every goroutine waits: whoever is in the poller must be woken for
 * it. The monitor, which looks after forgotten timers while it is awake, falls asleep meanwhile. */
static void near_timer_fires(int64_t ns) {
    static int flag;
    set(&flag, 0);
    gort_timer *t = gort_timer_new(ns, fired, &flag);
    CHECK(t != NULL);
    wait_until(get(&flag));
    gort_timer_free(t);
}

static void judge(const Act *act) {
    int r = get(&act->s->result);
    if (act->call->endless && !act->past)
        CHECKF(!get(&act->s->done), "%s(%" PRId64 ") came back", act->call->name, act->value);
    else if (act->past)
        CHECKF(r == -ETIMEDOUT || r == -ENOTCONN, "%s(%" PRId64 ") is %d", act->call->name,
               act->value, r);
    else CHECKF(r >= 0 || r == -ENOTCONN, "%s(%" PRId64 ") is %d", act->call->name, act->value, r);
}

static void all_calls(bool thread, bool runtime, int armed, int k) {
    Act act[CALLS];
    for (int i = 0; i < CALLS; i++) {
        const Call *call = &calls[i];
        int64_t value = value_of(call, k);
        act[i] = (Act){scene_new(), call, value, is_past(call, value)};
        printf("%s(%" PRId64 "), %s, %d timers\n", call->name, value,
               thread ? "thread" : "goroutine", armed);
        start(thread, &act[i]);
        wait_until(get(&act[i].s->entered));
        if (act[i].past) wait_until(get(&act[i].s->done));
        if (runtime) near_timer_fires(20 * GORT_US);
    }
    if (runtime && !test_simulated()) near_timer_fires(k >= 5 ? 100 * GORT_MS : GORT_MS);
    for (int i = 0; i < CALLS; i++) {
        if (!act[i].past && !act[i].call->endless) bring_about(act[i].s);
        judge(&act[i]);
        scene_unref(act[i].s);
    }
}

/* ---- at every number of timers -------------------------------------------------------------- */

static gort_chan *finished;
static int armed_now;

static void *from_thread(void *arg) {
    (void)arg;
    for (int k = 0; k < VALUES; k++) all_calls(true, true, armed_now, k);
    CHECK_EQ(gort_chan_send(finished, NULL), 0);
    return NULL;
}

static void never(void *arg) { FAILF("a timer came that never comes"); }

static int body(int argc, char **argv) {
    static const int levels[] = {1, 2000, 100000};
    pthread_t driver;
    finished = gort_chan_new(0, 0);
    for (int i = 0; i < 3; i++) {
        if (levels[i] > 2000 && (test_valgrind() || TEST_SCALE > 1)) continue;
        while (armed_now < levels[i]) {
            CHECK(gort_timer_new(GORT_FOREVER - (armed_now & 1), never, NULL) != NULL);
            armed_now++;
        }
        for (int k = 0; k < VALUES; k++) all_calls(false, true, armed_now, k);
        if (test_simulated()) continue;
        CHECK_EQ(pthread_create(&driver, NULL, from_thread, NULL), 0);
        CHECK_EQ(gort_chan_recv(finished, NULL), 0); /* nobody else is awake meanwhile */
        pthread_join(driver, NULL);
    }
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int k = 0; k < VALUES && !test_simulated(); k++) all_calls(true, false, 0, k);
    CHECK_EQ(gort_main(body, argc, argv), 0);
    _Exit(0); /* threads sleep for ever */
}
