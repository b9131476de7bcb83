# The mutants of ring.c and submit.c.
mutant ring 'one too many in the ring' sched/runq.h 's/tail - head >= RING/tail - head > RING/'
mutant ring 'the tail before the place' sched/runq.h '/store_rlx(&p->ring\[tail % RING\], gp);/d
    s|store_rel(&p->tail, tail + 1);.*|store_rel(\&p->tail, tail + 1); store_rlx(\&p->ring[tail % RING], gp);|'
mutant ring 'the owner pops without a CAS' sched/runq.h 's/if (cas_rel(&p->head, &head, head + 1)) return gp;/store_rel(\&p->head, head + 1); return gp;/'
mutant ring 'the slot is taken without a CAS' sched/runq.h 's/return cas_acq_rel(&p->runnext, &expect, NULL);/store_rel(\&p->runnext, NULL); return expect != NULL;/'
mutant ring 'the thief steals without a CAS' sched/runq.c 's/if (cas_acq_rel(&victim->head, &head, head + n)) return n;/store_rel(\&victim->head, head + n); return n;/'
mutant ring 'the thief keeps what it runs' sched/runq.c 's/store_rel(&p->tail, tail + n - 1)/store_rel(\&p->tail, tail + n)/'
mutant ring 'overflow without a CAS' sched/runq.c 's/if (!cas_rel(&p->head, &head, head + RING \/ 2)) return false;/store_rel(\&p->head, head + RING \/ 2);/'

# On x86 the decrement is a fence by itself; a machine with a weaker one needs what is written there.
for flags in -DNO_SUBMIT_FENCE -DNO_RECHECK '-DNO_GIVE_UP_FENCE -DPLAIN_DECREMENT' '-DBYSTANDER -DONLY_SEARCHERS_LOOK'; do
    # shellcheck disable=SC2086
    compile submit src "$WORK/model" $flags || exit 1
    fails "submit $flags"
done
