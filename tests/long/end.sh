# Runtimes that end at any moment (tests/stress/end_stress.c), a minute each at 1, 2, 4 and 16 Ps:
# as it is, under ASan and TSan, and beside the monkey that holds single threads
# (tests/long/monkey.c). END_SECONDS=n: for longer.
set -u
[ -z "$SAN" ] || { echo 'skipped: it builds the sanitizers itself'; exit 77; }
seconds=${END_SECONDS:-60} failed=0
export TSAN_OPTIONS="halt_on_error=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
run() { # name procs command...
    local name=$1 procs=$2
    shift 2
    GORT_MAXPROCS=$procs timeout -s QUIT -k 5 $((seconds * 4 + 60)) "$@" >"$WORK/log" 2>&1 && return
    echo "$name, GORT_MAXPROCS=$procs:"
    tail -c 6000 "$WORK/log"
    failed=1
}
$CC -O2 tests/long/monkey.c -o "$WORK/monkey" || exit 1
for san in address thread; do
    $MAKE -s SAN=$san lib >"$WORK/build" 2>&1 || { cat "$WORK/build"; exit 1; }
    $CC -O1 -g -fsanitize=$san -Iinclude tests/stress/end_stress.c "$OUT/variant-$san/libgort.a" \
        -pthread -o "$WORK/end_$san" || exit 1
done
for procs in 1 2 4 16; do
    run plain $procs "$OUT/tests/stress/end_stress" "$seconds"
    run monkey $procs "$WORK/monkey" $procs "$OUT/tests/stress/end_stress" "$seconds"
    for san in address thread; do run $san $procs "$WORK/end_$san" "$seconds"; done
done
exit $failed
