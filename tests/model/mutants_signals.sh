# The mutants of signals.c that are no fence (those: tests/script/model_pairs.sh).
mutant signals 'a wearer does not look' sched/body.c '/void wear_signals/,/^}/s/^    if (unlikely(load_seq(&s->attention).*//'
mutant signals 'a cancelled call does not look' threads/signals.c '/^bool thread_stay(/,/^}/s/.*stay_cancelled(t);//'
mutant signals 'the canceller does not mind the point' threads/signals.c 's/(due \&\& (load_rlx(&s->point) || load_rlx(&s->async)))/false/'
mutant signals 'who enables does not look' threads/cancel.c '/pthread_setcancelstate(int/,/^}/s/if (cancel_due(t)) signals_deliver(t);/if (0) {}/'
