#!/bin/bash
# The large scenes of the models (tests/model): up to millions of states each.
set -u
. tests/model/lib.sh
large() { # name model
    compile "$2" src "$WORK/model" || exit 1
    "$WORK/model" all || { echo "$1 fails"; exit 1; }
}
large 'a P is taken' retake
large 'the poller' poller
large 'straight' straight
exit 0
