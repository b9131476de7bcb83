/*
 * A fork beside sections of other threads (src/sched/forkgate.c), while no runtime runs. None is in
 * a section when the process is copied, and none waits for ever afterwards:
 *
 *   - a section that begins, one that goes on after a sleep, and one that is over;
 *   - two threads that fork at once;
 *   - a thread whose record comes into the list meanwhile.
 *
 * enter_asked() stands here for preempt.c's, which comes to fork_gate_wait() in the same way. With
 * NO_MEMBARRIER a pause stands in for the barrier, in which what was stored arrives.
 */
#define MODEL_FORKS 1
#define MODEL_BARRIER 1
#define MODEL_RESUMES 1
#define MODEL_AFTER 0 /* the plain words that others look at are named by mc_watch() */
#include "model.h"

#include "runtime.h"
#ifdef NO_MEMBARRIER
static int no_membarrier(void) { return -ENOSYS; }
#define os_membarrier no_membarrier
#endif
#include <sched/forkgate.c>

/* ---- the rest of the house, as far as it is called ---- */

Sched sched;
Upstairs upstairs;
__thread M *tls_m;
static M ms[3];
static typeof(mine) kept[3]; /* of each thread */
static int now;              /* the thread that runs */
static uint32_t inside;      /* sections with a lock */

M *m_adopt(void) { wrong("a thread without an M"); }
M *enter_asked(M *m) {
    if (m->locks == 1 && (load_rlx(&m->attn) & ATTN_FORK)) fork_gate_wait(m);
    return m;
}
void leave_slow(M *m) {}
void g_fork(bool before) {}
void m_fork(bool before) {}
void span_fork(bool before) {}
void m_forget_others(void) {}
void fork_wants_libc(M *self) {}
void fork_had_libc(void) {}
void bodies_forget(void) {}
void body_forked(char *was) {}
void fork_renumber(void) {}
void fork_watch(void) {}
void os_nap(int64_t ns) {
    mc_point(ns >= GORT_MS ? MC_FENCE : MC_NOTHING, NULL, 0, 0, 0);
    if (ns >= GORT_MS) mc_others_arrive();
}

/* ---- the threads ---- */

static void works(M *m) {
    store_rlx(&inside, 1);
    store_rlx(&inside, 0);
    leave(m);
}
static void begins(void) { works(enter()); }
static void begins_twice(void) {
    begins();
    begins();
}
static void wakes(void) {
    M *m = enter();
    store_rlx(&m->rest, m->locks);
    section_resumes(m);
    works(m);
}
static void joins(void) { /* as m_record */
    M *m = &ms[0], *head = load_rlx(&sched.all_ms);
    do m->all = head;
    while (!cas_rel(&sched.all_ms, &head, m));
    fork_gate_joined(m);
    store_rel(&m->alive, 1);
    begins();
}

static void forks_here(void) {
    before_fork();
    MUST(mine.rests && load_rlx(&inside) == 0);
    MUST(load_rlx(&inside) == 0);
    after_fork_in_parent();
}

static const struct Scene {
    const char *name;
    void (*section)(void);
    int forkers;
} scenes[] = {
    {"a section begins", begins, 1},
    {"two sections, one after the other", begins_twice, 1},
    {"a section goes on after a sleep", wakes, 1},
    {"a thread comes into the list", joins, 1},
    {"two threads fork", begins, 2},
};
static const struct Scene *scene;

static void model_resumes(int i) {
    kept[now] = mine;
    mine = kept[now = i];
    tls_m = &ms[i];
}
static void model_reset(void) {
    memset(&sched, 0, offsetof(Sched, ps));
    memset(kept, 0, sizeof kept);
    mine = kept[now = 0];
    for (int i = 0; i < 3; i++)
        ms[i] = (M){.alive = 1, .plain = true, .all = i ? &ms[i - 1] : NULL};
    if (scene->section == joins) ms[0].alive = 0, ms[1].all = NULL;
    sched.all_ms = &ms[2];
    forks = inside = 0;
    for (int i = 0; i < 3; i++) mc_watch(&ms[i].locks);
    mc_spawn(scene->section);
    for (int i = 0; i < scene->forkers; i++) mc_spawn(forks_here);
}
static void model_end(void) {
    MUST(forks == 0 && inside == 0);
    for (int i = 0; i < 3; i++) MUST(ms[i].locks == 0 && ms[i].rest <= 1);
}
static uint64_t model_hash(uint64_t h) {
    for (int i = 0; i < 3; i++)
        h = mix(mix(mix(mix(h, ms[i].attn), ms[i].locks), ms[i].rest), ms[i].alive);
    h = mix(mix(mix(mix(h, forks), inside), (uint64_t)now), WORD(sched.all_ms));
    return MIX(MIX(h, kept), mine);
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
