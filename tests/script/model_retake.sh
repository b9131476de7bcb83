# The models of the scheduler itself: a P that is taken away (tests/model/retake.c), and somebody
# awake for the next timer (tests/model/poller.c). Their large scenes: tests/long/model_large.sh;
# all their mutants: tests/long/model_mutants.sh.
set -u
. tests/model/lib.sh
holds 'a P is taken' retake
holds 'the poller, one P' poller
holds 'the poller, two Ps' poller -DPS_IN_USE=2
mutant retake 'preempted without a home' sched/preempt.c \
    '/^static void queue_here_locked/,/^}/s/^    store_rlx(&gp->home, m);//'
mutant poller 'no second look at the timers' sched/find.c \
    '/^static bool wait_in_poller/,/^}/s/^    if (sooner < until) .*//'
exit 0
