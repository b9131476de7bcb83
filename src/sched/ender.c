/* See ender.h. */
#include "sched/ender.h"
#include "base/hint.h"

static uint64_t ender_word(uint32_t ticket, uint32_t phase) {
    return (uint64_t)ticket << 32 | phase;
}

void ender_arm(Ender *e, uint32_t ticket, bool kept) {
    uint64_t arming = ender_word(ticket, ENDER_ARMING);
    if (kept) add_seq(&e->kept, 1);
    store_seq(&e->wait, arming); /* a Dekker pair with ender_strike */
    if (load_seq(e->cause) != 0) cas_seq(&e->wait, &arming, ender_word(ticket, ENDER_HIT));
}

bool ender_parked(Ender *e, uint32_t ticket) {
    uint64_t arming = ender_word(ticket, ENDER_ARMING);
    return cas_seq(&e->wait, &arming, ender_word(ticket, ENDER_PARKED)) ||
           arming != ender_word(ticket, ENDER_HIT);
}

void ender_strike(Ender *e, GList *list) {
    uint64_t wait = load_seq(&e->wait);
    while ((uint32_t)wait == ENDER_ARMING)
        if (cas_seq(&e->wait, &wait, (wait & ~(uint64_t)UINT32_MAX) | ENDER_HIT)) return;
    if ((uint32_t)wait != ENDER_PARKED || !wait_claim(e->gp, (uint32_t)(wait >> 32))) return;
    e->gp->param = &e->gp->param; /* as deadline_passed */
    glist_push(list, e->gp);
}

NOINLINE int wait_is_over(M *m, int64_t deadline) {
    int cause = use_cause(m);
    return cause ? cause : deadline <= os_now() ? hint_passed(deadline) : 0;
}
