# The model of channels and select (tests/model/chan.c): all its scenes, and the mutants that are
# found soonest. The others in tests/long/model_mutants.sh.
set -u
. tests/model/lib.sh
holds 'channels' chan
mutant chan 'the claim is ignored' sync/chan.h \
    's/if (!wait_claim(w->g, w->ticket)) continue;/wait_claim(w->g, w->ticket);/'
mutant chan 'park unlocks at once' sched/sched.c \
    '/^void \*park_begin/,/^}/s/m->unlock = l;/if (l) unlock(l);/'
mutant chan 'no second look' sync/select.c \
    's/int r = select_under_locks(m, s, &wake);/int r = -EAGAIN;/'
exit 0
