/*
 * Recording a trace: buffers, and how a trace begins and ends.
 *
 * Each M writes into a buffer of its own, so an event takes no lock and shares no cache line. In
 * a file trace a full buffer (64 KB) is written by its M to a nameless spill file, one pwrite to
 * the page cache for 2,000 events; the JSON is made when the trace stops (trace_write.c). In the
 * flight recorder buffers are rings, and nothing is written before somebody asks.
 *
 * Stopping has to know that nobody is in the middle of an event. The writer of an event sets
 * buf->busy, then looks at trace_on again; the stopper clears trace_on, then looks at busy: a
 * Dekker pair, where the frequent side pays nothing because the rare side calls membarrier, which
 * makes every running thread pass a full fence. Where the kernel has no membarrier, the writer
 * uses an exchange. Without the pair an event could be written into a buffer that is being read
 * or reset.
 *
 * Time stamps are processor ticks where these run steadily, scaled by two readings of the clock,
 * at the start and at the stop; elsewhere the clock itself.
 *
 * Events come in sections only, so a signal handler never writes one while its own thread does.
 * Threads without an M (the monitor) share one buffer under a lock.
 *
 * A session: IDLE -> STARTING -> ON -> STOPPING -> IDLE, each step a CAS by whoever asks.
 */
#include "base.h" /* first: _GNU_SOURCE */
#include "trace_buf.h"
#include "dump.h"
#include "env.h"
#include "g.h"
#include "print.h"
#include "sched.h"
#include "stack.h"
#include "ticks.h"
#include "unwind.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>

uint32_t trace_on;

struct Tracing tracing;
#define t tracing

/* ---- writing events -------------------------------------------------------------------------- */

uint64_t trace_stamp(void) { return t.ticks ? arch_ticks() : (uint64_t)os_now(); }

static TraceBuf *new_buf(M *owner) {
    TraceBuf *b = os_map(sizeof *b, false);
    if (b == NULL) return NULL;
    b->owner = owner;
    b->index = add_rlx(&t.buffers, 1) - 1;
    TraceBuf *head = load_rlx(&t.all);
    do b->all = head;
    while (!cas_rel(&t.all, &head, b)); /* pairs with the stopper's acquire of t.all */
    return b;
}

/* M records are reused: the buffer of the one before is still there. */
static NOINLINE TraceBuf *buf_of(M *m) {
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all)
        if (b->owner == m) return m->trace = b;
    return m->trace = new_buf(m);
}

/* A full buffer becomes a chunk of the spill file. Its first event is the head. */
static void spill(TraceBuf *b) {
    uint64_t at = add_rlx(&t.spilled, 1) - 1;
    b->ev[0] = (TraceEvent){.g = b->index, .arg = b->n};
    long r = os_sys(SYS_pwrite64, t.spill, (long)b->ev, sizeof(TraceEvent) * SPILL,
                    (long)(at * sizeof(TraceEvent) * SPILL), 0, 0);
    if (r != (long)(sizeof(TraceEvent) * SPILL)) b->dropped += b->n - 1;
    b->n = 1;
}

static void write_event(TraceBuf *b, uint32_t mode, const TraceEvent *e) {
    if (mode == FLIGHT) {
        b->ev[b->n++ % KEPT] = *e;
        return;
    }
    if (b->n == 0) b->n = 1;
    b->ev[b->n++] = *e;
    if (b->n == SPILL) spill(b);
}

/* The writer's half of the pair in the essay above. */
static void put(TraceBuf *b, TraceEvent *e) {
    if (t.fences) xchg_seq(&b->busy, 1);
    else store_rlx(&b->busy, 1);
    fence_compiler();
    uint32_t mode = load_rlx(&trace_on);
    if (mode != OFF) {
        e->when = trace_stamp();
        write_event(b, mode, e);
    }
    store_rel(&b->busy, 0); /* pairs with the stopper's acquire: the event is complete */
}

static void put_shared(TraceEvent *e) {
    lock(&t.shared_lock, RANK_LEAF);
    if (t.shared == NULL) t.shared = new_buf(NULL);
    if (t.shared) put(t.shared, e);
    unlock(&t.shared_lock);
}

void trace_put(M *m, int kind, uint64_t g, uint64_t arg, uint32_t y, int x) {
    TraceEvent e = {.g = g, .arg = arg, .y = y, .p = NO_P, .kind = (uint8_t)kind, .x = (uint8_t)x};
    if (m == NULL) {
        put_shared(&e);
        return;
    }
    if (m->p) e.p = (uint16_t)m->p->id;
    TraceBuf *b = m->trace ? m->trace : buf_of(m);
    if (b) put(b, &e);
}

static void put_name(M *m, G *gp) {
    char name[STACK_NAME + 4] = {0};
    if (!(gp->flags & GF_NAMED) || gp->stack == NULL) return;
    if (!read_memory((uintptr_t)gp->stack->name, name, STACK_NAME)) return;
    for (int i = 0; i < 3 && name[i * 12]; i++) {
        uint64_t arg;
        uint32_t y;
        memcpy(&arg, name + i * 12, 8);
        memcpy(&y, name + i * 12 + 8, 4);
        trace_put(m, EV_NAME, gp->id, arg, y, i);
    }
}

void trace_put_create(M *m, G *gp) {
    trace_put(m, EV_CREATE, gp->id, g_entry(gp), gp->parent, 0);
    put_name(m, gp);
}

void trace_put_ready(M *m, G *gp) {
    G *by = m ? m->curg : NULL;
    trace_put(m, EV_READY, gp->id, 0, by ? (uint32_t)by->id : 0, 0);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* A goroutine that was there before: its name, and what it did. */
static void put_existing(G *gp, void *arg) {
    uint32_t status = load_acq(&gp->status);
    if (status == G_IDLE || status == G_DEAD || gp->id == 0) return;
    trace_put(arg, EV_EXISTS, gp->id, g_entry(gp), gp->reason, (int)status);
    put_name(arg, gp);
    M *m = arg;
    if (m && m->curg == gp && m->p) trace_resume(m, gp); /* the one that asked for the trace */
}

/* A file nobody else sees; in memory where the directory cannot hold one. */
static int open_spill(void) {
    long fd = os_sys(SYS_openat, AT_FDCWD, (long)"/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600, 0, 0);
    if (fd < 0) fd = os_sys(SYS_memfd_create, (long)"gort-trace", 1 /* CLOEXEC */, 0, 0, 0, 0);
    return (int)fd;
}

static void reset_buffers(void) {
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all) b->n = b->dropped = 0;
    t.spilled = 0;
}

static void switch_on(uint32_t mode) {
    t.fences = os_membarrier_register() < 0;
    t.ticks = arch_ticks_steady();
    t.ns0 = os_now();
    t.tick0 = trace_stamp();
    store_seq(&trace_on, mode);
    M *m = getm() ? enter() : NULL; /* a plain thread need not become known for this */
    each_g(put_existing, m);
    if (m) leave(m);
}

static bool step(uint32_t from, uint32_t to) { return cas_acq_rel(&t.state, &from, to); }

/* The stopper's half of the pair: nobody writes any more when it returns. patience 0: for ever. */
static void switch_off(int64_t patience) {
    int64_t until = patience ? os_now() + patience : GORT_FOREVER;
    store_seq(&trace_on, OFF);
    os_membarrier();
    fence_full();
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all)
        while (load_acq(&b->busy) && os_now() < until) os_nap(20 * GORT_US);
}

int tracing_start(int fd) {
    if (!step(IDLE, STARTING)) return -EBUSY;
    if (load_rlx(&trace_on) == FLIGHT) switch_off(0);
    t.spill = open_spill();
    if (t.spill < 0) {
        store_rel(&t.state, IDLE);
        return t.spill;
    }
    t.file = fd;
    reset_buffers();
    switch_on(TO_FILE);
    store_rel(&t.state, ON);
    return 0;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void close_fd(int fd) { os_sys(SYS_close, fd, 0, 0, 0, 0, 0); }

static void flight_on(void) {
    reset_buffers();
    switch_on(FLIGHT);
}

int tracing_stop(void) {
    if (!step(ON, STOPPING)) return -EINVAL;
    switch_off(0);
    int r = trace_write_out(t.file, false, 0);
    close_fd(t.spill);
    close_fd(t.file);
    if (settings.flight && load_rlx(&sched.running)) flight_on();
    store_rel(&t.state, IDLE);
    return r;
}

static int open_file(const char *path) {
    return (int)os_sys(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                       0666, 0, 0);
}

static void stop_at_exit(void) {
    if (!in_forked_child()) tracing_end_run();
}

static bool from_env; /* this run's trace was asked for by GORT_TRACE */

void tracing_begin_run(void) {
    static bool registered;
    from_env = false;
    if (settings.flight) {
        print_buf(t.flight_path, sizeof t.flight_path, "gort-flight-%d.json", os_getpid());
        flight_on();
    } else if (env_trace[0]) {
        int fd = open_file(env_trace), r = fd < 0 ? fd : tracing_start(fd);
        from_env = r == 0;
        if (r < 0) print_fd(2, "gort: GORT_TRACE=%s ignored: error %d\n", env_trace, -r);
        if (r < 0 && fd >= 0) close_fd(fd);
        if (!registered) registered = atexit(stop_at_exit) == 0; /* a program that calls exit() */
    }
}

void tracing_end_run(void) {
    if (from_env) {
        from_env = false;
        tracing_stop();
    }
    if (load_rlx(&trace_on) == FLIGHT) switch_off(0);
}

void tracing_fatal(void) {
    uint32_t mode = load_rlx(&trace_on);
    if (mode == OFF) return;
    const char *path = env_trace[0] ? env_trace : t.flight_path;
    int fd = mode == FLIGHT ? open_file(path) : t.file;
    if (fd < 0) return;
    switch_off(100 * GORT_MS);
    int r = trace_write_out(fd, mode == FLIGHT, settings.flight * GORT_MS);
    if (mode == FLIGHT && r == 0)
        print_fd(2, "gort: the last %ldms are in %s\n", (long)settings.flight, path);
}

/* ---- public ---------------------------------------------------------------------------------- */

EXPORT int gort_trace_start(const char *path) {
    if (in_forked_child()) return -ENOTCONN;
    if (path == NULL) return -EINVAL;
    if (load_acq(&t.state) != IDLE) return -EBUSY; /* before the file is emptied */
    int fd = open_file(path);
    if (fd < 0) return fd;
    int r = tracing_start(fd);
    if (r < 0) close_fd(fd);
    return r;
}

static long stop_blocking(void *arg) { return tracing_stop(); }

EXPORT int gort_trace_stop(void) {
    if (in_forked_child()) return -ENOTCONN;
    if (load_acq(&t.state) != ON) return -EINVAL;
    return (int)gort_blocking(stop_blocking, NULL);
}
