# The mutants of mutex.c, and its largest scene.
holds 'the mutex' mutex -DMORE
mutant mutex 'no barrier before sleeping' sync/mutex.c 's/if (os_membarrier() != 0) {/if (false) {/'
mutant mutex 'no wait for those about to free it' sync/mutex.c 's/load_acq(&m->unlocking) == mu; i++/i < 0; i++/'
mutant mutex 'slow without a second look' sync/mutex.c 's/if (make_slow(mu)) continue;/if (make_slow(mu) \&\& or_seq(\&mu->state_, PARKED | SLOW_ONE)) break;/'
mutant mutex 'asleep on one that is not slow' sync/mutex.c 's/if (!(old & SLOW) && load_rlx(&slow_first)) {/if (false) {/'
mutant mutex 'the mark comes after the look' sync/mutex.c '/^    store_rlx(&m->unlocking, mu);/d; s/^    if (likely(alone)) store_rel(&mu->state_, 0);/    store_rlx(\&m->unlocking, mu); if (likely(alone)) store_rel(\&mu->state_, 0);/'
mutant mutex 'the mark goes before the store' sync/mutex.c 's/^    if (likely(alone)) store_rel(&mu->state_, 0);/    store_rel(\&m->unlocking, NULL); if (likely(alone)) store_rel(\&mu->state_, 0);/'
mutant mutex 'freed without a look' sync/mutex.c 's/bool alone = load_rlx(&mu->state_) == LOCKED;/bool alone = true;/'
mutant mutex 'the count takes the sleepers along' sync/mutex.c 's/return (state & ~(uint32_t)LOCKED) - (alone ? SLOW_ONE : 0);/return 0;/' -DMORE
mutant mutex 'looked at after it was freed' sync/mutex.c 's/^    store_rel(&m->unlocking, NULL);/    store_rel(\&m->unlocking, NULL); and_seq(\&mu->state_, ~SLOW);/'
mutant mutex 'a sleeper is woken without a mark' sync/mutex.c 's/else if (!s->granted) next = (next & ~(uint32_t)LOCKED) | WOKEN;/else if (!s->granted) next = next \& ~(uint32_t)(LOCKED | PARKED);/'
mutant mutex 'who was woken keeps the mark' sync/mutex.c 's/return a->awoke ? state & ~(uint32_t)WOKEN : state;/return state;/'
mutant mutex 'asleep without looking whether it is free' sync/mutex.c '/^static M \*sleep_once/,/^}/s/if (!(old & LOCKED)) {/if (false) {/'
mutant mutex 'handed over and freed' sync/mutex.c 's/else if (!s->granted) next = /else next = /'
