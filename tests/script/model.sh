# The models of tests/model: the library's own code in every interleaving. And mutants of the queue:
# a step left out or done wrong fails in its model (the others': tests/long/model_mutants.sh).
set -u
. tests/model/lib.sh

holds 'ring, one thief' ring
holds 'ring, two thieves' ring -DTHIEVES=2
holds 'submit and give up' submit
holds 'with the fence alone' submit -DPLAIN_DECREMENT
holds 'one that has not searched gives up' submit -DBYSTANDER
holds 'the end of a watch' watch
holds 'likewise, and somebody was in the slot' watch -DKICKS
. tests/model/mutants_ring.sh
exit 0
