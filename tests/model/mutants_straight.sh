# The mutants of straight.c.
mutant straight 'unlocks at once' sched/fastpath.h 's/^    m->unlock = l;/    if (l) unlock(l);/'
mutant straight 'goes straight, and says nothing of waiting' sched/fastpath.h 's/^    store_rlx(&gp->status, G_WAITING);.*//'
mutant straight 'who is next is not taken out of the slot' sched/fastpath.h 's/unlikely(!runnext_take(p, next))/false/'
mutant straight 'who is next is stolen too' sched/runq.h 's/return cas_acq_rel(&p->runnext, &expect, NULL);/store_rel(\&p->runnext, NULL); return expect != NULL;/'
mutant straight 'who was in the slot is forgotten' sched/fastpath.h 's/if (kicked != NULL \&\& unlikely(!runq_push(p, kicked))) ready_overflow(m, kicked);//'
mutant straight 'made ready, and who was in the slot is overwritten' sched/fastpath.h 's|G \*kicked = runnext_swap(p, gp);|G *kicked = NULL; store_rlx(\&p->runnext, gp);|'
mutant straight 'a yield unlocks at once' sched/sched.c '/^INLINE void \*yield_straight/,/^}/s/m->unlock = &sched.lock;/unlock(\&sched.lock);/'
mutant straight 'a yield that is not queued' sched/sched.c 's/glist_exchange(&sched.global, gp);/glist_pop(\&sched.global);/'
