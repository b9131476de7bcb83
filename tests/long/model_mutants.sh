#!/bin/bash
# Every mutant: each model of tests/model fails when it should. A mutant is the library with one
# step left out, swapped, or done without its lock, fence or claim.
set -u
. tests/model/lib.sh
for list in tests/model/mutants_*.sh; do . "$list"; done
exit 0
