# The mutants of fork.c that are no fence (those: tests/script/model_pairs.sh).
mutant fork 'no barrier' sched/forkgate.c 's/    if (!alone) barrier_everywhere();//'
mutant fork 'the fork does not wait' sched/forkgate.c 's/        if (m != self) rests = await_rest(m);/;/'
mutant fork 'a new thread does not look' sched/forkgate.c 's/if (unlikely(add_seq(&forks, 0) != 0))/if (0)/'
mutant fork 'a sleeper goes on' sched/sched.h 's/    if (unlikely(load_rlx(&m->attn) & ATTN_FORK)) fork_gate_wait(m);//'
