# The model of the mutex (tests/model/mutex.c): all its scenes, and the mutants of its plain unlock
# that are found soonest. The others in tests/long/model_mutants.sh.
set -u
. tests/model/lib.sh
holds 'the mutex' mutex
mutant mutex 'no barrier before sleeping' sync/mutex.c 's/if (os_membarrier() != 0) {/if (false) {/'
mutant mutex 'no wait for those about to free it' sync/mutex.c \
    's/load_acq(&m->unlocking) == mu; i++/i < 0; i++/'
mutant mutex 'slow without a second look' sync/mutex.c \
    's/if (make_slow(mu)) continue;/'\
'if (make_slow(mu) \&\& or_seq(\&mu->state_, PARKED | SLOW_ONE)) break;/'
exit 0
