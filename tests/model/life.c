/*
 * A number that is closed while a call that has moved a part goes on with it: the rest goes to the
 * same file, or nowhere. The real code of both sides: hookio.c's move, wait.c's Calls, close.c,
 * hook/close_dup.c's close and dup2, hook/fdhints.h. Under libgort-hook.so: a close that finds the
 * number not `used` is a bare system call, which waits for nobody.
 *
 * The kernel's side is a word: which file the number is. With the close it is another's at once,
 * and that one does not know of the hook. The close may begin at any moment, and so may the calls:
 * before it, in its middle (behind its new life, before the kernel's close; behind that, before it
 * says so), after it.
 *
 * That the number is being closed may last longer than a call waits for it: life_awaited gives up
 * or not.
 */
#define MODEL_RESUMES 1
#define MODEL_AFTER 0
#define GORT_NO_PROBES 1
#include "model.h"
/* fdcall.h's and wait.c's own */
#define __atomic_fetch_add(at, n, order)      \
    ({                                        \
        uint64_t was_ = add_seq(at, n) - (n); \
        was_;                                 \
    })

#include "runtime.h"
#include "hook/hook_internal.h"
#define here() ((M *)NULL)
#undef runner
#define runner(name) ((M *)NULL)
#undef libc
#define libc(name) libc_##name
#undef sys
#define sys(nr, a, b, c, d, e, f) \
    os_sys((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define close hook_close
long os_sys(long nr, long a, long b, long c, long d, long e, long f);
static int libc_close(int fd);
static int libc_dup2(int fd, int to) { return -1; }
static int libc_dup3(int fd, int to, int flags) { return -1; }
static int libc_dup(int fd) { return -1; }
static int libc_fcntl(int fd, int command, ...) { return -1; }
#include <hook/close_dup.c>
#include <api/hookio.c>
#undef sys
#include <io/wait.c>
#undef close
#include <io/close.c>

Sched sched;
Settings settings;
struct Process process = {.same = true};
bool forked_slow(void) { return false; }
Hint fd_hints[FD_HINTS];
DescNote *desc_notes = (DescNote *)(void *)fd_hints;
Known known = {.tls = NO_TLS};
Real real;
__thread M *tls_m;
enum { NUMBER = 3, THREADS = 3 };
static M ms[THREADS];
static G gs[THREADS];
static int errnos[THREADS];
static Desc desc;
/* the number's, and where the first part went; 0: it has not yet been written */
static uint32_t file, first;
static char bytes[2];

struct Split split;
UNUSED_HERE(desc_register);
UNUSED_HERE(desc_trust_slow);
UNUSED_HERE(desc_wake_next);
UNUSED_HERE(finish_commit);
UNUSED_HERE(gort_enter_syscall);
UNUSED_HERE(gort_exit_syscall);
UNUSED_HERE(gort_sleep);
UNUSED_HERE(kpoll_del);
UNUSED_HERE(park_begin);
UNUSED_HERE(park_timed);
UNUSED_HERE(ready);
UNUSED_HERE(ready_list);
UNUSED_HERE(sleeper_add);
UNUSED_HERE(split_resume);
UNUSED_HERE(switch_from_catch);
UNUSED_HERE(try_accept);
UNUSED_HERE(try_sendmsg);
UNUSED_HERE(uring_submit);
UNUSED_HERE(uring_withdraw);
UNUSED_HERE(waiter_link_behind);
UNUSED_HERE(waiter_unlink);
UNUSED_HERE(wait_is_over);
uint32_t uring_standing;
void fatal(const char *format, ...) { wrong(format); }
M *m_adopt(void) { wrong("a thread without an M"); }
M *enter_asked(M *m) { return m; }
void leave_slow(M *m) {}
Desc *desc_of(int fd) { return &desc; }
void desc_wake_all(Desc *d, int result, GList *list) {}
void desc_let_go(Desc *d, int fd) {}
void desc_reset(Desc *d) { d->registered = false; }
int64_t os_now(void) { return 0; }
long errno_failed(long r) { return -1; }
static int may_close(void) { return CLOSE_NOW; }
static const HookCore the_core = {
    .may_close = may_close, .life_awaited = life_awaited, .replace = desc_replace};
const HookCore *core = &the_core;

/* ---- the kernel's ---- */

/* A part of a write. */
long try_rw(Call *c) {
    uint32_t now = load_rlx(&file);
    MUST(first == 0 || first == now);
    first = now;
    return 1;
}
static int libc_close(int fd) {
    xchg_seq(&file, load_rlx(&file) + 1);
    return 0;
}
int close_number(int fd) { return libc_close(fd); }

/* The rest of one who waits for a close: until it is over, or for longer than it waits. */
static bool is_not_closing(void *arg) { return fd_hints[NUMBER].over + 1 == fd_hints[NUMBER].life; }
static void rests(void) {
    if (mc_pick(2)) return;
    mc_looks_at(&fd_hints[NUMBER].over);
    mc_looks_at(&fd_hints[NUMBER].life);
    mc_wait(is_not_closing, NULL);
}
long os_sys(long nr, long a, long b, long c, long d, long e, long f) {
    if (nr == SYS_ppoll) rests();
    if (nr == SYS_dup3) libc_close((int)b);
    /* no number for a placeholder or a duplicate */
    return nr == SYS_fcntl && b != F_GETFD ? -EMFILE : 0;
}
static bool none_inside(void *arg) { return (desc.state & DESC_REFS) == 0; }
void os_yield(void) {
    mc_looks_at(&desc.state);
    mc_wait(none_inside, NULL);
}

/* ---- the threads ---- */

static void writes(void) { /* stream.c: two bytes, of which the first call takes one */
    struct iovec iov = {bytes, 2};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    HookMove v = {.fd = NUMBER,
                  .msg = &msg,
                  .done = 1,
                  .flags = -1,
                  .deadline = GORT_FOREVER,
                  .life = life_of(NUMBER)};
    first = load_rlx(&file);
    hook_move(&v);
}
static void writes_full(void) { /* posix.c's move_all: a Call of two runs */
    Call c = {.attempt = try_rw, .fd = NUMBER, .dir = DIR_WRITE};
    if (call_run(&c, GORT_FOREVER) == 1) call_run(&c, GORT_FOREVER);
}
static void closes(void) { hook_close(NUMBER); }
static void replaces(void) { dup_to(NULL, 5, NUMBER, 0); }
static void closes_by_gort(void) { gort_close(NUMBER); }
static void begins_to_wait(void) { /* another call makes the number known */
    uint32_t life = life_of(NUMBER);
    if (life) note_known(note_at(NUMBER), life);
}
static void closes_twice(void) { /* the number's next owner */
    hook_close(NUMBER);
    hook_close(NUMBER);
}

static const struct Scene {
    const char *name;
    void (*writer)(void), (*closer)(void), (*third)(void);
    bool used, touched;
} scenes[] = {
    {"closed while a write goes on", writes, closes, NULL, false, true},
    {"likewise, on a number that had no call before", writes, closes, NULL, false, false},
    {"likewise, and another call makes the number known", writes, closes, begins_to_wait, false,
     true},
    {"likewise, of a number that the runtime knows", writes, closes, NULL, true, true},
    {"likewise, by dup2", writes, replaces, NULL, false, true},
    {"likewise, by dup2, known", writes, replaces, NULL, true, true},
    {"closed, and its next file too", writes, closes_twice, NULL, false, true},
    {"closed while a gort_write_full goes on", writes_full, closes, NULL, false, true},
    {"likewise, known", writes_full, closes, NULL, true, true},
    {"likewise, by gort_close", writes_full, closes_by_gort, NULL, true, true},
    {"likewise, without a hook", writes_full, closes_by_gort, NULL, false, false},
};
static const struct Scene *scene;

static void model_resumes(int i) { tls_m = &ms[i]; }
static void model_reset(void) {
    bool hooked = scene->closer != closes_by_gort || scene->used;
    fd_hints[NUMBER] = (Hint){.used = scene->used, .life = scene->touched};
    desc_notes = hooked ? (DescNote *)(void *)fd_hints : NULL;
    memset(&desc, 0, sizeof desc);
    for (int i = 0; i < THREADS; i++) {
        gs[i] = (G){.flags = GF_THREAD};
        ms[i] = (M){.alive = 1, .plain = true, .curg = &gs[i], .errno_at = &errnos[i], .pins = 1};
    }
    file = 1;
    first = 0;
    mc_spawn(scene->writer);
    mc_spawn(scene->closer);
    if (scene->third) mc_spawn(scene->third);
}
static void model_end(void) {
    MUST((desc.state & (DESC_REFS | DESC_CLOSING | DESC_GIVING)) == 0 && ms[0].locks == 0);
}
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
