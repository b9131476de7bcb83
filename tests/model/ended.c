/*
 * The end of a trace and of a profile: who is about to write announces itself and looks whether it
 * is still on; who ends it says so and waits for those who are at it (src/sched/trace.c,
 * src/inspect/trace_session.c, src/inspect/profile.c). Nobody writes once the end has returned.
 */
#include "model.h"

#include "runtime.h"
#include <inspect/profile.c>
#include <sched/trace.c>
#include <inspect/trace_session.c>

int own_fd_number(const OwnFd *own) { return 1; }
__typeof__(split) split; /* no compact stacks */
__typeof__(slots) slots;
Sched sched;
Settings settings;
__thread M *tls_m;
static TraceBuf buf;
static Profile profile;
static Sample sample;
static uint32_t over;

int64_t os_now(void) { return 0; }
int print_fd(int fd, const char *format, ...) { return 0; }
static bool is_free(void *busy) { return *(uint32_t *)busy == 0; }
void os_nap(int64_t ns) {
    mc_looks_at(&buf.busy);
    mc_looks_at(&profile.busy);
    mc_wait(is_free, load_rlx(&profile.state) ? &profile.busy : &buf.busy);
}
static void writes(void) {
    mc_point(MC_NOTHING, NULL, 0, 0, 0);
    MUST(!over);
}
long os_sys(long nr, long a, long b, long c, long d, long e, long f) { /* a chunk into the file */
    writes();
    return sizeof(TraceChunk);
}

static void traces(void) { next_chunk(&buf, NULL); }
static void ends_trace(void) {
    switch_off(0);
    over = 1;
}
static void samples(void) {
    if (!profile_enter(&profile)) return;
    writes();
    profile_leave(&profile);
}
static void ends_profile(void) {
    profile_end(&profile);
    over = 1;
}

static const struct Scene {
    const char *name;
    void (*writer)(void), (*ender)(void);
    uint32_t state;
} scenes[] = {
    {"the end of a trace", traces, ends_trace, PROFILE_IDLE},
    {"the end of a profile", samples, ends_profile, PROFILE_ON},
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(&buf, 0, offsetof(TraceBuf, chunk));
    buf.session = t.session = trace_on = 1;
    buf.used = 1;
    buf.at = buf.chunk.word;
    t.all = &buf;
    t.limit = UINT64_MAX;
    profile = (Profile){.state = scene->state, .at = &sample};
    over = 0;
    mc_spawn(scene->writer);
    mc_spawn(scene->ender);
}
static void model_end(void) { MUST(buf.busy == 0 && profile.busy == 0); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(h, buf.busy), profile.busy), profile.state);
    return mix(mix(mix(h, trace_on), over), mix(buf.used, buf.number));
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
