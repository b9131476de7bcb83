/*
 * Timers (src/sched/timer.c, src/sync/time.c, as they stand): started, stopped, reset and freed by
 * one or two threads while another one, a P's, fires what is due.
 *
 * What has to hold: a timer that was armed is either stopped (or reset) by somebody who was told
 * so, or its function is started, never both and never neither; once stop has said 1 nothing starts
 * any more; the object is given back once, after the last who knows it; once the program has
 * released its channel both are gone; a Timer on a stack is known to nobody once timer_del() has
 * returned; one that moves to another heap while it is deleted is in one of them or in none; the
 * heap stays a heap, and says when its first is due.
 *
 * The heap has four places, or one, and there is no memory for more: what finds none is chained.
 * Time: the threads of the program live at 0, what they arm is due at 5, and the P's thread fires
 * at 10, at any moment. That somebody is awake by then is poller.c's matter.
 */
#include "house.h"

#include <sync/time.c>
#include <sched/timer.c>

enum { HEAPS = 3, DUE = 5, LATER = 10, PLACES = 4 };
static TimerNode nodes[HEAPS][PLACES];
static TimerSlot slots_of[HEAPS][PLACES];

void *os_map(size_t size, bool stack) { return NULL; }
void os_unmap(void *at, size_t size) {}
bool runtime_running(void) { return true; }
void wake_for_timer(M *m, int64_t when) {}

/* A channel, as far as timers know it: its references, and who sends there. */
static gort_chan channel;
static int channels_freed, sent;
gort_chan *gort_chan_new(size_t size, size_t n) {
    channel = (gort_chan){.refs = 1};
    return &channel;
}
gort_chan *gort_chan_retain(gort_chan *c) {
    if (c == NULL) return NULL;
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    c->refs++;
    unlock(&c->lock);
    leave(m);
    return c;
}
void gort_chan_release(gort_chan *c) {
    if (c == NULL) return;
    M *m = enter();
    lock(&c->lock, RANK_PRIM);
    MUST(c->refs > 0 && channels_freed == 0);
    channels_freed = --c->refs == 0;
    Refs *unheard = chan_unheard(c);
    unlock(&c->lock);
    leave(m);
    if (unheard) timer_unheard(unheard);
}
int gort_chan_try_send(gort_chan *c, const void *value) {
    MUST(channels_freed == 0);
    sent++;
    return 0;
}

static struct Object { char at[sizeof(gort_timer)] ALIGNED(CACHE_LINE); } object;
static int made, freed;
void *quiet_alloc(size_t size) { return made++ == 0 && size <= sizeof object ? &object : NULL; }
void quiet_free(void *at) {
    memset(at, 0x55, sizeof object);
    freed++;
}

static const struct Scene {
    const char *name;
    void (*first)(void), (*second)(void), (*firing)(void);
    /* for_good: once stopped, nobody arms it again; full: the heap has one place */
    bool object, ticker, moving, for_good, full;
    enum { FUNCTION, AFTER, TICK, OWNED_TICK } kind; /* the last three have a channel */
} * scene;
static gort_timer *t;
static int started, told, armings, stopped; /* stopped: nothing may start any more */
static int fired[2];                        /* Timers on stacks */
static int deleted[2];

static void program(void *arg) {}
int go_start(M *m, const gort_attr *attr, gort_fn *fn, void *arg, const void *copy, size_t size,
             uintptr_t pc) {
    MUST(fn == program && arg == &started && !stopped);
    started++;
    return 0;
}

static void told_so(int was) {
    MUST(was == 0 || was == 1);
    told += was;
}
static void stops(void) {
    if (gort_timer_stop(t) == 0) return;
    told_so(1);
    stopped = scene->for_good;
}
static void resets(void) {
    armings++;
    told_so(gort_timer_reset(t, DUE));
}
/* To 20, which never comes: from then on nothing starts, also not for the arming before. */
static void puts_off(void) {
    armings++;
    told_so(gort_timer_reset(t, 20));
    stopped = 1;
}
static void stops_and_frees(void) {
    stops();
    gort_timer_free(t);
    t = NULL;
}
static void frees(void) {
    gort_timer *mine = t;
    t = NULL;
    gort_timer_free(mine);
}
/* The program's last reference: from then on nobody hears the timer. */
static gort_chan *ch;
static void releases(void) {
    gort_chan_release(ch);
    ch = NULL;
}
static void releases_both(void) {
    gort_chan_release(gort_chan_retain(ch));
    releases();
}
static void resets_and_stops(void) {
    resets();
    told_so(gort_timer_stop(t));
}

/* A deadline: armed, and deleted by the one it belongs to. */
static void on_time(M *m, void *arg, uint32_t seq) {
    MUST(seq == 7);
    fired[(int *)arg - fired]++;
}
static NOINLINE void waits(int i) {
    Timer mine = {.when = DUE, .fn = on_time, .arg = &fired[i], .seq = 7};
    M *m = enter();
    MUST(timer_add(m, &mine) == 0);
    deleted[i] = timer_del(&mine);
    leave(m);
}
static void waits_first(void) {
    waits(0);
    scribble();
}
static void waits_second(void) {
    waits(1);
    scribble();
}
static Timer moving;
static void deletes(void) {
    M *m = enter();
    deleted[0] = timer_del(&moving);
    leave(m);
}
static void moves(void) { timers_move(&ps[1].timers, &ps[0].timers); }

/* The P's thread: what run_timers() does. */
static void fires_at(M *m, TimerHeap *h, int64_t now) {
    timer_fn *fn;
    void *arg;
    uint32_t seq;
    while (timer_take(h, now, &fn, &arg, &seq)) fn(m, arg, seq);
}
static void fires(void) {
    for (int i = 0; i < HEAPS; i++) fires_at(getm(), &ps[i].timers, LATER);
}
static void fires_twice(void) {
    fires();
    fires();
}

static const struct Scene scenes[] = {
    {"stopped while it fires", stops, NULL, fires, .object = true, .for_good = true},
    {"two stop it", stops, stops, fires, .object = true, .for_good = true},
    {"reset while it fires", resets, NULL, fires_twice, .object = true},
    {"put off while it fires", puts_off, NULL, fires_twice, .object = true},
    {"reset by one, stopped by another", resets, stops, fires_twice, .object = true},
    {"reset by both", resets, resets, fires, .object = true},
    {"reset and stopped", resets_and_stops, NULL, fires_twice, .object = true},
    {"freed while it fires", frees, NULL, fires, .object = true},
    {"stopped and freed", stops_and_frees, NULL, fires_twice, .object = true, .for_good = true},
    {"a ticker stopped", stops, NULL, fires_twice, .object = true, .ticker = true,
     .for_good = true},
    {"a ticker freed", frees, NULL, fires_twice, .object = true, .ticker = true},
    {"its channel is released while it fires", releases, NULL, fires_twice, .kind = AFTER},
    {"one of two references is dropped, and it is freed", frees, NULL, releases_both,
     .kind = OWNED_TICK},
    {"a tick's channel is released while it fires", releases, NULL, fires_twice, .kind = TICK},
    {"its channel is released, and it is freed", releases, frees, fires, .kind = OWNED_TICK},
    {"a deadline", waits_first, NULL, fires, .kind = FUNCTION},
    {"two deadlines", waits_first, waits_second, fires, .kind = FUNCTION},
    {"deleted while it moves", deletes, moves, fires, .moving = true},
    {"two deadlines, one place", waits_first, waits_second, fires, .full = true},
    {"a place gets free", deletes, waits_second, fires, .moving = true, .full = true},
};

static void heap_reset(int i) {
    TimerHeap *h = &ps[i].timers;
    memset(nodes[i], 0, sizeof nodes[i]);
    memset(slots_of[i], 0, sizeof slots_of[i]);
    for (uint32_t k = 0; k < PLACES; k++) slots_of[i][k].place = k + 1;
    *h = (TimerHeap){.first = GORT_FOREVER,
                     .at = nodes[i],
                     .slots = slots_of[i],
                     .capacity = scene->full ? 1 : PLACES};
}

static void model_reset(void) {
    house_reset();
    memset(&object, 0, sizeof object);
    made = freed = started = told = armings = stopped = 0;
    memset(&channel, 0, sizeof channel);
    channels_freed = sent = 0;
    ch = NULL;
    memset(fired, 0, sizeof fired);
    memset(deleted, 0, sizeof deleted);
    garbage = NULL;
    t = NULL;
    tls_m = &ms[0];
    ms[0] = (M){.plain = true, .curg = &gs[0]};
    for (int i = 0; i < HEAPS; i++) sched.ps[i] = &ps[i];
    sched.procs = HEAPS;
    sched.running = 1;
    TimerHeap empty[HEAPS];
    for (int i = 0; i < HEAPS; i++) {
        heap_reset(i);
        empty[i] = ps[i].timers;
    }
    add_thread(scene->first, true);
    /* the world's hand has a P */
    if (scene->second) add_thread(scene->second, scene->second != moves);
    add_thread(scene->firing, false);
    for (int i = 0; i < HEAPS; i++) ps[i].timers = empty[i];
    tls_m = &ms[0];
    if (scene->object) {
        armings = 1;
        t = scene->ticker ? gort_ticker_new(DUE, program, &started)
                          : gort_timer_new(DUE, program, &started);
    }
    if (scene->kind == AFTER) ch = gort_after(DUE);
    else if (scene->kind) ch = gort_tick(DUE, scene->kind == OWNED_TICK ? &t : NULL);
    moving = (Timer){.when = DUE, .fn = on_time, .arg = &fired[0], .seq = 7};
    ms[0].locks = 1;
    if (scene->moving) timer_add(&ms[0], &moving);
    ms[0].locks = 0;
}

static void heap_is_right(TimerHeap *h) {
    MUST(h->lock.word == 0 && h->first == (h->count ? h->at[0].when : GORT_FOREVER));
    MUST(h->chain == NULL || h->count == h->capacity);
    for (Timer *c = h->chain; c; c = c->next)
        MUST(c->heap == h && h->at[0].when <= c->when &&
             (c->next == NULL || c->when <= c->next->when));
    for (uint32_t i = 0; i < h->count; i++) {
        MUST(h->slots[h->at[i].slot].place == i && h->slots[h->at[i].slot].timer->heap == h);
        MUST(i == 0 || h->at[(i - 1) / 4].when <= h->at[i].when);
    }
}

static void model_end(void) {
    for (int i = 0; i < HEAPS; i++) heap_is_right(&ps[i].timers);
    if (scene->kind) { /* nothing is left of it, and nobody has to come for that */
        tls_m = &ms[0];
        for (int i = 0; i < HEAPS; i++) MUST(ps[i].timers.count == 0);
        garbage_collect();
        MUST(channels_freed == 1 && freed == 1 && garbage == NULL);
        return;
    }
    if (!scene->object) {
        tls_m = &ms[0];
        ms[0].locks = 1;
        for (int i = 0; i < HEAPS; i++) fires_at(&ms[0], &ps[i].timers, LATER);
        MUST(fired[0] + deleted[0] == 1 &&
             fired[1] + deleted[1] == (scene->second == waits_second));
        return;
    }
    tls_m = &ms[0];
    ms[0].p = &ps[0];
    ps[0].m = &ms[0];
    ms[0].locks = 1;
    int before = started;
    /* what is still armed */
    for (int i = 0; i < HEAPS; i++) fires_at(&ms[0], &ps[i].timers, LATER);
    MUST(t != NULL || started == before);
    if (!scene->ticker && scene->first != frees)
        MUST(told + started + (int)ps[0].timers.count == armings);
    if (scene->ticker && told) MUST(ps[0].timers.count == 0);
    ms[0].locks = 0;
    ms[0].p = NULL;
    if (t) gort_timer_free(t);
    else garbage_collect();
    MUST(freed == 1 && garbage == NULL && ps[0].timers.count == 0 && ps[1].timers.count == 0);
}

static uint64_t model_hash(uint64_t h) {
    h = MIX(MIX(MIX(house_hash(h), object), nodes), slots_of);
    for (int i = 0; i < HEAPS; i++) h = MIX(h, ps[i].timers);
    h = mix(mix(mix(mix(h, WORD(t)), WORD(garbage)), (uint64_t)freed), (uint64_t)started);
    h = mix(mix(mix(h, (uint64_t)told), (uint64_t)armings), (uint64_t)stopped);
    h = mix(mix(mix(MIX(h, channel), WORD(ch)), (uint64_t)channels_freed), (uint64_t)sent);
    return MIX(MIX(MIX(h, fired), deleted), moving);
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
