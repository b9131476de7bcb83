# The models of who is awake and of the pairs that have none else, on x86 and on weaker machines
# (MODEL_WEAK): that they hold. That each of their fences is needed: tests/script/model_pairs.sh.
# The large scenes: tests/long/model_large.sh.
set -u
. tests/model/lib.sh
holds 'who is awake' idle
holds 'who is awake, weak' idle -DMODEL_WEAK=1
holds 'the monitor' idle -DPS_IN_USE=1
holds 'the monitor, weak' idle -DPS_IN_USE=1 -DMODEL_WEAK=1
for model in desc ended ender soft hooked life fork signals; do
    holds "$model" $model
    holds "$model, weak" $model -DMODEL_WEAK=1
done
holds "the end of a runtime" exit
holds "the end of a runtime, no membarrier" exit -DMODEL_WEAK=1 -DNO_MEMBARRIER
holds 'sections at the end of a runtime' sections
holds 'likewise, weak' sections -DMODEL_WEAK=1
holds 'likewise, no membarrier' sections -DMODEL_WEAK=1 -DNO_MEMBARRIER
holds 'a fork beside sections, no membarrier' fork -DMODEL_WEAK=1 -DNO_MEMBARRIER
holds 'the page of gort-top' top -DMODEL_WEAK=2
holds 'the end of a watch, weak' watch -DMODEL_WEAK=1
holds 'the ring, weak' ring -DMODEL_WEAK=1
mutant idle 'the monitor believes what moves' sched/deadlock.c \
    's/if (what != NOTHING) return what == MOVES;/if (what != NOTHING) return false;/' -DPS_IN_USE=1
exit 0
