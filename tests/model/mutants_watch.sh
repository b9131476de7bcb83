# The mutants of watch.c.
mutant watch 'the watch ends without a fence' sched/slotwatch.c '/fence_full(); \/\* pairs with the submit/d'
mutant watch 'the slot is looked at first' sched/slotwatch.c 's|^    store_rlx(&p->watch, 0);|    bool there = !runq_empty(p); store_rlx(\&p->watch, 0);|
    s|^    if (!runq_empty(p)) wakep(m);|    if (there) wakep(m);|'
mutant watch 'nobody is called at the end' sched/slotwatch.c 's|^    if (!runq_empty(p)) wakep(m);||'
mutant watch 'giving up never looks at a slot' sched/slotwatch.c 's|    return runq_empty(p);|    return load_acq(\&p->head) == load_acq(\&p->tail);|'
for flags in -DNO_GIVE_UP_FENCE -DPLAIN_SLOT; do
    compile watch src "$WORK/model" $flags || exit 1
    fails "watch $flags"
done
