#!/bin/bash
# Retake without a signal, under the hammer (PREEMPTION: every P taken again and again, no hints) in
# the checked build: clean for HAMMER_SECONDS at 1, 2 and 4 Ps; and with each step of the protocol
# left out (GORT_DEBUG=break=N) an invariant is seen to break.
set -u
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
seconds=${HAMMER_SECONDS:-120}
$MAKE --no-print-directory DEBUG=1 lib >/dev/null || exit 1
lib=build/variant-debug/libgort.a
$CC -O2 -g -pthread -Iinclude tests/stress/hammer_stress.c $lib -o "$WORK/hammer" || exit 1
failed=0
for p in 1 2 4; do
    GORT_MAXPROCS=$p GORT_DEBUG=retake=hammer "$WORK/hammer" "$seconds" ||
        { echo "P=$p failed"; failed=1; }
done
for step in 1 2 3; do
    if GORT_MAXPROCS=2 GORT_DEBUG=retake=hammer,break=$step timeout 300 "$WORK/hammer" 60 \
        >"$WORK/out" 2>&1; then
        echo "step $step left out, and nothing broke"
        failed=1
    else
        echo "step $step left out: $(grep -m1 'gort: fatal' "$WORK/out")"
    fi
done
exit $failed
