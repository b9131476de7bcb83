# The mutants of sections.c that are no fence (those: tests/script/model_pairs.sh).
mutant sections 'no barrier' api/init.c 's/^    barrier_everywhere();//'
mutant sections 'no pause where there is no membarrier' sched/sched.h 's/if (os_membarrier() != 0) os_nap(GORT_MS);/os_membarrier();/' -DNO_MEMBARRIER
mutant sections 'the end does not wait for sections' api/init.c '/^static void stop(/,/^}/s/^    await_sections(m);//'
mutant sections 'no second wait for sections' api/init.c '/^static void take_back(/,/^}/s/^    await_sections(m);//'
mutant sections 'the second wait comes too early' api/init.c '/^static void take_back(/,/^}/{s/^    await_sections(m);//;s/^    each_g(undo_wait, NULL);/    await_sections(m);\n    each_g(undo_wait, NULL);/}'
mutant sections 'a section that has slept is not counted again' sched/sched.h '/^INLINE void section_resumes(/,/^}/s/^    store_rlx(&m->rest, 0);//'
mutant sections 'a section inside a blocking call is not waited for' api/init.c 's/load_acq(&m->locks) <= load_rlx(&m->rest)/load_rlx(\&m->rest) != 0 || load_acq(\&m->locks) == 0/'
mutant sections 'the mark is cleared by a section inside of another' sched/preempt.c '/^NOINLINE void leave_slow(/,/^}/s/if (unlikely(m->plain) \&\& m->locks == 0) and_seq/if (unlikely(m->plain)) and_seq/'
mutant sections 'a goroutine is started without a look at running' sched/go.c '/^int go_start(/,/^}/{/^    if (unlikely(!load_acq(&sched.running)))/{N;d}}'
mutant sections 'one is made ready without a look at running' sched/sched.c '/^static NOINLINE void ready_without_p(/,/^}/s/^    if (unlikely(!load_acq(&sched.running))) return;//'
mutant sections 'some are made ready without a look at running' sched/sched.c '/^void ready_list(/,/^}/s/^    if (m->p == NULL \&\& unlikely(!load_acq(&sched.running))) return;.*//'
