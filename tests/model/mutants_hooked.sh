# The mutants of hooked.c that are no fence (those: tests/script/model_pairs.sh).
mutant hooked 'asleep without a look at the word' hook/futex.c 's/^    if (load_rlx(f->word) == (uint32_t)f->value) return/    return/'
mutant hooked 'a release that looks at no queue' hook/inside.h '/^INLINE void released/,/^}/s/^    if (unlikely.*//'
mutant hooked 'who was hit before it slept sleeps' hook/queue.c 's/^    if (w->hit || (deadline/    if ((deadline/'
