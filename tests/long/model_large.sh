#!/bin/bash
# The large scenes of the models (tests/model): up to millions of states each.
set -u
. tests/model/lib.sh
large() { # name model flags...
    local name=$1 model=$2
    shift 2
    compile "$model" src "$WORK/model" "$@" || exit 1
    "$WORK/model" all || { echo "$name fails"; exit 1; }
}
large 'a P is taken' retake
large 'the poller' poller
large 'straight' straight
large 'who is awake, weak' idle -DMODEL_WEAK=1
large 'the poller, weak' poller -DMODEL_WEAK=1
large 'a P without its thread, weak' poller -DPS_IN_USE=2 -DSCENE=2 -DMODEL_WEAK=1 -DMODEL_BUFFER=8
exit 0
