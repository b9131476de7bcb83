# The mutants of poller.c.

# Who arms a timer sees that the poller is taken and not yet until when: it breaks it off, or else the poller's fence and second look would
# do. Either is enough; both left out are not.
sed -i '/^void wake_for_timer/,/^}/s/if (until == 0 || when < until) netpoll_break();/if (when < until) netpoll_break();/' "$WORK/src/sched/wake.c"
mutant poller 'no fence behind poll_until' sched/find.c '/^static bool wait_in_poller/,/^}/s/^    fence_full();.*//'
cp src/sched/wake.c "$WORK/src/sched/wake.c"
mutant poller 'no fence behind a new first timer' sched/wake.c '/^void wake_for_timer/,/^}/s/^    fence_full();.*//'
mutant poller 'no second look at the timers' sched/find.c '/^static bool wait_in_poller/,/^}/s/^    if (sooner < until) .*//'
mutant poller 'the poller is not broken off' sched/wake.c '/^void wake_for_timer/,/^}/s/if (until == 0 || when < until) netpoll_break();//'
mutant poller 'nobody is woken for the first timer' sched/wake.c '/^void wake_for_timer/,/^}/s/^        wakep(m); .*/        ;/'
mutant poller 'a new first timer says nothing' sched/timer.c 's/^    if (earliest) wake_for_timer(m, when);//'
mutant poller 'the first is not published' sched/timer.c '/^static bool heap_push(/,/^}/s/^    if (first) publish_first(h);//'
mutant poller 'a P without its thread calls nobody' sched/wake.c 's/^    look_out(m, first_idle);//' -DPS_IN_USE=2 -DSCENE=2
