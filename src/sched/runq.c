#include "sched/runq.h"

/* Without a lock this must not be fooled by a G on its way from the slot to the ring: the holder
 * swaps the slot before it pushes what was there, so read the tail again afterwards. */
bool runq_empty(P *p) {
    for (;;) {
        uint32_t head = load_acq(&p->head), tail = load_acq(&p->tail);
        G *next = load_acq(&p->runnext);
        if (load_acq(&p->tail) == tail) return head == tail && next == NULL;
    }
}

bool runq_overflow(P *p, G *gp, GList *list) {
    G *batch[RING / 2];
    uint32_t head = load_acq(&p->head);
    if (load_rlx(&p->tail) - head < RING) return false;
    for (uint32_t i = 0; i < RING / 2; i++) batch[i] = load_rlx(&p->ring[(head + i) % RING]);
    if (!cas_rel(&p->head, &head, head + RING / 2)) return false;
    for (uint32_t i = 0; i < RING / 2; i++) glist_push(list, batch[i]);
    glist_push(list, gp);
    return true;
}

/* The ring cannot grow at its head: everything comes off, and goes in again behind the list.
 * Thieves find it empty for that moment, as if a faster one had been there. */
void runq_put_first(P *p, GList *list) {
    G *rest[RING / 2];
    uint32_t head = load_acq(&p->head), tail = load_rlx(&p->tail), n;
    do {
        n = tail - head;
        check(n <= RING / 2);
        for (uint32_t i = 0; i < n; i++) rest[i] = load_rlx(&p->ring[(head + i) % RING]);
    } while (!cas_rel(&p->head, &head, tail));
    for (G *gp; (gp = glist_pop(list)) != NULL;) runq_push(p, gp);
    for (uint32_t i = 0; i < n; i++) runq_push(p, rest[i]);
}

/* Copies half of victim's ring to p's free places behind its tail; does not publish them. */
static uint32_t runq_grab(P *p, P *victim, bool slot_too) {
    uint32_t tail = load_rlx(&p->tail);
    for (;;) {
        uint32_t head = load_acq(&victim->head);
        uint32_t n = load_acq(&victim->tail) - head; /* pairs with runq_push */
        n -= n / 2;
        if (n == 0) {
            if (!slot_too) return 0;
            G *next = load_acq(&victim->runnext);
            if (next == NULL) return 0;
            /* The victim is probably about to run it (it has just made it ready and is going to
             * block): Go's back-off of 3 us, else the pair would bounce between the two Ps. The
             * same G may have come back to the slot, so the switches tell. */
            if (load_rlx(&victim->status) == P_RUNNING) {
                uint64_t switches = load_rlx(&victim->n.switches);
                int64_t until = time_after(os_now(), 3 * GORT_US);
                while (os_now() < until) arch_pause();
                if (load_rlx(&victim->n.switches) != switches) return 0;
                if (load_rlx(&victim->runnext) != next) continue;
            }
            if (!runnext_take(victim, next)) continue;
            store_rlx(&p->ring[tail % RING], next);
            return 1;
        }
        if (n > RING / 2) continue; /* head and tail of different moments */
        for (uint32_t i = 0; i < n; i++)
            store_rlx(&p->ring[(tail + i) % RING], load_rlx(&victim->ring[(head + i) % RING]));
        if (cas_acq_rel(&victim->head, &head, head + n)) return n;
    }
}

G *runq_steal(P *p, P *victim, bool slot_too, uint32_t *moved) {
    uint32_t n = runq_grab(p, victim, slot_too);
    *moved = n;
    if (n == 0) return NULL;
    uint32_t tail = load_rlx(&p->tail);
    G *gp = load_rlx(&p->ring[(tail + n - 1) % RING]);
    if (n > 1) store_rel(&p->tail, tail + n - 1); /* the stealer's ring was empty: it has room */
    return gp;
}

bool runq_remove(P *p, G *gp) {
    uint32_t at = load_acq(&p->head), tail = load_rlx(&p->tail);
    if (load_rlx(&p->runnext) == gp) {
        store_rlx(&p->runnext, NULL);
        return true;
    }
    while (at != tail && p->ring[at % RING] != gp) at++;
    if (at == tail) return false;
    for (; at + 1 != tail; at++) p->ring[at % RING] = p->ring[(at + 1) % RING];
    store_rel(&p->tail, tail - 1);
    return true;
}

void runq_drain(P *p, GList *list) {
    G *next = load_rlx(&p->runnext);
    if (next) {
        store_rlx(&p->runnext, NULL);
        glist_push(list, next);
    }
    uint32_t head = load_acq(&p->head), tail = load_rlx(&p->tail);
    for (; head != tail; head++) glist_push(list, p->ring[head % RING]);
    store_rel(&p->head, head);
}
