/*
 * The end of a runtime and the sections of threads that it does not stop: plain ones, and those
 * inside a blocking call (src/api/init.c's stop, await_sections and take_back; src/sched/sched.c,
 * src/sched/go.c, src/sched/preempt.c's leave_slow). A section sees that the runtime has ended and
 * does nothing for it, or the end waits for it:
 *
 *   - none submits or takes a record when the first wait for sections is over;
 *   - none knows a goroutine that was taken back.
 *
 * On the way send_away() has a membarrier of its own. That await_sections() does not live on that
 * one is shown by the scenes without it. With NO_MEMBARRIER a pause stands in for either, in which
 * what was stored arrives.
 */
#define MODEL_BARRIER 1
#define MODEL_RESUMES 1
#define MODEL_AFTER 0 /* the plain words that others look at are named by mc_watch() */
#define GORT_NO_PROBES 1
#include "model.h"

#include "runtime.h"
#ifdef NO_MEMBARRIER
static int no_membarrier(void) { return -ENOSYS; }
#define os_membarrier no_membarrier
#endif
#define get_stack get_stack_early
#define forget forget_one
#include <sched/go.c>
#undef get_stack
#undef forget
#include <sched/preempt.h>
#define preempt_uninstall names_on_signal /* which nothing here sends */
#include <sched/preempt.c>
#undef preempt_uninstall
#include <sched/sched.c>
#include <sched/ender.c>
#define left left_over
#include <api/init.c>
#undef left
#include "bodies.h"

/* ---- the rest of the house, as far as it is called ---- */

Sched sched;
Settings settings = {.preempt_signal = SIGURG};
bool sim_on;
struct Process process = {.same = true};
bool forked_slow(void) { return false; }
void vfork_stops(M *m) {}
uint32_t trace_on;
struct Split split;
__thread M *tls_m;
static M ms[2];
static G gs[3];
static P p;
static int errnos[2];

Upstairs upstairs;
void ctx_use_ends(G *gp) { wrong("no context is used here"); }
void ctx_after_run(void *arg) {}
void ctx_after_abandon(void *arg) { wrong("nothing waits for a context here"); }
void fatal(const char *format, ...) { wrong(format); }
void trace_put(M *m, int kind, uint64_t g, int x) {}
void trace_put_ready(M *m, G *gp) {}
void trace_put_create(M *m, G *gp) {}
M *m_adopt(void) { wrong("a thread without an M"); }
M *sim_point(M *m) { return m; }
void sim_waited(int64_t deadline) {}
void sysmon_stop(void) {}
void maker_stop(void) {}
void preempt_uninstall(bool awaited) {}
void netpoll_break(void) {}
void netpoll_stop(void) {}
void faults_uninstall(void) {}
void house_release_all(void) {}
void runq_drain(P *of, GList *list) {}
void timers_clear(TimerHeap *h) {}
void g_flush(P *of) {}
void stack_flush(P *of) {}
void compact_flush(P *of) {}
void alloc_flush(P *of) {}
void note_wake(Note *n) {}
int os_tgkill(int tid, int signo) { return 0; }
int64_t os_thread_cpu(int clock) { return -1; }
long os_thread_sleeps_in(int tid) { return -2; }
char os_thread_state(int tid) { return 'S'; }
void (*os_wake_refused)(void);
void os_nap(int64_t ns) {
    mc_point(ns >= GORT_MS ? MC_FENCE : MC_NOTHING, NULL, 0, 0, 0);
    if (ns >= GORT_MS) mc_others_arrive();
}

/* What this code names and never comes to here. */
int hint_passed(int64_t deadline) { return -ETIMEDOUT; }
int hint_no_runtime(const char *call) { return -ENOTCONN; }
UNUSED_HERE(acquire_p_or_queue);
UNUSED_HERE(chan_abandon);
UNUSED_HERE(child_ends);
UNUSED_HERE(compact_credit_give);
UNUSED_HERE(copy_name);
UNUSED_HERE(compact_credit_take);
UNUSED_HERE(compact_get);
UNUSED_HERE(compact_put);
UNUSED_HERE(global_get_locked);
UNUSED_HERE(global_join_locked);
UNUSED_HERE(global_spill);
UNUSED_HERE(parcel_alloc);
UNUSED_HERE(parcel_free);
UNUSED_HERE(runq_overflow);
UNUSED_HERE(runq_put_first);
UNUSED_HERE(slots);
UNUSED_HERE(split_release);
UNUSED_HERE(split_resume);
UNUSED_HERE(split_starts);
UNUSED_HERE(stack_credit_return);
UNUSED_HERE(stack_custom);
UNUSED_HERE(stack_custom_free);
UNUSED_HERE(stack_get);
UNUSED_HERE(stack_put);
UNUSED_HERE(trace_put_block);
UNUSED_HERE(trace_put_start);
UNUSED_HERE(global_put_list_head);
UNUSED_HERE(ctx_after_abandon);
UNUSED_HERE(ctx_after_run);
UNUSED_HERE(group_member_abandon);
UNUSED_HERE(group_member_run);
UNUSED_HERE(warn_once);
UNUSED_HERE(wg_member_abandon);
UNUSED_HERE(wg_member_run);
UNUSED_HERE(wakep);
UNUSED_HERE(work_waits);

/* What a section may do only while the runtime has not ended: step 5 of init.c. */
static uint32_t over, submitted;
void world_answer_requests(M *m) { store_rlx(&over, 1); }
static void still_there(void) { MUST(!load_rlx(&over)); }
G *g_alloc_slow(M *m) {
    still_there();
    return &gs[2];
}
void g_free_slow(M *m, G *gp) {}
bool stack_credit_fetch(M *m) { return true; }
void global_put(G *gp) {
    still_there();
    submitted++;
}
void global_put_list(GList *list) { global_put(glist_pop(list)); }
uint64_t g_next_id_slow(M *m) { return 3; }
void wake_after_submit(M *m) { still_there(); }

/* An object that outlives the runtime, on which a goroutine waits. */
static Lock object;
static Sleeper sleeper;
static void abandons(Sleeper *w) {
    lock(&object, RANK_PRIM);
    w->queued = false;
    unlock(&object);
}
static G *off_the_queue(void) {
    lock(&object, RANK_PRIM);
    G *gp = sleeper.queued ? sleeper.gp : NULL;
    sleeper.queued = false;
    unlock(&object);
    return gp;
}
void each_g(void (*fn)(G *gp, void *arg), void *arg) {
    for (int i = 0; i < 2; i++)
        if (gs[i].id) fn(&gs[i], arg);
}

/* ---- the sections ---- */

static void body(void *arg) {}
static void starts(void) {
    M *m = enter();
    go_start(m, NULL, body, NULL, NULL, 0, 0);
    leave(m);
}
static void makes_ready_here(M *m) {
    G *gp = off_the_queue();
    if (gp) ready(m, gp);
}
static void makes_ready(void) {
    M *m = enter();
    makes_ready_here(m);
    leave(m);
}
static void makes_list_ready(void) {
    M *m = enter();
    GList list = {0};
    G *gp = off_the_queue();
    if (gp) glist_push(&list, gp);
    ready_list(m, &list);
    leave(m);
}
static void nests(void) {
    M *m = enter();
    G *gp = off_the_queue();
    leave(enter());
    if (gp) ready(m, gp);
    leave(m);
}
static void slept(void) { /* it is woken as soon as it sleeps */
    M *m = enter();
    m = park(m, NULL, WAIT_SEMA);
    makes_ready_here(m);
    leave(m);
}
static void slept_and_starts(void) {
    M *m = enter();
    m = park(m, NULL, WAIT_SEMA);
    go_start(m, NULL, body, NULL, NULL, 0, 0);
    leave(m);
}

/* main_goroutine, and then the one who waits for it. */
static void ends(void) {
    M *m = enter();
    store_seq(&sched.running, 0);
    stop(m);
    leave(m);
}

/* With nobody to send away. */
static void ends_alone(void) {
    M *m = enter();
    store_seq(&sched.running, 0);
    await_sections(m);
    world_answer_requests(m);
    take_back(m);
    leave(m);
}

static const struct Scene {
    const char *name;
    void (*section)(void);
    void (*end)(void);
    bool blocking; /* of a goroutine inside gort_blocking */
} scenes[] = {
    {"a thread starts a goroutine", starts, ends, false},
    {"a thread makes one ready", makes_ready, ends, false},
    {"a thread makes some ready", makes_list_ready, ends, false},
    {"a section inside of another", nests, ends, false},
    {"a thread that has slept makes one ready", slept, ends, false},
    {"a thread that has slept starts a goroutine", slept_and_starts, ends, false},
    {"a thread starts a goroutine, await_sections alone", starts, ends_alone, false},
    {"a thread that has slept starts a goroutine, await_sections alone", slept_and_starts,
     ends_alone, false},
    {"inside a blocking call one is started", starts, ends, true},
    {"inside a blocking call one is made ready", makes_ready, ends, true},
};
static const struct Scene *scene;
static Stack stack; /* of the goroutine inside gort_blocking */

static void model_resumes(int i) { tls_m = &ms[i]; }

static void model_reset(void) {
    memset(&sched, 0, offsetof(Sched, ps));
    memset(gs, 0, sizeof gs);
    for (int i = 0; i < 2; i++)
        ms[i] = (M){.alive = 1, .plain = true, .errno_at = &errnos[i], .tid = i};
    gs[0] = (G){.id = 2, .status = G_WAITING};
    gs[1] = (G){.flags = GF_THREAD,
                .futex = scene->section == slept || scene->section == slept_and_starts};
    ms[0].curg = &gs[1];
    if (scene->blocking) {
        gs[1] = (G){.id = 1, .status = G_SYSCALL, .m = &ms[0], .stack = &stack};
        stack = (Stack){0};
        ms[0].plain = false;
        ms[0].locks = ms[0].rest = 1;
    }
    ms[0].all = &ms[1];
    sched.all_ms = &ms[0];
    p = (P){0};
    sched.ps[0] = &p;
    sched.procs = sched.running = 1;
    over = submitted = 0;
    object.word = 0;
    sleeper = (Sleeper){.queued = true, .gp = &gs[0], .abandon = abandons};
    gs[0].waiting = (char *)&sleeper + 1;
    mc_watch(&ms[0].locks);
    mc_spawn(scene->section);
    mc_spawn(scene->end);
}
static void model_end(void) {
    MUST(submitted <= 1 && !sleeper.queued);
    MUST(ms[0].locks == scene->blocking && !(ms[0].attn & ATTN_SECTION));
    MUST(gs[0].status == G_DEAD);
}
static uint64_t model_hash(uint64_t h) {
    for (int i = 0; i < 2; i++) h = mix(mix(mix(h, ms[i].attn), ms[i].locks), ms[i].rest);
    for (int i = 0; i < 3; i++) h = mix(mix(mix(h, gs[i].status), gs[i].futex), gs[i].flags);
    h = mix(mix(mix(mix(h, sched.running), over), submitted), object.word);
    return mix(mix(mix(h, sleeper.queued), WORD(ms[0].behind)), sched.procs);
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
