#!/bin/bash
# The large scenes of the models, and every mutant: each model of tests/model fails when it should. A mutant is the library with one step
# left out, swapped, or done without its lock, fence or claim.
set -u
. tests/model/lib.sh
for list in tests/model/mutants_*.sh; do . "$list"; done
large() { # name model
    compile "$2" src "$WORK/model" || exit 1
    timeout 900 "$WORK/model" all || { echo "$1 fails"; exit 1; }
}
large 'a P is taken' retake
large 'the poller' poller
exit 0
