/*
 * Stalls: a goroutine that holds its P although others wait, longer than GORT_DEBUG=stall=N ms: a
 * pinned one, one in a GORT_NOPREEMPT function, one with signals blocked, a stopped world's owner.
 * The monitor prints it once per stall, with the goroutine's backtrace and how long its P was held.
 */
#include "stall.h"
#include "dump.h"

void stall_look(P *p, M *m, int64_t now) {
    if (settings.stall <= 0 || now - p->seen_when < settings.stall * GORT_MS) return;
    if (p->stalled_tick == p->seen_tick) return;
    G *gp = load_rlx(&m->curg);
    if (gp == NULL) return;
    p->stalled_tick = p->seen_tick;
    char buf[2048];
    Out o = OUT(2, buf);
    out_fmt(&o, "gort: stall: P%u held for %ldms while others wait\n", p->id,
            (long)((now - p->seen_when) / GORT_MS));
    dump_g(&o, gp, NULL);
    out_flush(&o);
}
