/*
 * The mutex (src/sync/mutex.c, src/sync/mutex.h, src/sync/sema.c, as they stand, over
 * src/sched/sched.c): how it is locked, slept for, woken for, handed over and freed, in every order
 * of the steps, with the unlock that is a plain store.
 *
 * What has to hold: one owner at a time; everybody gets it in the end, which is wrong as soon as
 * the mark of a sleeper is wiped out; nobody is left in the table; and whoever has it last may
 * destroy it: nothing is read or written there after its unlock.
 *
 * The count of careful unlocks is one or two here (SLOW_UNLOCKS), so a mutex goes from plain to
 * careful and back within a scene. membarrier makes the stores of all threads arrive (model.h).
 * Time is what the clock is asked for: in the scene of the starving, a waiter finds at any moment
 * that it has waited too long.
 *
 * Not modelled: deadlines (their claim is chan.c's matter, as it is the same), signals between the
 * steps of a thread: the handler lets a thread go on that is about to free a mutex, so they are as
 * if they came later.
 */
#ifndef SLOW_UNLOCKS
#define SLOW_UNLOCKS 1u
#endif
#define MODEL_BARRIER 1
#include "house.h"

bool retake_works = true;
void sim_call(void) {}
int timer_add(M *m, Timer *t) { wrong("a timer"); }
bool timer_del(Timer *t) { wrong("a timer"); }

/* Who waits for marks to go does not spin here. */
static bool no_marks(void *arg) {
    for (int i = 0; i < mc_count; i++)
        if (ms[i].unlocking != NULL && ms[i].unlocking != (void *)1) return false;
    return true;
}
#define arch_pause() mc_wait(no_marks, NULL)

static int64_t clock_reads(void);
#define os_now clock_reads
#undef random_next
#include <sync/mutex.c>
#include <sync/sema.c>
#undef os_now

/* ---- scenes ---- */

static const struct Scene {
    const char *name;
    void (*bodies[3])(void);
    bool threads, spare, spins, late, starts_slow;
} * scene;

static struct {
    gort_mutex mu;
    int left;
} it;
static int owner, entered;
static bool destroyed;
#define NONSENSE 0xeeeeeeeeu

static int64_t clock_reads(void) { return (scene->late && mc_pick(2) ? 20 : 10) * GORT_MS; }

static void has_it(void) {
    MUST(owner == 0 && !destroyed);
    owner = 1;
    entered++;
    mc_after(&owner); /* others may come by */
    MUST(owner == 1);
    owner = 0;
    bool last = --it.left == 0;
    gort_mutex_unlock(&it.mu);
    if (last) {
        destroyed = true;
        it.mu.state_ = NONSENSE;
    }
    scribble();
}
static void once(void) {
    gort_mutex_lock(&it.mu);
    has_it();
}
static void twice(void) {
    once();
    once();
}
static void tries(void) {
    /* it was not free: like the others */
    if (gort_mutex_try_lock(&it.mu) != 0) gort_mutex_lock(&it.mu);
    has_it();
}

static const struct Scene scenes[] = {
    {"two, twice each", {twice, twice, NULL}, 0, 0, 0, 0, 0},
    {"three, and it is slow already", {once, once, once}, 0, 0, 0, 0, 1},
#ifdef MORE
    {"three", {once, once, once}, 0, 0, 0, 0, 0},
    {"one of three starves", {once, once, once}, 0, 0, 0, 1, 1},
    {"slow already, one of them twice", {twice, once, once}, 0, 0, 0, 0, 1},
#endif
    {"one tries", {tries, twice, NULL}, 0, 0, 0, 0, 0},
    {"two threads", {twice, once, NULL}, 1, 0, 0, 0, 0},
    {"one spins", {twice, once, NULL}, 0, 0, 1, 0, 0},
    {"one runs elsewhere", {once, twice, NULL}, 0, 1, 0, 0, 0},
    {"one starves", {twice, once, NULL}, 0, 0, 0, 1, 0},
};

static int times(void (*body)(void)) { return body == twice ? 2 : body == NULL ? 0 : 1; }

static void model_reset(void) {
    house_reset();
    memset(&it, 0, sizeof it);
    memset(sema_table, 0, sizeof sema_table);
    owner = entered = 0;
    destroyed = false;
    if (scene->starts_slow) it.mu.state_ = SLOW_UNLOCKS * SLOW_ONE;
    sched.procs = scene->spins ? MS : 1;
    for (int i = 0; i < 3 && scene->bodies[i]; i++) {
        if (scene->threads && i < 2) add_thread(scene->bodies[i], true);
        else add_goroutine(scene->bodies[i]);
        it.left += times(scene->bodies[i]);
    }
    if (scene->spare) add_spare();
    sched.all_ms = &ms[0];
    for (int i = 0; i + 1 < mc_count; i++) ms[i].all = &ms[i + 1];
    for (int i = 0; i < mc_count; i++) ms[i].unlocking = NULL;
#ifndef CAS_ONLY
    slow_first = plain_works = true;
#endif
}

static void model_end(void) {
    int all = times(scene->bodies[0]) + times(scene->bodies[1]) + times(scene->bodies[2]);
    MUST(entered == all && it.left == 0 && destroyed);
    MUST(it.mu.state_ == NONSENSE); /* nobody touched it afterwards */
    MUST(sema_bucket(&it.mu)->root == NULL && sema_bucket(&it.mu)->lock.word == 0);
}

static uint64_t model_hash(uint64_t h) {
    h = MIX(MIX(house_hash(h), it), *sema_bucket(&it.mu));
    for (int i = 0; i < mc_count; i++) h = mix(h, WORD(ms[i].unlocking));
    return mix(mix(mix(h, (uint64_t)owner), (uint64_t)entered), destroyed);
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
