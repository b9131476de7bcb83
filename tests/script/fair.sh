# Fairness: mixes of goroutines on a machine in virtual time, each one's longest wait while it is runnable against the rule
# (tests/fair/mix.c). The seeds are always the same here; tests/long/fair.sh takes new ones.
set -u
[ -z "$SAN" ] || { echo 'skipped: the machine switches stacks by itself'; exit 77; }
[ -x "$OUT/tests/fair/fair" ] || { echo 'skipped: not for this processor'; exit 77; }
"$OUT/tests/fair/fair" 1 150
