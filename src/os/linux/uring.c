/*
 * io_uring for regular files: one ring for the process.
 *
 * Submission. A goroutine puts its entry into the ring and parks, without a system call. netpoll()
 * hands entries to the kernel whenever it is called and before it sleeps; the goroutine does so
 * itself where a poller already sleeps, BATCH entries have gathered, or none was handed over since
 * the last tick of the coarse clock: a busy runtime polls rarely. So a burst costs one system call
 * per batch. `uring_pending` and netpoll.c's `blocking` are a Dekker pair: the goroutine puts,
 * fence, looks whether a poller sleeps; the poller says that it sleeps, fence, looks for entries.
 *
 * Refusal. io_uring_enter may fail for now (EAGAIN: no memory, EBUSY: no room for completions) or
 * for good (EPERM: a filter of the program's). Nothing is tried twice: what the kernel has not
 * taken is withdrawn from the ring with -EAGAIN, and its caller takes a thread, as where there is
 * no ring. For a while after that, for good after an error that will not pass, uring_put_locked()
 * says no. `handing` is held over the system call: nobody else submits what lies between the
 * kernel's head and the tail while the tail is set back. The goroutines wait in `refused` for the
 * next netpoll(); `uring_pending` counts one for them, so the Dekker pair covers them.
 *
 * Cancellation. A request belongs to the thread that handed it over. When that ends, the kernel
 * cancels what it has not begun, and the caller takes a thread, as after a refusal (file.c).
 *
 * Completion. The ring's descriptor is a source of the poller; an entry's user data is the
 * operation on the waiter's stack. The ring's lock is held from putting the entry until the
 * goroutine has left its stack, and for collecting and withdrawing: no goroutine is made ready that
 * has not parked. Operations under way never exceed the completion ring (uring_put_locked). The
 * kernel writes into stacks: uring_stop() waits for all that is under way before they go.
 *
 * Numbers. The kernel looks the descriptor up when the entry is handed over, in the table of the
 * thread that does it. The caller's count in the poller's entry is given back when the request is
 * in the ring (`put`), and gort_close hands over what stands there after waiting for the counts and
 * before close(2), so a request never meets the next owner of its number. gort_close asks
 * `uring_standing`, which goes down after the system call: `uring_pending` is 0 already while
 * another thread is on its way into the kernel. A thread that a goroutine is locked to, and a plain
 * one, may have a table of its own (unshare(2)). So neither hands over: a locked goroutine puts
 * nothing (file.c), its thread does not poll, and gort_close there withdraws what is in the ring.
 *
 * The ring's own number may be closed behind our back (netpoll_epoll.c). The mapping keeps the
 * ring, so what the kernel has taken is done and seen. But nothing reports it: netpoll() looks
 * every millisecond while something is under way, and nothing more is put.
 */
#include "os/linux/uring.h"
#include "os/poller.h"
#include "base/san.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENTRIES 256
#define BATCH 16
#define REFUSED_FOR (10 * GORT_MS)
#define NEEDED (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE)

uint32_t uring_pending, uring_standing, uring_gone;

static struct {
    Lock handing; /* RANK_PRIM: over io_uring_enter, and against unmapping */
    Lock lock;    /* RANK_CTX: put, collect, withdraw */
    int fd;       /* -1: none */
    uint32_t *sq_head, *sq_tail, *sq_array, *cq_head, *cq_tail; /* shared with the kernel */
    uint32_t sq_mask, cq_mask, cq_entries;
    uint32_t under_way; /* lock */
    GList refused;      /* lock; that there are any: atomic */
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    char *map;
    size_t map_size, sqes_size;
    int64_t submitted_at;  /* atomic: coarse time */
    int64_t refused_until; /* atomic: coarse time */
} ring = {.fd = -1};

static long enter_ring(uint32_t submit, uint32_t want) {
    if (unlikely(load_rlx(&uring_gone))) return -EBADF;
    return sys6(SYS_io_uring_enter, ring.fd, submit, want, want ? IORING_ENTER_GETEVENTS : 0, 0, 0);
}

static void *map_ring(int fd, size_t size, uint64_t at) {
    long r = sys6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, at);
    return r < 0 && r > -4096 ? NULL : (void *)r;
}

/* registered: the poller knows the number, and can tell whether it is still ours. */
static void unmap_ring(bool registered) {
    lock(&ring.handing, RANK_PRIM); /* a plain thread may be in gort_close */
    if (ring.map) os_unmap(ring.map, ring.map_size);
    if (ring.sqes) os_unmap(ring.sqes, ring.sqes_size);
    ring.map = NULL;
    ring.sqes = NULL;
    if (!load_rlx(&uring_gone) && (!registered || kpoll_ours(ring.fd)))
        sys6(SYS_close, ring.fd, 0, 0, 0, 0, 0);
    store_rel(&ring.fd, -1);
    unlock(&ring.handing);
}

static bool map_rings(struct io_uring_params *p) {
    size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    ring.map_size = sq > cq ? sq : cq;
    ring.sqes_size = p->sq_entries * sizeof(struct io_uring_sqe);
    ring.map = map_ring(ring.fd, ring.map_size, IORING_OFF_SQ_RING);
    ring.sqes = map_ring(ring.fd, ring.sqes_size, IORING_OFF_SQES);
    if (ring.map == NULL || ring.sqes == NULL) return false;
    ring.sq_head = (void *)(ring.map + p->sq_off.head);
    ring.sq_tail = (void *)(ring.map + p->sq_off.tail);
    ring.sq_array = (void *)(ring.map + p->sq_off.array);
    ring.cq_head = (void *)(ring.map + p->cq_off.head);
    ring.cq_tail = (void *)(ring.map + p->cq_off.tail);
    ring.cqes = (void *)(ring.map + p->cq_off.cqes);
    ring.sq_mask = p->sq_entries - 1;
    ring.cq_mask = p->cq_entries - 1;
    ring.cq_entries = p->cq_entries;
    return true;
}

static bool probe(int fd) {
    enum { OPS = IORING_OP_WRITE + 1 };
    uint64_t room[(sizeof(struct io_uring_probe) + OPS * sizeof(struct io_uring_probe_op) + 7) /
                  8] = {0};
    struct io_uring_probe *p = (void *)room;
    if (sys6(SYS_io_uring_register, fd, IORING_REGISTER_PROBE, p, OPS, 0, 0) < 0) return false;
    return p->last_op >= IORING_OP_WRITE &&
           (p->ops[IORING_OP_READ].flags & IO_URING_OP_SUPPORTED) &&
           (p->ops[IORING_OP_WRITE].flags & IO_URING_OP_SUPPORTED) &&
           (p->ops[IORING_OP_FSYNC].flags & IO_URING_OP_SUPPORTED);
}

void uring_start(void) {
    struct io_uring_params p = {0};
    store_seq(&uring_pending, 0);
    store_seq(&uring_standing, 0);
    if (!settings.uring) return;
    int fd = os_fd_away((int)sys6(SYS_io_uring_setup, ENTRIES, &p, 0, 0, 0, 0));
    if (fd < 0) return;
    ring.fd = fd;
    ring.under_way = 0;
    ring.submitted_at = ring.refused_until = 0;
    ring.refused = (GList){0};
    store_rlx(&uring_gone, 0);
    if ((p.features & NEEDED) != NEEDED || !probe(ring.fd) || !map_rings(&p) ||
        kpoll_source(ring.fd) < 0)
        unmap_ring(false);
}

/* No goroutine will run again: those collected here are forgotten. */
void uring_stop(void) {
    GList gone = {0};
    if (ring.fd < 0) return;
    uring_submit(&gone);
    for (;;) {
        uring_collect(&gone);
        if (ring.under_way == 0) break;
        if (enter_ring(0, 1) < 0) os_nap(GORT_MS);
    }
    unmap_ring(true);
}

/* Withdraws what the kernel has not taken; the callers take threads. With ring.handing. */
static void ring_withdraw(void) {
    lock(&ring.lock, RANK_CTX);
    uint32_t head = load_acq(ring.sq_head), tail = load_rlx(ring.sq_tail);
    for (uint32_t i = head; i != tail; i++) {
        UringOp *op = (UringOp *)(uintptr_t)ring.sqes[i & ring.sq_mask].user_data;
        op->result = -EAGAIN;
        ring.under_way--;
        glist_push(&ring.refused, op->gp);
    }
    store_rel(ring.sq_tail, head);
    sub_seq(&uring_standing, tail - head);
    unlock(&ring.lock);
}

/* Until when nothing is put after io_uring_enter gave r. */
static int64_t refused_until(long r) {
    bool passes = r == 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR || r == -ENOMEM;
    return passes ? time_after(coarse_now(), REFUSED_FOR) : GORT_FOREVER;
}

/* With ring.handing. Asks again for the entries behind one that the kernel did not like. */
static void hand_over(void) {
    uint32_t n;
    while ((n = load_acq(ring.sq_tail) - load_acq(ring.sq_head)) > 0) {
        long r = enter_ring(n, 0);
        if (r <= 0) {
            store_rlx(&ring.refused_until, refused_until(r));
            ring_withdraw();
            return;
        }
        sub_seq(&uring_standing, (uint32_t)r);
    }
}

static void submit(void) {
    xchg_seq(&uring_pending, 0); /* pairs with uring_commit's add: what was put before is seen */
    lock(&ring.handing, RANK_PRIM);
    if (load_rlx(&ring.fd) >= 0) {
        store_rlx(&ring.submitted_at, coarse_now());
        hand_over();
    }
    unlock(&ring.handing);
}

void uring_lost(void) { store_rlx(&uring_gone, load_acq(&ring.fd) >= 0); }

int64_t uring_collect_lost(int64_t deadline, GList *list) {
    uring_submit(list); /* withdraws what the kernel will not take any more */
    uring_collect(list);
    if (deadline == 0 || load_rlx(&ring.under_way) == 0) return deadline;
    int64_t soon = time_after(os_now(), GORT_MS);
    return soon < deadline ? soon : deadline;
}

bool uring_on(void) { return load_acq(&ring.fd) >= 0; }

static void take_refused(GList *list) {
    if (load_acq(&ring.refused.head) == NULL) return;
    lock(&ring.lock, RANK_CTX);
    for (G *gp; (gp = glist_pop(&ring.refused)) != NULL;) glist_push(list, gp);
    unlock(&ring.lock);
}

/* Any threads at once. */
void uring_submit(GList *list) {
    submit();
    take_refused(list);
}
void uring_withdraw(GList *list) {
    lock(&ring.handing, RANK_PRIM);
    if (load_rlx(&ring.fd) >= 0) ring_withdraw();
    unlock(&ring.handing);
    take_refused(list);
}

static void put_entry(UringOp *op) {
    uint32_t tail = load_rlx(ring.sq_tail), i = tail & ring.sq_mask;
    struct io_uring_sqe *e = &ring.sqes[i];
    memset(e, 0, sizeof *e);
    e->opcode = (uint8_t)op->opcode;
    e->fd = op->fd;
    e->addr = (uint64_t)(uintptr_t)op->buf;
    e->len = op->n;
    e->off = op->opcode == IORING_OP_FSYNC ? 0 : (uint64_t)op->offset;
    e->user_data = (uint64_t)(uintptr_t)op;
    ring.sq_array[i] = i;
    store_rel(ring.sq_tail, tail + 1); /* the kernel reads the tail, then the entry */
    ring.under_way++;
    add_seq(&uring_standing, 1);
}

bool uring_put_locked(UringOp *op) {
    if (load_acq(&ring.fd) < 0 || load_rlx(&uring_gone) ||
        unlikely(coarse_now() < load_rlx(&ring.refused_until)))
        return false;
    lock(&ring.lock, RANK_CTX);
    bool full = ring.under_way >= ring.cq_entries ||
                load_rlx(ring.sq_tail) - load_acq(ring.sq_head) > ring.sq_mask;
    if (full) unlock(&ring.lock);
    else put_entry(op);
    return !full;
}

uint32_t uring_commit(void) {
    uint32_t n = add_seq(&uring_pending, 1);
    unlock(&ring.lock);
    return n;
}

bool uring_due(uint32_t n) { return n >= BATCH || load_rlx(&ring.submitted_at) != coarse_now(); }

bool uring_hand_over(void) {
    submit();
    if (likely(load_acq(&ring.refused.head) == NULL)) return false;
    add_seq(&uring_pending, 1);
    return true;
}

/* Any M in netpoll(), no lock held. Each G still counts in poll_waiters. */
void uring_collect(GList *list) {
    if (load_acq(&ring.fd) < 0) return;
    if (load_rlx(ring.cq_head) == load_acq(ring.cq_tail)) return;
    lock(&ring.lock, RANK_CTX);
    uint32_t head = load_rlx(ring.cq_head), tail = load_acq(ring.cq_tail);
    for (; head != tail; head++) {
        struct io_uring_cqe *e = &ring.cqes[head & ring.cq_mask];
        UringOp *op = (UringOp *)(uintptr_t)e->user_data;
        op->result = e->res;
        if (op->opcode == IORING_OP_READ && e->res > 0) valgrind_written(op->buf, (size_t)e->res);
        ring.under_way--;
        glist_push(list, op->gp);
    }
    store_rel(ring.cq_head, head); /* the kernel may reuse the places */
    unlock(&ring.lock);
}
