/* What the contract says of a channel, sentence by sentence. */
#include "../lib/everywhere.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

GORT_CHAN_TYPE(ints, int)
typedef struct Wide {
    char bytes[100];
} Wide;
GORT_CHAN_TYPE(wides, Wide)

/* Sizes that no machine has are asked for below: NULL is the answer to be tested. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* errno, unseen by TSan, which takes the goroutines of one thread for threads that share it. */
__attribute__((noinline, no_sanitize("thread"))) static void put_errno(int e) { errno = e; }
__attribute__((noinline, no_sanitize("thread"))) static int see_errno(void) { return errno; }

static int64_t soon(void) { return gort_now() + GORT_MS; }
static int64_t late(void) { return gort_now() + 600 * GORT_SEC; }

static void sizes(void) {
    gort_chan *c = gort_chan_new(8, 3);
    CHECK(c != NULL);
    CHECK_EQ(gort_chan_cap(c), 3);
    CHECK_EQ(gort_chan_len(c), 0);
    gort_chan_release(c);
    CHECK(gort_chan_new(SIZE_MAX, 2) == NULL);
    CHECK(gort_chan_new(2, SIZE_MAX) == NULL);
    CHECK(gort_chan_new(SIZE_MAX / 2, 2) == NULL);
    CHECK(gort_chan_new(1, SIZE_MAX) == NULL);
    CHECK(gort_chan_new(1, SIZE_MAX - 64) == NULL);
    CHECK(gort_chan_new(1, PTRDIFF_MAX) == NULL);
    put_errno(77);
    CHECK(gort_chan_new((size_t)1 << 40, (size_t)1 << 22) == NULL);
    CHECK_EQ(see_errno(), 77);
}

/* A ring that goes round several times, for every size that has a copy of its own, and others. */
static void buffer_of(size_t size, size_t capacity) {
    gort_chan *c = gort_chan_new(size, capacity);
    unsigned char in[64], out[64];
    unsigned sent = 0, received = 0;
    for (unsigned round = 0; round < 50; round++) {
        for (size_t i = 0; i < capacity - round % capacity; i++) {
            memset(in, (int)sent++, sizeof in);
            if (gort_chan_try_send(c, in) == -EAGAIN) {
                CHECK_EQ(gort_chan_len(c), capacity);
                sent--;
            }
        }
        CHECK_EQ(gort_chan_len(c), sent - received);
        for (size_t i = 0; i <= round % capacity && received < sent; i++) {
            memset(out, 0xEE, sizeof out);
            CHECK_EQ(gort_chan_recv(c, out), 0);
            for (size_t k = 0; k < size; k++) CHECK_EQ(out[k], received & 255);
            for (size_t k = size; k < sizeof out; k++) CHECK_EQ(out[k], 0xEE);
            received++;
        }
    }
    gort_chan_release(c);
}

static void buffers(void) {
    static const size_t size[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 64};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (size_t capacity = 1; capacity <= 5; capacity++) buffer_of(size[i], capacity);
}

static void tries(void) {
    int v = 5;
    gort_chan *c = gort_chan_new(sizeof v, 0);
    CHECK_EQ(gort_chan_try_send(c, &v), -EAGAIN);
    CHECK_EQ(gort_chan_try_recv(c, &v), -EAGAIN);
    CHECK_EQ(v, 5);
    gort_chan_release(c);
    c = gort_chan_new(sizeof v, 1);
    CHECK_EQ(gort_chan_try_recv(c, &v), -EAGAIN);
    CHECK_EQ(gort_chan_try_send(c, &v), 0);
    CHECK_EQ(gort_chan_try_send(c, &v), -EAGAIN);
    v = 0;
    CHECK_EQ(gort_chan_try_recv(c, &v), 0);
    CHECK_EQ(v, 5);
    CHECK_EQ(gort_chan_close(c), 0);
    CHECK_EQ(gort_chan_try_send(c, &v), -EPIPE);
    CHECK_EQ(gort_chan_try_recv(c, &v), -EPIPE);
    CHECK_EQ(v, 0);
    gort_chan_release(c);
}

static void null_channel(void) {
    int v = 5;
    CHECK_EQ(gort_chan_len(NULL), 0);
    CHECK_EQ(gort_chan_cap(NULL), 0);
    CHECK(gort_chan_retain(NULL) == NULL);
    gort_chan_release(NULL);
    CHECK_EQ(gort_chan_try_send(NULL, &v), -EAGAIN);
    CHECK_EQ(gort_chan_try_recv(NULL, &v), -EAGAIN);
    CHECK_EQ(gort_chan_send_until(NULL, &v, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(NULL, &v, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send_until(NULL, &v, 0), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(NULL, &v, INT64_MIN), -ETIMEDOUT);
    CHECK_EQ(v, 5);
}

static void closing(void) {
    int v = 1;
    gort_chan *c = gort_chan_new(sizeof v, 2);
    CHECK_EQ(gort_chan_send(c, &v), 0);
    v = 2;
    CHECK_EQ(gort_chan_send(c, &v), 0);
    CHECK_EQ(gort_chan_close(c), 0);
    CHECK_EQ(gort_chan_close(c), -EPIPE);
    CHECK_EQ(gort_chan_send(c, &v), -EPIPE);
    CHECK_EQ(gort_chan_send_until(c, &v, 0), -EPIPE);
    CHECK_EQ(gort_chan_len(c), 2);
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    CHECK_EQ(v, 1);
    CHECK_EQ(gort_chan_recv(c, NULL), 0);
    v = 9;
    CHECK_EQ(gort_chan_recv(c, &v), -EPIPE);
    CHECK_EQ(v, 0);
    v = 9;
    CHECK_EQ(gort_chan_recv_until(c, &v, 0), -EPIPE);
    CHECK_EQ(v, 0);
    CHECK_EQ(gort_chan_recv(c, NULL), -EPIPE);
    gort_chan_release(c);
}

static void deadlines(void) {
    int v = 3;
    gort_chan *c = gort_chan_new(sizeof v, 1);
    CHECK_EQ(gort_chan_recv_until(c, &v, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(c, &v, gort_now()), -ETIMEDOUT);
    CHECK_EQ(v, 3);
    CHECK_EQ(gort_chan_send_until(c, &v, 0), 0); /* one attempt is made */
    CHECK_EQ(gort_chan_send_until(c, &v, 0), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send_until(c, &v, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_len(c), 1);
    v = 0;
    CHECK_EQ(gort_chan_recv_until(c, &v, -1), 0);
    CHECK_EQ(v, 3);
    int64_t at = gort_now() + 20 * GORT_MS;
    CHECK_EQ(gort_chan_recv_until(c, &v, at), -ETIMEDOUT);
    CHECK_GE(gort_now(), at); /* never early */
    gort_chan_release(c);
}

static void references(void) {
    int v = 3;
    gort_chan *c = gort_chan_new(sizeof v, 1);
    CHECK(gort_chan_retain(c) == c);
    gort_chan_release(c);
    CHECK_EQ(gort_chan_send(c, &v), 0);
    gort_chan_release(c); /* with a value inside */
}

static void veneer(void) {
    ints *c = ints_new(2);
    int v = 0;
    CHECK_EQ(ints_cap(c), 2);
    CHECK_EQ(ints_send(c, 4), 0);
    CHECK_EQ(ints_send_until(c, 5, 0), 0);
    CHECK_EQ(ints_try_send(c, 6), -EAGAIN);
    CHECK_EQ(ints_len(c), 2);
    CHECK_EQ(ints_recv(c, &v), 0);
    CHECK_EQ(v, 4);
    CHECK_EQ(ints_recv_until(c, &v, 0), 0);
    CHECK_EQ(v, 5);
    CHECK_EQ(ints_try_recv(c, &v), -EAGAIN);
    CHECK(ints_retain(c) == c);
    ints_release(c);
    CHECK_EQ(ints_send(c, 7), 0);
    CHECK_EQ(gort_select_of(gort_on_recv(ints_chan(c), &v)), 0);
    CHECK_EQ(v, 7);
    CHECK_EQ(ints_close(c), 0);
    ints_release(c);
    wides *w = wides_new(0);
    CHECK_EQ(wides_try_send(w, (Wide){{1}}), -EAGAIN);
    wides_release(w);
}

/* ---- two sides ------------------------------------------------------------------------------- */

typedef struct Side {
    gort_chan *c;
    void *value;
    int result;
    int done;
    int64_t deadline;
} Side;

static void sender(void *arg) {
    Side *s = arg;
    s->result = s->deadline ? gort_chan_send_until(s->c, s->value, s->deadline)
                            : gort_chan_send(s->c, s->value);
    set(&s->done, 1);
}

static void receiver(void *arg) {
    Side *s = arg;
    s->result = s->deadline ? gort_chan_recv_until(s->c, s->value, s->deadline)
                            : gort_chan_recv(s->c, s->value);
    set(&s->done, 1);
}

/* Starts fn as a goroutine, or where there is no runtime as a thread. */
static void *as_thread(void *arg) {
    void **call = arg;
    ((gort_fn *)call[0])(call[1]);
    free(call);
    return NULL;
}

static void start(gort_fn *fn, void *arg) {
    int r = gort_go(fn, arg);
    if (r == 0) return;
    CHECK_EQ(r, -ENOTCONN);
    pthread_t t;
    void **call = malloc(2 * sizeof *call);
    call[0] = (void *)fn;
    call[1] = arg;
    CHECK_EQ(pthread_create(&t, NULL, as_thread, call), 0);
    CHECK_EQ(pthread_detach(t), 0);
}

/* Both orders of arrival, every kind of value, with and without a deadline that does not pass. */
static void hand_over(size_t size, bool timed, bool drop) {
    unsigned char in[64], out[64];
    gort_chan *c = gort_chan_new(size, 0);
    for (int i = 0; i < 40; i++) {
        memset(in, i + 1, sizeof in);
        memset(out, 0xEE, sizeof out);
        Side s = {c, i % 2 ? in : drop ? NULL : out, -1, 0, timed ? late() : 0};
        start(i % 2 ? sender : receiver, &s);
        if (i % 4 < 2) gort_yield();
        int r = i % 2 ? gort_chan_recv(c, drop ? NULL : out) : gort_chan_send(c, in);
        CHECK_EQ(r, 0);
        wait_until(get(&s.done));
        CHECK_EQ(s.result, 0);
        for (size_t k = 0; k < sizeof out; k++) CHECK_EQ(out[k], k < size && !drop ? i + 1 : 0xEE);
    }
    gort_chan_release(c);
}

static void hand_overs(void) {
    static const size_t size[] = {0, 1, 4, 8, 16, 24, 64};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int kind = 0; kind < 4; kind++) hand_over(size[i], kind & 1, kind & 2);
}

/* An unbuffered try succeeds exactly when somebody waits. */
static void try_meets_waiter(void) {
    int in = 11, out = 0, v = 0;
    gort_chan *c = gort_chan_new(sizeof(int), 0);
    Side r = {c, &out, -1, 0, 0}, s = {c, &in, -1, 0, 0};
    start(receiver, &r);
    wait_until(gort_chan_try_send(c, &in) == 0);
    wait_until(get(&r.done));
    CHECK_EQ(out, 11);
    start(sender, &s);
    wait_until(gort_chan_try_recv(c, &v) == 0);
    wait_until(get(&s.done));
    CHECK_EQ(v, 11);
    gort_chan_release(c);
}

/* Blocked senders and receivers get -EPIPE; a receiver's memory is zeroed. Whether they block
 * before or after the close makes no difference to what they see. */
static void close_wakes(bool timed) {
    enum { N = 8 };
    Side side[N];
    int value[N];
    for (int kind = 0; kind < 2; kind++) {
        gort_chan *c = gort_chan_new(sizeof(int), 0);
        for (int i = 0; i < N; i++) {
            value[i] = i + 1;
            side[i] = (Side){c, &value[i], 1, 0, timed ? late() : 0};
            start(kind ? sender : receiver, &side[i]);
        }
        gort_yield();
        CHECK_EQ(gort_chan_close(c), 0);
        for (int i = 0; i < N; i++) {
            wait_until(get(&side[i].done));
            CHECK_EQ(side[i].result, -EPIPE);
            CHECK_EQ(value[i], kind ? i + 1 : 0);
        }
        gort_chan_release(c);
    }
}

/* A full buffer keeps its order when blocked senders refill it. */
static void blocked_senders_refill(void) {
    enum { N = 6 };
    Side side[N];
    int value[N], v, seen = 0;
    gort_chan *c = gort_chan_new(sizeof(int), 3);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_chan_send(c, &(int){100 + i}), 0);
    for (int i = 0; i < N; i++) {
        value[i] = i;
        side[i] = (Side){c, &value[i], -1, 0, i % 2 ? late() : 0};
        start(sender, &side[i]);
    }
    gort_yield();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_chan_recv(c, &v), 0);
        CHECK_EQ(v, 100 + i);
    }
    for (int i = 0; i < N; i++) {
        CHECK_EQ(gort_chan_recv(c, &v), 0);
        CHECK(v >= 0 && v < N && !(seen & 1 << v));
        seen |= 1 << v;
    }
    for (int i = 0; i < N; i++) wait_until(get(&side[i].done));
    CHECK_EQ(gort_chan_len(c), 0);
    gort_chan_release(c);
}

/* The receiver may release at once: the sender, which has no reference, does not look back. */
static void release_after_receive(void) {
    for (int i = 0; i < 200; i++) {
        int in = i, out = -1;
        gort_chan *c = gort_chan_new(sizeof(int), i % 2);
        Side s = {c, &in, -1, 0, i % 3 ? 0 : late()};
        start(sender, &s);
        CHECK_EQ(gort_chan_recv(c, &out), 0);
        gort_chan_release(c);
        CHECK_EQ(out, i);
        wait_until(get(&s.done));
        CHECK_EQ(s.result, 0);
    }
}

/* A deadline against a partner, at the same moment: both agree on what happened. */
static void deadline_race(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < 300; i++) {
        int in = i, out = -1;
        int64_t at = gort_now() + (i % 30) * 5 * GORT_US;
        Side s = {c, &in, 1, 0, at};
        start(sender, &s);
        int r = gort_chan_recv_until(c, &out, at);
        wait_until(get(&s.done));
        CHECK(r == 0 || r == -ETIMEDOUT);
        CHECK_EQ(s.result, r);
        CHECK_EQ(out, r == 0 ? i : -1);
    }
    CHECK_EQ(gort_chan_try_recv(c, NULL), -EAGAIN);
    gort_chan_release(c);
}

/* errno is the program's. */
static void errno_stays(void) {
    int v = 0;
    gort_chan *c = gort_chan_new(sizeof v, 1);
    put_errno(4711);
    CHECK_EQ(gort_chan_recv_until(c, &v, soon()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send(c, &v), 0);
    CHECK_EQ(gort_chan_close(c), 0);
    CHECK_EQ(gort_chan_send(c, &v), -EPIPE);
    gort_chan_release(c);
    CHECK_EQ(see_errno(), 4711);
}

static void everything(void) {
    sizes();
    buffers();
    tries();
    null_channel();
    closing();
    deadlines();
    references();
    veneer();
    hand_overs();
    try_meets_waiter();
    close_wakes(false);
    close_wakes(true);
    blocked_senders_refill();
    release_after_receive();
    deadline_race();
    errno_stays();
}

int main(int argc, char **argv) { return everywhere(everything, argc, argv); }
