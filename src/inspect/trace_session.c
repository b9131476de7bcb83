/*
 * Sessions of the tracer: how a trace begins, ends and reaches its file.
 *
 * A trace into a file: IDLE -> STARTING -> ON -> STOPPING -> IDLE; a CAS takes each beginning and
 * end. The flight recorder is a session too: it is on while no trace into a file is, and gives way
 * to one. Each session has a number, in trace_on: a buffer with another is not part of it.
 *
 * A process that ends by a signal or a fatal error writes its file first, in the handler
 * (tracing_fatal). Only one thread writes: others that end the process wait for it. If the signal
 * came to the thread that writes anyway, that thread goes on and dies afterwards. Once the file is
 * written the state is STOPPING without a stopper: nothing begins or ends a session any more, and
 * nobody waits, though the process should outlive the signal (a debugger may drop it).
 */
#include "inspect/trace_session.h"
#include "sched/trace_buf.h"
#include "base/env.h"
#include "sched/g.h"
#include "base/print.h"
#include "debug/stats.h"
#include "sched/sched.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ticks.h"

#define t tracing
#define SIGNAL_MASK(signo) (1ULL << ((signo)-1))

static void put_existing(G *gp, void *arg) {
    uint32_t status;
    if (g_exists(gp, &status)) trace_put_existing(arg, gp);
}

static int spill_memory(void) {
    return (int)os_sys(SYS_memfd_create, (long)"gort-trace", MFD_CLOEXEC, 0, 0, 0, 0);
}

static int spill_disk(void) {
    int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    return (int)os_sys(SYS_openat, AT_FDCWD, (long)"/tmp", flags, 0600, 0, 0);
}

/* Files without a name. If one of memory and disk fails, the other takes everything. */
static int open_spill(void) {
    int memory = spill_memory(), disk = spill_disk();
    if (memory < 0 && disk < 0) return disk;
    if (memory < 0) memory = spill_disk();
    else if (disk < 0) disk = spill_memory();
    t.spill[0] = own_fd(os_fd_away(memory)); /* chunks for a file that failed are dropped */
    t.spill[1] = own_fd(os_fd_away(disk));
    return 0;
}

static uint64_t trace_most(void) {
    return (uint64_t)(settings.tracemax ? settings.tracemax : TRACE_MB) << 20;
}

/* A ring that has a place for each chunk it may hold. No thread records. */
static void flight_begin(void) {
    FlightRing *f = &t.ring;
    uint64_t n =
        ((uint64_t)(settings.tracemax ? settings.tracemax : FLIGHT_MB) << 20) / sizeof(TraceChunk);
    for (; f->slot == NULL && n > 0; n /= 2) { /* less where there is less address space */
        void *at = os_map(n * (sizeof(TraceChunk) + sizeof(FlightSlot)), false);
        if (at == NULL) continue;
        f->chunk = at;
        f->slot = (FlightSlot *)(f->chunk + n);
        f->size = (uint32_t)n;
    }
    f->held = 0;
    f->forgotten = 0;
    f->short_of = false;
    f->keep = settings.flight * GORT_MS;
}

static void stop_at_exit(void);

static void outlive_signals(void) {
    static bool registered;
    if (!registered) registered = atexit(stop_at_exit) == 0; /* the program may call exit() */
    trace_signals_install();
}

static void switch_on(bool flight) {
    t.flight = flight;
    if (flight) flight_begin();
    t.spilled = 0;
    t.limit = trace_most() / sizeof(TraceChunk);
    t.full = false;
    t.ticks = arch_ticks_steady();
    t.ns0 = os_now();
    t.tick0 = trace_stamp();
    t.session = t.session % (TRACE_PROFILE - 1) + 1; /* never 0 */
    if (flight || t.named) outlive_signals();
    M *m = getm() ? enter() : NULL; /* makes no M; no event of its own comes in between */
    or_seq(&trace_on, t.session);
    each_g(put_existing, m);
    if (m && m->p && m->curg) trace_put_resume(m, m->curg); /* behind its name */
    if (m) leave(m);
}

static bool session_step(uint32_t from, uint32_t to) { return cas_acq_rel(&t.state, &from, to); }

/* The thread that stops it is named in the state: a signal may come to that thread. */
static bool session_stop(uint32_t from) {
    return session_step(from, STOPPING | (uint32_t)os_gettid() << STATE_BITS);
}

static uint32_t stopper(void) { /* 0: nobody stops a session, or its last file is written */
    uint32_t state = load_acq(&t.state);
    return (state & STATE_MASK) == STOPPING ? state >> STATE_BITS : 0;
}

static int dies_by; /* atomic: a signal that ends the program when its file is whole */

bool tracing_writes_here(void) { return stopper() == (uint32_t)os_gettid(); }
void tracing_dies_by(int signo) { store_rlx(&dies_by, signo); }

/* Another thread that writes is let finish. */
static void wait_for_writer(void) {
    while (stopper() != 0 && !tracing_writes_here()) os_nap(GORT_MS);
}

/* Another thread begins a trace; if it is this one, which has struck an error, in vain. */
static void wait_for_beginning(void) {
    int64_t until = time_after(os_now(), GORT_SEC);
    while (load_acq(&t.state) == STARTING && os_now() < until) os_nap(GORT_MS);
}

/* Afterwards no thread finishes a chunk (trace.c). patience 0: waits for ever. This thread does not
 * wait for its own: a handler of the program's that calls exit() may have come in the middle. */
static void switch_off(int64_t patience) {
    int64_t until = patience ? time_after(os_now(), patience) : GORT_FOREVER;
    const TraceBuf *mine = getm() ? getm()->trace : NULL;
    and_seq(&trace_on, TRACE_PROFILE);
    fence_full(); /* pairs with next_chunk */
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all)
        while (b != mine && load_acq(&b->busy) && os_now() < until) os_nap(20 * GORT_US);
}

static bool flight_is_on(void) { return trace_session() != 0 && t.flight; }

static bool wants_perfetto(const char *path) {
    const char *end = strrchr(path, '.');
    return end && strcmp(end, ".pftrace") == 0;
}

static const TraceForm *form_for(const char *path) {
    return wants_perfetto(path) ? &perfetto_form : &json_form;
}

/* path: NULL: the file has no name. The state is STARTING; after an error, IDLE. */
static int begin_as(int fd, const char *path, const TraceForm *form) {
    if (flight_is_on()) switch_off(0);
    int e = fd < 0 ? fd : open_spill();
    if (e < 0) {
        store_rel(&t.state, IDLE);
        return e;
    }
    t.file = own_fd(os_fd_away(fd));
    t.lost = false;
    t.named = path != NULL;
    t.form = form;
    switch_on(false);
    store_rel(&t.state, ON);
    return 0;
}

int tracing_start(int fd, const TraceForm *form) {
    return session_step(IDLE, STARTING) ? begin_as(fd, NULL, form) : -EBUSY;
}

int tracing_stop(void) {
    if (!session_stop(ON)) return -EINVAL;
    switch_off(0);
    int fd = own_fd_number(&t.file),
        r = fd < 0 ? fd : trace_write_out(fd, t.session, false, 0, NULL);
    if (r == 0 && t.lost) r = -EBADF;
    own_fd_close(&t.spill[0]);
    own_fd_close(&t.spill[1]);
    own_fd_close(&t.file);
    if (settings.flight && load_rlx(&sched.running)) switch_on(true);
    else trace_signals_uninstall();
    store_rel(&t.state, IDLE);
    if (load_rlx(&dies_by)) trace_signals_die(load_rlx(&dies_by));
    return r;
}

int tracing_last(int fd, const TraceForm *form, uint64_t most) {
    uint32_t session = trace_session();
    if (session == 0 || !t.flight) return -EINVAL;
    int r = trace_write_live(fd, session, settings.flight * GORT_MS, form, most);
    return r == 0 && trace_session() != session ? -EBUSY : r;
}

uint64_t tracing_size(void) { return load_rlx(&t.spilled) * sizeof(TraceChunk); }

/* A name of our own choice may be guessed: a link that somebody has put there is not followed. */
static int open_trace(const char *path) {
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (path == t.flight_path ? O_NOFOLLOW : 0);
    return (int)os_sys(SYS_openat, AT_FDCWD, (long)path, flags, 0666, 0, 0);
}

/* Empties the file, or makes it; fd: of one that was there, else -errno. */
static int begin_in(int fd, const char *path) {
    if (fd == -ENOENT) fd = open_trace(path);
    else if (fd >= 0) os_sys(SYS_ftruncate, fd, 0, 0, 0, 0, 0); /* a pipe is as it is */
    int r = begin_as(fd, path, form_for(path));
    if (r < 0 && fd >= 0) os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    return r;
}

/* A signal that ends the program finds the file as it was, or a trace that is on: it has its
 * handler before the file is emptied. This thread takes none meanwhile, and another one's handler
 * waits (wait_for_beginning). A pipe is opened before, since that may take long. */
static long start_into(void *path) {
    uint64_t most = ~(SIGNAL_MASK(SIGSEGV) | SIGNAL_MASK(SIGBUS) | SIGNAL_MASK(SIGILL) |
                      SIGNAL_MASK(SIGFPE)),
             old;
    int fd = (int)os_sys(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
    if (!session_step(IDLE, STARTING)) {
        if (fd >= 0) os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
        return -EBUSY;
    }
    os_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&most, (long)&old, sizeof most, 0, 0);
    outlive_signals();
    int r = begin_in(fd, path);
    if (r < 0 && !flight_is_on()) trace_signals_uninstall();
    os_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof old, 0, 0);
    return r;
}

static void stop_at_exit(void) {
    if (in_forked_child()) return;
    tracing_end_run();
    wait_for_writer();
}

static bool from_env; /* GORT_TRACE asked for this run's trace */

void tracing_begin_run(void) {
    from_env = false;
    if (settings.flight) {
        print_buf(t.flight_path, sizeof t.flight_path, "gort-flight-%d.json", os_getpid());
        switch_on(true);
    } else if (env_trace[0]) {
        int r = (int)start_into(env_trace);
        from_env = r == 0;
        const char *why = r == -ENOENT ? "there is no such directory" : strerror(-r);
        if (r < 0) print_fd(2, "gort: GORT_TRACE=%s ignored: %s\n", env_trace, why);
    }
}

void tracing_end_run(void) {
    bool begun = from_env;
    from_env = false;
    int r = begun ? tracing_stop() : 0;
    if (r != 0 && r != -EINVAL) { /* else it is whole, or the program has stopped it */
        const char *why = r == -EBADF ? "events are lost: the program has closed the trace's files"
                                      : strerror(-r);
        print_fd(2, "gort: GORT_TRACE=%s: %s\n", env_trace, why);
    }
    if (!flight_is_on()) return;
    switch_off(0);
    trace_signals_uninstall();
}

static void say_held(const char *path, int64_t held) {
    if (!t.ring.short_of)
        print_fd(2, "gort: the last %ldms are in %s\n", (held + GORT_MS / 2) / GORT_MS, path);
    else
        print_fd(2,
                 "gort: the last %ldms of %ldms are in %s: its %lu MB of memory were full "
                 "(GORT_DEBUG=tracemax)\n",
                 held / GORT_MS, (int64_t)settings.flight, path,
                 t.ring.size * sizeof(TraceChunk) >> 20);
}

/* In a handler: no strerror. */
static void say_failed(bool flight, const char *path, int error) {
    if (flight) print_fd(2, "gort: the last events are not in %s: %s\n", path, errno_word(error));
    else print_fd(2, "gort: the trace is not whole: %s\n", errno_word(error));
}

static void write_at_last(bool flight) {
    const char *path = env_trace[0] ? env_trace : t.flight_path;
    int fd = flight ? open_trace(path) : t.named ? own_fd_number(&t.file) : -1, r = fd;
    switch_off(100 * GORT_MS);
    if (!flight && !t.named) return;
    if (flight) t.form = form_for(path);
    int64_t held = 0, keep = flight ? settings.flight * GORT_MS : 0;
    if (fd >= 0) r = trace_write_out(fd, t.session, flight, keep, &held);
    if (r == 0 && !flight && t.lost) r = -EBADF;
    if (r < 0) say_failed(flight, path, r);
    else if (flight) say_held(path, held);
}

void tracing_fatal(void) {
    wait_for_beginning();
    bool flight = flight_is_on();
    if (!session_stop(flight ? IDLE : ON)) {
        wait_for_writer();
        return;
    }
    write_at_last(flight);
    store_rel(&t.state, STOPPING); /* without a stopper; pairs with the load in stopper() */
}

/* A blocking call on a goroutine: opening a file may block, and nothing preempts it half-way. */
EXPORT int gort_trace_start(const char *path) {
    if (in_forked_child()) return -ENOTCONN;
    if (path == NULL) return -EINVAL;
    if (load_acq(&t.state) != IDLE) return -EBUSY; /* before the file is emptied */
    M *m = getm();
    bool may_block =
        m && !m->plain && m->locks == 0 && !m->world && load_rlx(&m->curg->status) != G_SYSCALL;
    return (int)(may_block ? gort_blocking(start_into, (void *)path) : start_into((void *)path));
}

static long stop_blocking(void *arg) { return tracing_stop(); }

EXPORT int gort_trace_stop(void) {
    if (in_forked_child()) return -ENOTCONN;
    if (load_acq(&t.state) != ON) return -EINVAL;
    return (int)gort_blocking(stop_blocking, NULL);
}

static void trace_region_edge(const char *name, bool begins) {
    if (load_rlx(&trace_on) == 0 || name == NULL || in_forked_child()) return;
    M *m = getm();
    if (m == NULL || m->plain) return; /* only goroutines have regions */
    m = enter();
    trace_region(m, m->curg, name, begins);
    leave(m);
}

EXPORT void gort_region_begin(const char *name) { trace_region_edge(name, true); }
EXPORT void gort_region_end(const char *name) { trace_region_edge(name, false); }
