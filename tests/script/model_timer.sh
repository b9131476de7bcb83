# The model of timers (tests/model/timer.c), and the mutants that are found soonest; the others in
# tests/long/model_mutants.sh.
set -u
. tests/model/lib.sh
holds 'timers' timer
mutant timer 'who deletes does not look again' sched/timer.c \
    's/^        if (load_rlx(&t->heap) == h) {/        {/'
mutant timer 'a stopped one fires' sync/time.c \
    's/if (t->armed && t->seq == seq) {/if (t->seq == seq) {/'
exit 0
