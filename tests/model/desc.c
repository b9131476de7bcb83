/*
 * A poller that sleeps: nothing that is left for it waits until the next event
 * (src/sched/netpoll.c, src/os/linux/uring.c, src/os/linux/netpoll_epoll.c's way to break it off).
 * The kernel's side: a poller that sleeps without a limit wakes only if it is broken off.
 *
 *   - a descriptor that was marked as trusted: while the mark is there the poller does not sleep
 *     without a limit;
 *   - an entry in the io_uring: it is handed over by whoever put it, or by the poller before it
 *     sleeps;
 *   - a break that is not sent since one is on its way: who is woken by that one sees what the
 *     other was about.
 */
#include "model.h"

#include "runtime.h"
#undef check
#define check(cond) ((void)0)
#define probe uring_probe
#include <os/linux/uring.c>
#include <sched/netpoll.c>
#undef BATCH
#define enter_ring epoll_enter
#define kpoll_wait epoll_wait_here
#include <os/linux/netpoll_epoll.c>
#undef kpoll_wait

Sched sched;
Settings settings = {.relook = true};
__thread M *tls_m;
static Chunk chunk;
static M m;
static G g;
static UringOp op;
static struct {
    uint32_t head, tail, array[4], cq_head, cq_tail;
    struct io_uring_sqe sqes[4];
} rings;
static uint32_t handed, asked_for, what, seen;
static int64_t slept_until;

int64_t os_now(void) { return 0; }
void *os_map(size_t size, bool stack) { return NULL; }
void os_unmap(void *at, size_t size) {}
int os_fd_away(int fd) { return fd; }
int os_tgkill(int tid, int signo) { return 0; }
void fatal(const char *format, ...) { wrong(format); }
const char *errno_word(long r) { return ""; }

/* The kernel's: the eventfd is asked for or not, a wait, entries taken. */
static bool is_readable(void *arg) { return asked_for != 0; }
long os_sys(long nr, long a, long b, long c, long d, long e, long f) {
    if (nr == SYS_io_uring_enter) {
        mc_op(MC_FENCE, NULL, 0, 0, 0);
        handed += (uint32_t)b;
        rings.head += (uint32_t)b;
        return b;
    }
    if (nr == SYS_epoll_ctl) {
        xchg_seq(&asked_for, (((struct epoll_event *)d)->events & EPOLLOUT) != 0);
        mc_op(MC_FENCE, NULL, 0, 0, 0);
    }
    return 0;
}
int kpoll_wait(int64_t deadline, KEvent *events) {
    mc_op(MC_FENCE, NULL, 0, 0, 0);
    slept_until = deadline;
    if (deadline != GORT_FOREVER) return 0;
    mc_looks_at(&asked_for);
    mc_wait(is_readable, NULL);
    slept_until = 0;
    consume_break();
    return 0;
}

static GList list;
static void sleeps(void) { netpoll(GORT_FOREVER, &list); }
static void passes(void) { pass(1, &list); }
static void trusts(void) { desc_trust_slow(&chunk.mark[0]); }
static void put(M *by, void *arg) {}
static void puts_entry(void) {
    lock(&ring.lock, RANK_CTX);
    put_entry(&op);
    commit_put(&m, &op);
}
/* What wake_for_timer() does, and preferred.c: store, fence, break. */
static void breaks(void) {
    store_rlx(&what, 1);
    fence_full();
    kpoll_break();
}
static void looks_afterwards(void) {
    consume_break();
    seen = load_rlx(&what);
}

static const struct Scene {
    const char *name;
    void (*poller)(void), (*other)(void), (*third)(void);
    bool broken; /* a break is on its way already */
} scenes[] = {
    {"trusted, and the marks are looked at", passes, trusts, NULL, false},
    {"trusted, and the poller goes to sleep", sleeps, trusts, NULL, false},
    {"marks are left, and the poller goes to sleep", sleeps, passes, NULL, false},
    {"an entry is put, and the poller goes to sleep", sleeps, puts_entry, NULL, false},
    {"a break that is on its way already", looks_afterwards, breaks, NULL, true},
};
static const struct Scene *scene;

static void model_reset(void) {
    memset(&chunk.mark, 0, sizeof chunk.mark);
    memset(&rings, 0, sizeof rings);
    memset(&ring, 0, sizeof ring);
    desc_table[0] = &chunk;
    chunks_end = 1;
    ring.fd = 1;
    ring.sq_head = &rings.head, ring.sq_tail = &rings.tail, ring.sq_array = rings.array,
    ring.sqes = rings.sqes;
    ring.cq_head = &rings.cq_head, ring.cq_tail = &rings.cq_tail, ring.sq_mask = ring.cq_mask = 3;
    ring.submitted_at = 1; /* this tick's: entries may wait for company */
    sched.coarse = 1;
    sched.procs = 2;
    op = (UringOp){.gp = &g, .put = put};
    suspects = blocking = distrust = uring_pending = uring_standing = 0;
    passed_at = -GORT_SEC;
    pass_lock.word = 0;
    /* it moves on to 2, and is left; suspects is 0 at that moment */
    if (scene->other == passes) chunk.mark[0] = 1;
    if (scene->poller == passes) suspects = 1;
    broken = asked_for = armed = scene->broken;
    breakfd = 1;
    break_lock.word = 0;
    handed = what = seen = 0;
    slept_until = -1;
    list = (GList){0};
    mc_spawn(scene->poller);
    mc_threads[0].daemon = true;
    mc_spawn(scene->other);
    tls_m = &m;
}
static void model_end(void) {
    bool asleep = slept_until == GORT_FOREVER;
    if (scene->poller == passes) MUST(suspects);
    if (chunk.mark[0]) MUST(!asleep);
    MUST(rings.head == rings.tail);
    if (what) MUST(seen || asked_for);
}
static uint64_t model_hash(uint64_t h) {
    h = mix(mix(mix(mix(h, chunk.mark[0]), suspects), blocking), pass_lock.word);
    h = mix(mix(mix(mix(h, uring_pending), uring_standing), rings.head), rings.tail);
    h = mix(mix(mix(mix(h, ring.lock.word), ring.handing.word), broken), asked_for);
    h = mix(mix(mix(mix(h, what), seen), break_lock.word), armed);
    return mix(mix(mix(h, (uint64_t)slept_until), (uint64_t)passed_at), handed);
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
