/*
 * The end of a runtime and a thread that comes back from the kernel at that moment
 * (src/api/init.c's send_away, src/sched/syscall.c): it sees EXIT and does nothing but go, or it is
 * waited for. One that was left behind never goes on.
 */
#define MODEL_BARRIER 1
#include "model.h"

#include "runtime.h"
#ifdef NO_MEMBARRIER /* then an announced call ends like a blocking one */
static int no_membarrier(void) { return -ENOSYS; }
#define os_membarrier no_membarrier
#endif
#undef check
#define check(cond) ((void)0)

static uint32_t gone, went_on;
#include <sched/syscall.c>
#include <api/init.c>

Sched sched;
Settings settings;
bool retake_works, sim_on;
struct Process process = {.same = true};
bool forked_slow(void) { return false; }
uint32_t trace_on;
__thread M *tls_m;
static M ms[2];
static G g;
static int errno_place;

void note_wake(Note *n) {}
void trace_put(M *m, int kind, uint64_t id, int x) {}
void trace_put_resume(M *m, G *gp) {}
void fatal(const char *format, ...) { wrong(format); }
M *enter_slow(M *m) {
    store_rlx(&gone, 1);
    return m;
}
static P p;
P *idle_p_take(P *wanted) { return &p; }
void m_acquire_p(M *m, P *taken) { store_rlx(&went_on, 1); }
void global_put(G *gp) {}
void wake_after_submit(M *m) {}
M *switch_to_g0(M *m, G *gp, void (*commit)(M *, void *), void *arg, Lock *l) { return m; }

P *m_release_p(M *m) { return NULL; }
void handoff_p(M *m, P *given) {}
const char *unfinished(M *m) { return NULL; }
M *m_adopt(void) { wrong("a thread without an M"); }
M *enter_asked(M *m) { return m; }
void leave_slow(M *m) {}
int os_tgkill(int tid, int signo) { return 0; }
int64_t os_thread_cpu(int clock) { return -1; }
long os_thread_sleeps_in(int tid) { return -2; }
char os_thread_state(int tid) { return 'S'; }
void stack_jump_found(G *gp, uintptr_t sp) {}

static void comes_back(void) { block_end(&ms[0]); }
static void comes_back_plainly(void) {
    tls_m = &ms[0];
    gort_exit_syscall();
    store_rlx(&went_on, !gone);
}
static void ends(void) {
    int asked;
    send_away(&asked, false);
}

static const struct Scene {
    const char *name;
    void (*back)(void);
} scenes[] = {
    {"back from a blocking call", comes_back},
#ifndef NO_MEMBARRIER
    {"back from an announced call", comes_back_plainly},
#endif
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(ms, 0, sizeof ms);
    retake_works = true;
    g = (G){.status = G_SYSCALL, .m = &ms[0]};
    for (int i = 0; i < 2; i++) ms[i] = (M){.alive = 1, .errno_at = &errno_place, .plain = i == 1};
    ms[0].curg = &g;
    sched.all_ms = &ms[0];
    sched.in_syscall = 1;
    gone = went_on = 0;
    mc_spawn(scene->back);
    mc_spawn(ends);
}
static void model_end(void) { MUST(!(ms[0].behind && went_on)); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(mix(h, ms[0].attn), g.status), gone), went_on);
    return mix(mix(h, WORD(ms[0].behind)), ms[0].locks);
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
