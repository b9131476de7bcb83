# The model of the plain cases of park, ready and yield, which go from goroutine to goroutine
# (tests/model/straight.c), and the mutants that are found soonest; the others in
# tests/long/model_mutants.sh.
set -u
. tests/model/lib.sh
holds 'straight' straight
mutant straight 'unlocks at once' sched/fastpath.h 's/^    m->unlock = l;/    if (l) unlock(l);/'
mutant straight 'a yield unlocks at once' sched/sched.c \
    '/^INLINE void \*yield_straight/,/^}/s/m->unlock = &sched.lock;/unlock(\&sched.lock);/'
exit 0
