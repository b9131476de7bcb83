# Fairness: mixes of goroutines on a machine in virtual time, each one's longest wait while it is
# runnable against the rule (tests/fair/mix.c). The seeds are always the same here;
# tests/long/fair.sh takes new ones.
set -u
[ -z "$SAN" ] || { echo 'skipped: the machine switches stacks by itself'; exit 77; }
[ -x "$OUT/tests/fair/fair" ] || { echo 'skipped: not for this processor'; exit 77; }
"$OUT/tests/fair/fair" 1 150 || exit 1
# guests of a thread that is locked to another goroutine
"$OUT/tests/fair/fair" 1794847515023 1 || exit 1
# a guest at the head of the global queue, and two that hand the P to each other past it
"$OUT/tests/fair/fair" 1794847500147 1 || exit 1
# a guest at the end of a slice, whose turn began another for the pair in the slot
"$OUT/tests/fair/fair" 1794857530128 1 || exit 1
# no slice comes to its end beside short sleepers, and the global queue is long
"$OUT/tests/fair/fair" 1794857554164 1 || exit 1
# a guest whose home is in the handler: what runs there came behind the ring at each turn
"$OUT/tests/fair/fair" 1795018479156 1 || exit 1
# guests that begin slices beside a pair in the slot, and one in the ring behind it
"$OUT/tests/fair/fair" 1795025205064 1 || exit 1
# a flood whose looks of one and of half a ring fell to the same end of the batches each time
FAIR_KINDS=flooder,loop "$OUT/tests/fair/fair" 1 20 || exit 1
# loops, of which one had every second slice
FAIR_KINDS=loop "$OUT/tests/fair/fair" 1 20
