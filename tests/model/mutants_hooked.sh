# The mutants of hooked.c that are no fence (those: tests/script/model_pairs.sh).
mutant hooked 'asleep without a look at the word' hook/futex.c '/^static long futex_park(/,/^}/s/^    if (load_rlx(f->word) == (uint32_t)f->value)//'
mutant hooked 'a release that looks at no queue' hook/hook_internal.h '/^INLINE void released/,/^}/s/^    if (has_waiters.*//'
mutant hooked 'a post that wakes nobody' hook/waitqueue.c '/^COLD uint32_t waitq_wake_anywhere/,/^}/s/^    uint32_t n = waitq_wake_queued.*/    uint32_t n = 0;/'
mutant hooked 'a handler that takes the lock it has interrupted' hook/waitqueue.c 's/^    M \*m = core->enter_anywhere();/    M *m = core->enter();/'
mutant hooked 'a debt that nobody is told of' hook/waitqueue.c 's/^        core->owe();//'
mutant hooked 'a debt that is written down after the monitor was told' hook/waitqueue.c '/^        store_rlx(&waitq_bucket(addr)->owed, 1);/d; s/^        core->owe();/        core->owe(); store_rlx(\&waitq_bucket(addr)->owed, 1);/'
mutant hooked 'a debt that is paid and then crossed out' hook/waitqueue.c '/if (load_rlx(&b->owed) \&\& xchg_seq(&b->owed, 0))/{N;s/if (.*\n *waitq_wake_queued(\(.*\));/if (load_rlx(\&b->owed)) { waitq_wake_queued(\1); store_rlx(\&b->owed, 0); }/}'
mutant hooked 'who was hit before it slept sleeps' hook/waitqueue.c 's/over = w->hit || (deadline/over = (deadline/'
