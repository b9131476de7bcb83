# The mutants of idle.c that are no fence (those: tests/script/model_pairs.sh).
mutant idle 'the monitor believes what moves' sched/deadlock.c 's/if (what != NOTHING) return what == MOVES;/if (what != NOTHING) return false;/' -DPS_IN_USE=1
mutant idle 'a searcher that gives up lasts' sched/deadlock.c 's/moves |= load_rlx(&sched.spinning) != 0;/lasts |= load_rlx(\&sched.spinning) != 0;/' -DPS_IN_USE=1
mutant idle 'counted down without a word' sched/find.c 's/sysmon_uncount(&sched.poll_waiters, n);/sub_seq(\&sched.poll_waiters, n);/' -DPS_IN_USE=1 -DSCENE=2
mutant idle 'who takes a P does not look at the flag' sched/wake.c 's/if (unlikely(load_rlx(&sysmon_sleeps) == 1)) sysmon_wake_soon();//' -DPS_IN_USE=1
mutant idle 'the last searcher wakes nobody' sched/find.c 's/if (left == 0 \&\& load_rlx(&sched.npidle) != 0) wakep(m);//' -DSCENE=5
mutant idle 'only searchers look again' sched/find.c 's/^    if (look_again(m)) return true;//'
mutant idle 'who hands a P off looks at no queue' sched/wake.c 's/if (first_idle \&\& .*/if (false) {/' -DSCENE=7
mutant idle 'the monitor does not look whether somebody asks' sched/sysmon.c 's/load_rlx(&mon.work) == NULL;/true;/' -DPS_IN_USE=1 -DSCENE=4
mutant idle 'who asks the monitor does not wake it' sched/sysmon.c '/^void sysmon_ask/,/^}/s/^    os_tgkill.*//' -DPS_IN_USE=1 -DSCENE=4
