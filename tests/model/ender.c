/*
 * A context in use and the waits that it ends (src/sched/ender.[ch]). A goroutine waits twice. The
 * first wait may be ended by its timer, which is armed before the commit is done with the ender, so
 * that the second wait may begin while that commit still runs; the context may be cancelled at any
 * moment. Each wait is ended once, never before its stack is left; none is missed.
 */
#include "model.h"

#include "runtime.h"
#include <sched/ender.c>

Sched sched;
Settings settings;
__thread M *tls_m;
int64_t os_now(void) { return 0; }
NOINLINE M *enter_asked(M *m) { return m; }
NOINLINE void leave_slow(M *m) {}
NOINLINE M *m_adopt(void) { return NULL; }
NOINLINE void fork_gate_wait(M *m) {}
void os_nap(int64_t ns) {}
int hint_passed(int64_t deadline) { return -ETIMEDOUT; }

static Ender ender;
static G g;
static int32_t cause;
static uint32_t tickets[2], left[2], ended[2]; /* of the two waits */

static bool is_set(void *word) { return *(uint32_t *)word != 0; }
static void await(uint32_t *word) {
    mc_looks_at(word);
    mc_wait(is_set, word);
}

static void ends(uint32_t ticket) {
    int i = ticket == tickets[1] && tickets[1] != 0;
    MUST(ticket == tickets[i]);
    MUST(left[i]); /* not before its stack is left */
    MUST(xchg_seq(&ended[i], 1) == 0);
}

static void waits(void) {
    for (int i = 0; i < 2; i++) {
        tickets[i] = wait_begin(&g);
        ender_arm(&ender, tickets[i], i == 0);
        store_rel(&left[i], 1);
        await(&ended[i]);
    }
}

static void commits(int i) {
    await(&left[i]);
    if (!ender_parked(&ender, tickets[i]) && wait_claim(&g, tickets[i])) ends(tickets[i]);
}
static void commits_first(void) { commits(0); }
static void commits_second(void) { commits(1); }

static void times_out(void) {
    await(&left[0]);
    if (wait_claim(&g, tickets[0])) ends(tickets[0]);
}

static void cancels(void) {
    GList list = {0};
    store_seq(&cause, -ECANCELED);
    ender_strike(&ender, &list);
    if (list.count) ends(g.ticket & ~(uint32_t)1);
}

static bool timer;
static void model_reset(void) {
    g = (G){0};
    cause = 0;
    memset(tickets, 0, sizeof tickets);
    memset(left, 0, sizeof left);
    memset(ended, 0, sizeof ended);
    ender = (Ender){.cause = &cause, .gp = &g};
    mc_spawn(waits);
    mc_spawn(commits_first);
    mc_spawn(commits_second);
    mc_spawn(cancels);
    if (timer) mc_spawn(times_out);
}
static void model_end(void) { MUST(ended[0] && ended[1]); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(h, ender.wait), (uint32_t)cause), g.ticket);
    for (int i = 0; i < 2; i++) h = mix(mix(mix(h, tickets[i]), left[i]), ended[i]);
    return h;
}
int main(void) {
    for (int i = 0; i < 2; i++) {
        timer = i;
        int status = model_main(timer ? "a context in use, and a deadline" : "a context in use");
        if (status) return status;
    }
    return 0;
}
