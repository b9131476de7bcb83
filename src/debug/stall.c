/*
 * Stalls: a goroutine that holds its P although others wait.
 *
 * With GORT_DEBUG=stall=N the monitor reports each goroutine that keeps its P from others for more
 * than N ms (it is pinned, in a GORT_NOPREEMPT function, or has signals blocked), once, with its
 * backtrace. The time counts from when another begins to wait: before that nobody is kept.
 *
 * A goroutine that has slept in the kernel for a second while pinned is always reported. Its P
 * cannot be taken, and it may sleep for a lock of libc whose holder was preempted and waits for a
 * P. With one P that lasts for ever, and nothing else would say why.
 */
#include "debug/reports.h"
#include "debug/dump.h"

#define PINNED_FOR GORT_SEC

static bool sleeps_pinned(P *p, M *m, int64_t now) {
    return load_rlx(&m->pins) != 0 && now - p->waited_when >= PINNED_FOR &&
           os_thread_state(m->tid) == 'S';
}

static bool is_long(P *p, int64_t now) {
    return settings.stall > 0 && now - p->waited_when >= settings.stall * GORT_MS;
}

void stall_look(P *p, M *m, int64_t now) {
    if (p->stalled_tick == p->seen_tick) return;
    bool pinned = sleeps_pinned(p, m, now);
    G *gp = load_rlx(&m->curg);
    if (gp == NULL || !(pinned || is_long(p, now))) return;
    p->stalled_tick = p->seen_tick;
    char buf[2048];
    Out o = OUT(2, buf);
    out_fmt(&o, "gort: stall: P%u held for %ldms while others wait\n", p->id,
            (now - p->waited_when) / GORT_MS);
    if (pinned)
        out_str(&o, "its goroutine sleeps in the kernel while pinned, perhaps for a lock that a "
                    "preempted goroutine holds\n");
    dump_g(&o, gp, NULL);
    out_flush(&o);
}
