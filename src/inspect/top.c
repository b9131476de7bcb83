/*
 * Figures for gort-top, in a memory file that another process can map.
 *
 * gort-top must not stop the program, nor need a port or a signal. So the runtime keeps a memory
 * file of a few pages, which gort-top finds by name in /proc/PID/fd. While gort-top looks, it keeps
 * a time in the future in `watched`, which the monitor loads once a round, and the monitor writes
 * the figures ten times a second. Before the monitor sleeps because all Ps are idle it writes them
 * once more, so an idle program shows its true state without waking a thread; then without the
 * names of goroutines, for which the symbols of the executable may have to be read.
 *
 * The figures change under a sequence lock whose one writer is the monitor: seq odd, figures, seq
 * even. A reader copies the figures between two equal, even readings of seq. What it writes into
 * the page can mislead other readers only. The file is close-on-exec and goes with gort_main.
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "inspect/top_page.h"
#include "inspect/top_layout.h"
#include "sched/describe.h"
#include "sched/sched.h"
#include "sched/sim.h"
#include "debug/stats.h"
#include "unwind/symbols.h"
#include "os/ownfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PERIOD (100 * GORT_MS)

static TopPage *page; /* NULL: none. Mapped before the monitor starts, unmapped after its end */
static OwnFd page_file;
static int64_t last; /* the monitor only: when the figures were written */

/* Allocated and sealed: no store raises SIGBUS, though memory is short or another process acts. */
static void make_page(void) {
    long flags = MFD_CLOEXEC | MFD_ALLOW_SEALING, at = -1;
    int fd = os_fd_away((int)os_sys(SYS_memfd_create, (long)TOP_NAME, flags, 0, 0, 0, 0));
    if (fd < 0) return;
    if (os_sys(SYS_fallocate, fd, 0, 0, sizeof(TopPage), 0, 0) == 0 &&
        os_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL, 0, 0, 0) == 0)
        at = os_sys(SYS_mmap, 0, sizeof(TopPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at < 0 && at > -4096) {
        os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
        return;
    }
    page = (TopPage *)at;
    page_file = own_fd(fd);
}

void top_begin_run(void) {
    make_page();
    if (page == NULL) return;
    last = 0;
    page->pid = (uint32_t)os_getpid();
    page->begun = os_now();
    page->layout = TOP_LAYOUT;
    store_rel(&page->running, 1);
}

void top_end_run(void) {
    if (page == NULL) return;
    store_rel(&page->running, 0);
    os_unmap(page, sizeof *page);
    page = NULL;
    own_fd_close(&page_file);
}

static void title(G *gp, char *to) {
    g_name(gp, to); /* TOP_TITLE bytes, as g_name needs */
    if (to[0]) return;
    Named n = symbol_of(g_entry(gp));
    if (n.name) print_buf(to, TOP_TITLE, "%s", n.name);
}

static bool is_watched(int64_t now) { return load_rlx(&page->watched) > now; }

static void fill_p(TopP *to, P *p, int64_t now) {
    M *m = load_acq(&p->m);
    G *gp = m ? load_rlx(&m->curg) : NULL, *next = load_acq(&p->runnext);
    *to = (TopP){.status = load_rlx(&p->status), .queue = p_queue(p), .m = m ? (int32_t)m->id : -1};
    to->timers = load_rlx(&p->timers.count);
    to->switches = load_rlx(&p->n.switches);
    to->next = next ? load_rlx(&next->id) : 0;
    to->g = gp ? load_rlx(&gp->id) : 0;
    if (to->g == 0) return;
    to->ran_us = (uint32_t)p_ran_us(p, now);
    if (is_watched(now)) title(gp, to->title);
}

static void fill_m(TopM *to, M *m) {
    G *gp = load_rlx(&m->curg);
    P *p = load_rlx(&m->p);
    *to = (TopM){.id = m->id, .p = p ? (int32_t)p->id : -1, .g = gp ? load_rlx(&gp->id) : 0};
    print_buf(to->state, sizeof to->state, "%s", m_state(m, gp));
}

static void fill_tables(TopFigures *f, int64_t now) {
    uint32_t ps = 0, ms = 0; /* not in the page, where a reader could change them */
    for (uint32_t i = 0; i < load_rlx(&sched.procs) && i < TOP_PS; i++) {
        P *p = load_acq(&sched.ps[i]);
        if (p) fill_p(&f->p[ps++], p, now);
    }
    for (M *m = load_acq(&sched.all_ms); m && ms < TOP_MS; m = load_acq(&m->all))
        if (load_acq(&m->alive)) fill_m(&f->m[ms++], m);
    f->ps = ps;
    f->ms = ms;
}

static void top_fill(TopFigures *f, int64_t now) {
    gort_stats s;
    gort_stats_read_sized(&s, sizeof s);
    f->now = now;
#define FIGURE(name) f->name = s.name
    FIGURE(goroutines), FIGURE(goroutines_created), FIGURE(maxprocs), FIGURE(idle_procs);
    FIGURE(threads), FIGURE(idle_threads), FIGURE(spinning_threads), FIGURE(threads_created);
    FIGURE(global_queue), FIGURE(local_queues), FIGURE(switches), FIGURE(steals), FIGURE(stolen);
    FIGURE(global_gets), FIGURE(overflows), FIGURE(handoffs), FIGURE(retakes);
    FIGURE(preempt_requests), FIGURE(preemptions), FIGURE(timers), FIGURE(netpoll_wakeups);
    FIGURE(stack_bytes_reserved), FIGURE(stack_bytes_cached), FIGURE(syscalls_blocking);
#undef FIGURE
    f->poll_waiters = load_rlx(&sched.poll_waiters);
    f->in_syscall = load_rlx(&sched.in_syscall);
    fill_tables(f, now);
}

static void publish(int64_t now) {
    last = now;
    store_rlx(&page->seq, page->seq + 1);
    fence_full(); /* a reader that sees a new figure sees the odd seq */
    top_fill(&page->figures, now);
    store_rel(&page->seq, page->seq + 1); /* pairs with the reader's acquire */
}

static void top_look(M *m, int64_t now) {
    if (page && unlikely(is_watched(now)) && now - last >= PERIOD && !sim_on) publish(now);
}

/* Nothing is written while gort-top looks: it would see nothing but idle moments. */
static int64_t top_idle(int64_t now) {
    if (page && is_watched(now)) return time_after(now, PERIOD);
    if (page && !sim_on) publish(now);
    return GORT_FOREVER;
}

const MonitorClient top_client = {NULL, top_look, top_idle};
