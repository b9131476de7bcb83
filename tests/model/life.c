/*
 * A number that is closed while a write that has moved a part goes on with it (src/hookio.c's becomes_known, src/iowait.c; src/hook/fd.c's close, src/hook/hints.h):
 * the rest goes to the same file, or nowhere. Under libgort-hook.so: a close that finds the number not `used` is a bare system call, which waits for nobody.
 *
 * The kernel's side is a word: which file the number is.
 *
 * The close begins when the first part has been moved. A write that begins in the middle of a close, behind its new life and before the kernel's
 * close, is not caught: with -DGAP, where that may be, its rest is found in the number's next file.
 */
#define MODEL_RESUMES 1
#define MODEL_AFTER 0
#define GORT_NO_PROBES 1
#include "model.h"
#define __atomic_fetch_add(at, n, order) ({ uint64_t was_ = add_seq(at, n) - (n); was_; }) /* io.h's and iowait.c's own */

#include "runtime.h"
#include "hook/inside.h"
#define here() ((M *)NULL)
#undef runner
#define runner(name) ((M *)NULL)
#undef libc
#define libc(name) libc_##name
#define close hook_close
static int libc_close(int fd);
static int libc_dup2(int fd, int to) { return -1; }
static int libc_dup3(int fd, int to, int flags) { return -1; }
static int libc_dup(int fd) { return -1; }
static int libc_fcntl(int fd, int command, ...) { return -1; }
#include <hook/fd.c>
#undef PAUSE_FIRST
#undef PAUSE_MOST
#include <hookio.c>
#undef sys
#include <iowait.c>

Sched sched;
Settings settings;
struct Process process = {1};
bool forked_slow(void) { return false; }
Hint fd_hints[KINDS];
DescNote *desc_notes = (DescNote *)(void *)fd_hints;
Known known = {.tls = NO_TLS};
Real real;
__thread M *tls_m;
enum { NUMBER = 3, THREADS = 3 };
static M ms[THREADS];
static G gs[THREADS];
static int errnos[THREADS];
static Desc desc;
static uint32_t file, first; /* the number's, and where the first part went; 0: it has not yet been written */

struct Split split;
UNUSED_HERE(desc_register);
UNUSED_HERE(desc_trust_slow);
UNUSED_HERE(desc_wake_next);
UNUSED_HERE(finish_commit);
UNUSED_HERE(os_sys);
UNUSED_HERE(park_begin);
UNUSED_HERE(park_timed);
UNUSED_HERE(ready);
UNUSED_HERE(ready_list);
UNUSED_HERE(split_resume);
UNUSED_HERE(switch_from_catch);
UNUSED_HERE(try_sendmsg);
UNUSED_HERE(waiter_link_behind);
UNUSED_HERE(waiter_unlink);
void fatal(const char *format, ...) { wrong(format); }
M *m_adopt(void) { wrong("a thread without an M"); }
M *enter_asked(M *m) { return m; }
void leave_slow(M *m) {}
Desc *desc_of(int fd) { return &desc; }
int64_t os_now(void) { return 0; }
long failed(long r) { return -1; }
static int may_close(void) { return CLOSE_NOW; }
static const HookCore the_core = {.may_close = may_close};
const HookCore *core = &the_core;

/* The kernel's: a write, and a close after which the number is another file. */
long try_writev(Call *c) {
    MUST(load_rlx(&file) == first);
    return 1;
}
static int libc_close(int fd) {
    xchg_seq(&file, 2);
    return 0;
}

/* close.c's steps. */
static bool none_inside(void *arg) { return (desc.state & DESC_REFS) == 0; }
int gort_close(int fd) {
    add_seq(&desc.state, DESC_SEQ + DESC_CLOSING);
    mc_looks_at(&desc.state);
    mc_wait(none_inside, NULL);
    desc_note_end(fd);
    add_seq(&desc.state, DESC_SEQ - DESC_CLOSING);
    return libc_close(fd);
}

/* ---- the threads ---- */

static char bytes[2];
static void writes(void) { /* stream.c: two bytes, of which the first call takes one */
    struct iovec iov = {bytes, 2};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    HookMove v = {.fd = NUMBER, .msg = &msg, .done = 1, .flags = -1, .deadline = GORT_FOREVER, .life = life_of(NUMBER)};
    xchg_seq(&first, load_rlx(&file));
    hook_move(&v);
}
static bool has_begun(void *arg) { return first != 0; }
static void closes(void) {
#ifndef GAP
    mc_looks_at(&first);
    mc_wait(has_begun, NULL);
#endif
    hook_close(NUMBER);
}
static void begins_to_wait(void) { desc_note(NUMBER); } /* another call on the number is about to sleep */

static const struct Scene {
    const char *name;
    void (*third)(void);
} scenes[] = {
    {"closed while a write goes on", NULL},
    {"likewise, and another call makes the number known", begins_to_wait},
};
static const struct Scene *scene;

static void model_resumes(int i) { tls_m = &ms[i]; }
static void model_reset(void) {
    memset(&fd_hints[NUMBER], 0, sizeof fd_hints[NUMBER]);
    memset(&desc, 0, sizeof desc);
    for (int i = 0; i < THREADS; i++) {
        gs[i] = (G){.flags = GF_THREAD};
        ms[i] = (M){.alive = 1, .plain = true, .curg = &gs[i], .errno_at = &errnos[i]};
    }
    file = 1;
    first = 0;
    mc_spawn(writes);
    mc_spawn(closes);
    if (scene->third) mc_spawn(scene->third);
}
static void model_end(void) { MUST((desc.state & (DESC_REFS | DESC_CLOSING)) == 0 && ms[0].locks == 0); }
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(MIX(mix(h, desc.state), fd_hints[NUMBER]), file), first);
    return mix(h, ms[0].locks);
}
int main(void) {
    for (size_t i = 0; i < count_of(scenes); i++) {
        scene = &scenes[i];
        int status = model_main(scene->name);
        if (status) return status;
    }
    return 0;
}
