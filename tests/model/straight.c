/*
 * From goroutine to goroutine without g0: the plain cases of park, ready and yield
 * (src/sched/fastpath.h, src/sched/sched.c) beside a second thread, which takes what it finds.
 * Channels (src/sync/chan.c) over the scheduler itself (whole.h), two Ms with a P each.
 *
 * What has to hold: nobody goes on before it has left its stack, however late the thread it left
 * comes to what it has to do behind the switch; who is next is run by its own P or by a thief, not
 * by both; all come to their end, and what was sent arrives; in the end both Ps are idle and
 * nothing is queued.
 *
 * Not modelled: a third thread; a P that is taken away meanwhile (retake.c); what a channel itself
 * has to hold (chan.c).
 */
enum { MS = 2, PS = 2, GS = 4 };
#include "whole.h"

#define gone chan_gone
#include <sync/chan.c>
#undef gone

void netpoll(int64_t deadline, GList *list) { wrong("the network"); }
void netpoll_break(void) { wrong("the network"); }
int os_tgkill(int tid, int signo) { wrong("a signal"); }
bool thread_asked(M *m) { return true; }
bool thread_awake(M *m) { return true; }
bool thread_asleep(M *m, int64_t cpu) { return false; }
void thread_seen(M *m, int64_t cpu) {}

enum { CHANS = 2 };
static struct Room { char at[sizeof(gort_chan) + 64] ALIGNED(CACHE_LINE); } rooms[CHANS];
static int used;
void *quiet_alloc(size_t size) {
    return used < CHANS && size <= sizeof rooms[0] ? &rooms[used++] : NULL;
}
void quiet_free(void *at) { wrong("a channel is freed"); }

/* ---- scenes ---- */

static gort_chan *a, *b;
static long got;
static int finished, all;

/* The last one does not come back: a thread that ends one, and then finds nothing, is another
 * model's matter (poller.c, submit.c). */
static bool never(void *arg) { return false; }
static void finishes(void) {
    MUST(++finished <= all);
    if (finished == all) mc_wait(never, NULL);
}
static void computes(void) { mc_wait(never, NULL); }

static void sends(void) {
    long value = 1;
    MUST(gort_chan_send(a, &value) == 0);
    finishes();
}
static void receives(void) {
    MUST(gort_chan_recv(a, &got) == 0 && got == 1);
    finishes();
}
/* A round trip: who is made ready stands in the slot when the other one parks. */
static void asks(void) {
    long value = 1;
    MUST(gort_chan_send(a, &value) == 0);
    MUST(gort_chan_recv(b, &got) == 0 && got == 1);
    finishes();
}
static void answers(void) {
    long value = -1;
    MUST(gort_chan_recv(a, &value) == 0 && value == 1);
    MUST(gort_chan_send(b, &value) == 0);
    finishes();
}
/* Two are made ready, one behind the other: the slot is full. */
static void receives_b(void) {
    MUST(gort_chan_recv(b, &got) == 0 && got == 1);
    finishes();
}
static void sends_to_both(void) {
    long value = 1;
    MUST(gort_chan_send(a, &value) == 0);
    MUST(gort_chan_send(b, &value) == 0);
    finishes();
}
static void yields(void) {
    gort_yield();
    finishes();
}

static const struct Scene {
    const char *name;
    void (*runs)(void), (*next)(void); /* on the first P: one runs, the next is in the slot */
    void (*third)(void);               /* in the first P's ring */
    /* on the second P; NULL: it has none, and its thread looks for one */
    void (*elsewhere)(void);
    bool global; /* the next is in the global queue instead */
    bool large;  /* with the argument "all" only */
} scenes[] = {
    {"woken from elsewhere", receives, computes, NULL, sends, false, false},
    {"woken from elsewhere, a sender", sends, computes, NULL, receives, false, true},
    {"two are made ready", receives, receives_b, sends_to_both, computes, false, false},
    {"somebody steals", receives, sends, NULL, NULL, false, false},
    {"the global queue, somebody takes from it", yields, yields, NULL, NULL, true, false},
    {"the global queue, two yield", yields, yields, NULL, yields, true, false},
    {"a round trip, somebody steals", asks, answers, NULL, NULL, false, true},
};
static const struct Scene *scene;

static bool first_begins(void) { return begun & 1; }
static bool other_begins(void) { return begun & 8; }

static void model_reset(void) {
    whole_reset();
    memset(rooms, 0, sizeof rooms);
    used = 0;
    got = 0;
    finished = 0;
    void (*const does[GS])(void) = {scene->runs, scene->next, scene->third, scene->elsewhere};
    for (int i = all = 0; i < GS; i++) {
        add_g(i, does[i]);
        all += does[i] && does[i] != computes;
    }
    a = gort_chan_new(sizeof(long), 0);
    b = gort_chan_new(sizeof(long), 0);
    holds_p(0);
    holds_p(1);
    ms[0].nextg = &gs[0];
    if (scene->global) glist_push(&sched.global, &gs[1]);
    else all_ps[0].runnext = &gs[1];
    if (scene->third) runq_push(&all_ps[0], &gs[2]);
    if (scene->elsewhere) ms[1].nextg = &gs[3];
    for (int i = 0; i < MS; i++) add_m(i);
    /* saved by a plain store: who goes on too early finds the old one */
    for (int i = 0; i < GS; i++) mc_watch(&gs[i].sp);
    mc_advance(0, first_begins); /* the goroutine's first step */
    if (scene->elsewhere) mc_advance(1, other_begins);
}

static void model_end(void) {
    MUST(finished == all);
    MUST(sched.global.count == 0 && pending == NULL);
    for (int i = 0; i < used; i++) MUST(((gort_chan *)(void *)&rooms[i])->lock.word == 0);
}

static uint64_t model_hash(uint64_t h) {
    return mix(mix(MIX(whole_hash(h), rooms), (uint64_t)got), (uint64_t)finished);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        bool every = argc > 1 && strcmp(argv[1], "all") == 0;
        if (argc > 1 && !every ? (size_t)atoi(argv[1]) != i : scenes[i].large && !every) continue;
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
