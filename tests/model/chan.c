/*
 * Channels and select (src/sync/chan.c, src/sync/chan.h, src/sync/select.c, as they stand, over
 * src/sched/sched.c): senders, receivers, closers and selects, with deadlines and without, in every
 * order of their steps.
 *
 * What has to hold: nothing sent is lost or received twice; close wakes everybody who waits; a
 * select does one of its cases, and the wait of a call is ended once, by a partner, by close or by
 * the deadline; what a partner was told agrees with what the call says; nobody is left behind in a
 * queue, and nobody waits for ever where somebody could have gone on; a channel is freed once, when
 * nobody will touch it any more. And a try that says "would block" is right about one moment.
 *
 * Each scene is two or three goroutines (house.h) with one or two operations each; more of the same
 * meets nothing new, since all that passes between them is a queue under a lock and a claim. A
 * select draws its lot both ways. Time is a thread of its own, which lets a deadline pass at any
 * moment after it was armed; the heap itself is timer.c's matter.
 *
 * Not modelled: machines weaker than x86, selects of more than two cases, the end of a runtime.
 */
#include "house.h"

#undef random_next
/* the first or the last of those that are ready */
static uint64_t drawn(uint64_t *state) { return mc_pick(2) ? UINT64_MAX : 0; }
#define random_next drawn

#define gone chan_gone
#include <sync/chan.c>
#undef gone
#include <sync/select.c>
#undef random_next

/* ---- memory ---- */

enum { CHANS = 2, SOON = 5 /* a deadline: the clock stands at 0 */ };
static struct Room { char at[sizeof(gort_chan) + 64] ALIGNED(CACHE_LINE); } rooms[CHANS];
static int used, freed[CHANS];

void *quiet_alloc(size_t size) {
    return used < CHANS && size <= sizeof rooms[0] ? &rooms[used++] : NULL;
}
void quiet_free(void *at) {
    memset(at, 0xee, sizeof rooms[0]);
    freed[(struct Room *)at - rooms]++;
}

/* ---- time ---- */

static Timer *armed[MS]; /* by goroutine */

static G *owner(Timer *t) { return t->arg; }
void timer_unheard(Refs *timer) {}
int timer_add(M *m, Timer *t) {
    Timer **place = &armed[owner(t) - gs];
    MUST(t->when == SOON);
    xchg_seq(place, t);
    mc_after(place); /* it may fire now */
    return 0;
}
bool timer_del(Timer *t) {
    Timer *expect = t;
    return cas_seq(&armed[owner(t) - gs], &expect, NULL);
}

static bool time_matters(void *arg) {
    int n = 0;
    for (int i = 0; i < MS; i++) {
        if (armed[i]) return true;
        n += ended[i];
    }
    return n == goroutines;
}
static void time_passes(void) {
    for (;;) {
        /* goes on at any moment when one is armed, also never before it is deleted */
        mc_wait(time_matters, NULL);
        int i = 0;
        while (i < MS && armed[i] == NULL) i++;
        if (i == MS) return;
        Timer t = *armed[i];
        armed[i] = NULL;
        t.fn(getm(), t.arg, t.seq);
    }
}

/* ---- scenes ---- */

static const struct Scene {
    const char *name;
    void (*bodies[3])(void);
    void (*holds)(void);
    int capacity_a, capacity_b; /* -1: there is none */
    bool timed, threads, spare; /* a deadline; the first two are plain threads; add_spare() */
    void (*before)(void);
} * scene;
static gort_chan *a, *b;
static long got[MS][3];
static int result[MS][3], index_of[MS][3];
#define ME ((int)(getm()->curg - gs))
enum { UNUSED = 99 };

static void do_send(gort_chan *c, int k, long value, int64_t deadline) {
    int i = ME;
    result[i][k] = deadline == GORT_FOREVER ? gort_chan_send(c, &value)
                                            : gort_chan_send_until(c, &value, deadline);
    scribble();
}
static void do_recv(gort_chan *c, int k, int64_t deadline) {
    int i = ME;
    long value = -1;
    result[i][k] = deadline == GORT_FOREVER ? gort_chan_recv(c, &value)
                                            : gort_chan_recv_until(c, &value, deadline);
    got[i][k] = value;
    scribble();
}
static void do_select(gort_case *cases, int n, int k, int64_t deadline) {
    int i = ME;
    index_of[i][k] =
        deadline == GORT_FOREVER ? gort_select(cases, n) : gort_select_until(cases, n, deadline);
    if (index_of[i][k] >= 0) result[i][k] = cases[index_of[i][k]].result;
    scribble();
}
#define RECV(c, v) \
    { .op = GORT_RECV, .ch = (c), .value = (v) }
#define SEND(c, v) \
    { .op = GORT_SEND, .ch = (c), .value = (v) }

static void sends_1(void) { do_send(a, 0, 1, GORT_FOREVER); }
static void sends_2(void) { do_send(a, 0, 2, GORT_FOREVER); }
static void receives(void) { do_recv(a, 0, GORT_FOREVER); }
static void receives_twice(void) {
    do_recv(a, 0, GORT_FOREVER);
    do_recv(a, 1, GORT_FOREVER);
}
static void all_arrive(void) {
    MUST(result[0][0] == 0 && result[1][0] == 0 && result[2][0] == 0 && result[2][1] == 0);
    MUST(got[2][0] + got[2][1] == 3 && got[2][0] * got[2][1] == 2); /* 1 and 2 */
}

static void arrives(void) { MUST(result[0][0] == 0 && result[1][0] == 0 && got[1][0] == 1); }
static void all_but_one_arrive(void) {
    MUST(result[0][0] == 0 && result[1][0] == 0 && result[2][0] == 0 && a->count == 1);
}

static void sends_and_closes(void) {
    do_send(a, 0, 1, GORT_FOREVER);
    result[ME][1] = gort_chan_close(a);
}
static void one_gets_it(void) {
    int who = result[0][0] == 0 ? 0 : 1;
    MUST(result[2][0] == 0 && result[2][1] == 0);
    MUST(result[who][0] == 0 && got[who][0] == 1);
    MUST(result[1 - who][0] == -EPIPE && got[1 - who][0] == 0);
}

static void receives_and_closes(void) {
    do_recv(a, 0, GORT_FOREVER);
    result[ME][1] = gort_chan_close(a);
    do_recv(a, 2, GORT_FOREVER); /* what is left */
}
static void senders_learn(void) {
    MUST(scene->capacity_a || result[2][2] == -EPIPE); /* nobody is left in the queue */
    int arrived = (result[2][0] == 0) + (result[2][2] == 0);
    MUST(result[2][1] == 0 && result[2][0] == 0);
    for (int i = 0; i < 2; i++) {
        bool here =
            (result[2][0] == 0 && got[2][0] == i + 1) || (result[2][2] == 0 && got[2][2] == i + 1);
        MUST(result[i][0] == (here ? 0 : -EPIPE));
    }
    MUST((result[0][0] == 0) + (result[1][0] == 0) == arrived);
}

static void closes(void) { result[ME][1] = gort_chan_close(a); }
static void selects_to_close(void) {
    long v = -1;
    gort_case cases[] = {RECV(a, &v), RECV(b, NULL)};
    do_select(cases, 2, 0, GORT_FOREVER);
    got[ME][0] = v;
}
static void all_see_the_end(void) {
    MUST(result[0][0] == -EPIPE && got[0][0] == 0 && index_of[0][0] == 0);
    MUST(result[1][0] == -EPIPE && result[2][1] == 0);
}

static void sends_to_b(void) { do_send(b, 0, 2, GORT_FOREVER); }
static void selects_twice(void) {
    for (int k = 0; k < 2; k++) {
        long v[2] = {-1, -1};
        gort_case cases[] = {RECV(a, &v[0]), RECV(b, &v[1])};
        do_select(cases, 2, k, GORT_FOREVER);
        int at = index_of[ME][k];
        MUST(at == 0 || at == 1);
        MUST(v[1 - at] == -1); /* the other case has touched nothing */
        got[ME][k] = v[at];
    }
}
static void each_case_once(void) {
    all_arrive();
    MUST(got[2][0] == index_of[2][0] + 1 && got[2][1] == index_of[2][1] + 1);
}

static void select_one_way(void) {
    long one = 1, v = -1;
    gort_case cases[] = {SEND(a, &one), RECV(b, &v)};
    do_select(cases, 2, 0, GORT_FOREVER);
    got[ME][0] = v;
}
static void select_other_way(void) {
    long two = 2, v = -1;
    gort_case cases[] = {SEND(b, &two), RECV(a, &v)};
    do_select(cases, 2, 0, GORT_FOREVER);
    got[ME][0] = v;
}
static void one_exchange(void) {
    MUST(result[0][0] == 0 && result[1][0] == 0 && index_of[0][0] == 1 - index_of[1][0]);
    MUST(index_of[0][0] == 0 ? got[1][0] == 1 && got[0][0] == -1
                             : got[0][0] == 2 && got[1][0] == -1);
}

/* Into b before out of a: one of them is always there. */
static void moves_a_token(void) {
    do_send(b, 0, 1, GORT_FOREVER);
    do_recv(a, 1, GORT_FOREVER);
}
static void fills_a(void) {
    long token = 7;
    gort_chan_try_send(a, &token);
}
static void tries_both(void) {
    gort_case cases[] = {RECV(a, NULL), RECV(b, NULL)};
    index_of[ME][0] = gort_try_select(cases, 2);
    long again = 7; /* the token back, for the one who moves it */
    if (index_of[ME][0] == 0) result[ME][1] = gort_chan_send(a, &again);
}
static void never_overlooked(void) { MUST(index_of[0][0] >= 0); }

static void waits_in_vain(void) { do_recv(NULL, 0, SOON); }
static void time_went_by(void) { MUST(result[0][0] == -ETIMEDOUT); }
static void receives_soon(void) { do_recv(a, 0, SOON); }
static void sends_soon(void) { do_send(a, 0, 1, SOON); }
static void tries_to_send(void) {
    long value = 1;
    result[ME][0] = gort_chan_try_send(a, &value);
}
static void both_agree(void) {
    MUST((result[0][0] == 0 && got[0][0] == 1) || (result[0][0] == -ETIMEDOUT && got[0][0] == -1));
    bool sent = result[1][0] == 0;
    MUST(sent || result[1][0] == -ETIMEDOUT || result[1][0] == -EAGAIN);
    MUST(sent == (result[0][0] == 0));
}

/* A receiver that gives up must not take the wake-up of the one behind it with it. */
static void one_of_two(void) {
    MUST(result[2][0] == 0 && result[1][0] == 0 + (result[0][0] == 0 ? -EPIPE : 0));
    MUST(result[0][0] == 0
             ? got[0][0] == 1
             : result[0][0] == -EPIPE || (result[0][0] == -ETIMEDOUT && got[0][0] == -1));
    MUST(result[1][0] == 0 ? got[1][0] == 1 : got[1][0] == 0);
}

/* A worker offers its result, and looks for the end; the taker releases both channels, which the
 * worker still waits on. */
static void offers(void) {
    long one = 1;
    gort_case cases[] = {SEND(a, &one), RECV(b, NULL)};
    do_select(cases, 2, 0, GORT_FOREVER);
}
static void takes_and_releases(void) {
    do_recv(a, 0, GORT_FOREVER);
    gort_chan_release(a);
    gort_chan_release(b);
    a = b = NULL;
}
static void offer_taken(void) { MUST(index_of[0][0] == 0 && result[0][0] == 0 && got[1][0] == 1); }

/* The same against a deadline, with a reference each: whoever loses touches nothing, and the last
 * one frees. */
static void a_reference_each(void) {
    gort_chan_retain(a);
    gort_chan_retain(b);
}
static void lets_go(void) {
    gort_chan_release(a);
    gort_chan_release(b);
}
static void offers_soon(void) {
    long one = 1;
    gort_case cases[] = {SEND(a, &one), RECV(b, NULL)};
    do_select(cases, 2, 0, SOON);
    lets_go();
}
static void takes_or_not(void) {
    long v = -1;
    int i = ME;
    result[i][0] = gort_chan_try_recv(a, &v);
    got[i][0] = v;
    lets_go();
}
static void taken_or_late(void) {
    a = b = NULL;
    bool taken = result[1][0] == 0;
    MUST(taken ? index_of[0][0] == 0 && result[0][0] == 0 && got[1][0] == 1
               : index_of[0][0] == -ETIMEDOUT && got[1][0] == -1);
}

/* An old deadline, that comes too late for its own wait, must not end the next one. */
static void waits_again(void) {
    long v = -1, w = -1;
    do_recv(a, 0, SOON);
    gort_case cases[] = {RECV(a, &v), RECV(b, &w)};
    do_select(cases, 2, 1, GORT_FOREVER);
    got[ME][1] = index_of[ME][1] == 0 ? v : w;
    if (result[ME][0] != 0) do_recv(b, 2, GORT_FOREVER);
}
static void sends_to_both(void) {
    do_send(a, 0, 1, GORT_FOREVER);
    do_send(b, 1, 2, GORT_FOREVER);
}
static void each_in_turn(void) {
    MUST(result[1][0] == 0 && result[1][1] == 0 && result[0][1] == 0);
    if (result[0][0] == 0) MUST(got[0][0] == 1 && index_of[0][1] == 1 && got[0][1] == 2);
    else
        MUST(result[0][0] == -ETIMEDOUT && index_of[0][1] == 0 && got[0][1] == 1 && got[0][2] == 2);
}

static const struct Scene scenes[] = {
    {"two send, one receives",
     {sends_1, sends_2, receives_twice},
     all_arrive,
     0,
     -1,
     0,
     0,
     0,
     NULL},
    {"the same with a buffer",
     {sends_1, sends_2, receives_twice},
     all_arrive,
     1,
     -1,
     0,
     0,
     0,
     NULL},
    {"one stays in the buffer",
     {sends_1, sends_2, receives},
     all_but_one_arrive,
     1,
     -1,
     0,
     0,
     0,
     NULL},
    {"two threads send", {sends_1, sends_2, receives_twice}, all_arrive, 0, -1, 0, 1, 0, NULL},
    {"one runs elsewhere", {sends_1, receives, NULL}, arrives, 0, -1, 0, 0, 1, NULL},
    {"close with receivers",
     {receives, receives, sends_and_closes},
     one_gets_it,
     0,
     -1,
     0,
     0,
     0,
     NULL},
    {"the same with a buffer",
     {receives, receives, sends_and_closes},
     one_gets_it,
     1,
     -1,
     0,
     0,
     0,
     NULL},
    {"close with senders",
     {sends_1, sends_2, receives_and_closes},
     senders_learn,
     0,
     -1,
     0,
     0,
     0,
     NULL},
    {"the same with a buffer",
     {sends_1, sends_2, receives_and_closes},
     senders_learn,
     1,
     -1,
     0,
     0,
     0,
     NULL},
    {"close with a select",
     {selects_to_close, receives, closes},
     all_see_the_end,
     0,
     0,
     0,
     0,
     0,
     NULL},
    {"select of two", {sends_1, sends_to_b, selects_twice}, each_case_once, 0, 0, 0, 0, 0, NULL},
    {"the same with buffers",
     {sends_1, sends_to_b, selects_twice},
     each_case_once,
     1,
     1,
     0,
     0,
     0,
     NULL},
    {"select against select",
     {select_one_way, select_other_way, NULL},
     one_exchange,
     0,
     0,
     0,
     0,
     1,
     NULL},
    {"the same from threads",
     {select_one_way, select_other_way, NULL},
     one_exchange,
     0,
     0,
     0,
     1,
     0,
     NULL},
    {"a token that goes round",
     {tries_both, moves_a_token, NULL},
     never_overlooked,
     1,
     1,
     0,
     0,
     0,
     fills_a},
    {"a deadline and a try",
     {receives_soon, tries_to_send, NULL},
     both_agree,
     0,
     -1,
     1,
     0,
     1,
     NULL},
    {"a NULL channel", {waits_in_vain, NULL, NULL}, time_went_by, 0, -1, 1, 0, 1, NULL},
    {"two deadlines", {receives_soon, sends_soon, NULL}, both_agree, 0, -1, 1, 0, 0, NULL},
    {"two deadlines of threads",
     {receives_soon, sends_soon, NULL},
     both_agree,
     0,
     -1,
     1,
     1,
     0,
     NULL},
    {"a deadline before another",
     {receives_soon, receives, sends_and_closes},
     one_of_two,
     0,
     -1,
     1,
     0,
     0,
     NULL},
    {"an old deadline", {waits_again, sends_to_both, NULL}, each_in_turn, 0, 0, 1, 0, 0, NULL},
    {"released under a select",
     {offers, takes_and_releases, NULL},
     offer_taken,
     0,
     0,
     0,
     0,
     1,
     NULL},
    {"a select with a deadline",
     {offers_soon, takes_or_not, NULL},
     taken_or_late,
     0,
     0,
     1,
     0,
     1,
     a_reference_each},
};

static void model_reset(void) {
    house_reset();
    memset(rooms, 0, sizeof rooms);
    memset(freed, 0, sizeof freed);
    memset(armed, 0, sizeof armed);
    memset(got, 0, sizeof got);
    for (int i = 0; i < MS; i++)
        for (int k = 0; k < 3; k++) result[i][k] = index_of[i][k] = UNUSED;
    used = 0;
    a = gort_chan_new(sizeof(long), (size_t)scene->capacity_a);
    b = scene->capacity_b < 0 ? NULL : gort_chan_new(sizeof(long), (size_t)scene->capacity_b);
    ms[0] = (M){.plain = true, .curg = &gs[0]};
    tls_m = &ms[0];
    if (scene->before) scene->before();
    mc_time_passes = scene->timed;
    for (int i = 0; i < 3 && scene->bodies[i]; i++)
        if (scene->threads && i < 2) {
            add_thread(scene->bodies[i], true);
        } else {
            add_goroutine(scene->bodies[i]);
        }
    if (scene->timed && goroutines) add_thread(time_passes, false);
    if (scene->spare) add_spare();
}

static void nothing_left(gort_chan *c) {
    MUST(c->lock.word == 0 && c->recvq.first == NULL && c->recvq.last == NULL &&
         c->sendq.first == NULL && c->sendq.last == NULL);
    MUST(c->pins == 0 && c->refs == 1 && c->count <= c->capacity);
}

static void model_end(void) {
    scene->holds();
    if (a) nothing_left(a);
    if (b) nothing_left(b);
    for (int i = 0; i < used; i++)
        MUST(freed[i] == (&rooms[i] != (void *)a && &rooms[i] != (void *)b));
    for (int i = 0; i < MS; i++) MUST(armed[i] == NULL);
}

static uint64_t model_hash(uint64_t h) {
    h = MIX(house_hash(h), rooms);
    h = mix(mix(MIX(MIX(h, freed), armed), WORD(a)), WORD(b));
    return MIX(MIX(MIX(h, got), result), index_of);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        if (argc > 1 && (size_t)atoi(argv[1]) != i) continue;
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
