#!/bin/bash
# Fairness for longer, from a new seed; and mutants of the library, each of which some mix finds.
set -u
[ -z "$SAN" ] || { echo 'skipped: the machine switches stacks by itself'; exit 77; }
[ -x "$OUT/tests/fair/fair" ] || { echo 'skipped: not for this processor'; exit 77; }
"$OUT/tests/fair/fair" "$(date +%s)" "${MIXES:-2000}" || exit 1
. tests/fair/mutants.sh
exit 0
