# The tests of threads as goroutines under the hammer: every P taken again and again, each switch to
# another thread, and beside the monkey, which holds single threads. HAMMER_SECONDS for all of it
# (300), HAMMER_SEED=n the first seed of the monkey.
set -u
. tests/lib/threads.sh
begin
$CC -O2 tests/long/monkey.c -o "$WORK/monkey" || fail 'the monkey does not compile'
seed=${HAMMER_SEED:-$$} end=$((SECONDS + ${HAMMER_SECONDS:-300})) runs=0 failed=0
# The monkey traces a whole process, so tests that look at their kernel threads, trace, or make
# children that outlive them are left to the hammer.
calm='child|exit|main_exit|real|rights|refused'
one() { # label test command...
    local label=$1 st=0
    shift
    runs=$((runs + 1))
    SECONDS_EACH=200 under "$p" "$@" >"$WORK/out" 2>&1 || st=$?
    [ $st = 0 ] || [ $st = 77 ] && return
    echo "$label: status $st"
    tail -n 100 "$WORK/out"
    failed=1
}
while [ $SECONDS -lt $end ]; do
    for p in 1 2 4 16; do
        for t in "$OUT"/tests/threads/*_test; do
            name=$(basename "$t")
            for debug in retake=hammer migrate=1 retake=hammer,migrate=1; do
                one "GORT_MAXPROCS=$p GORT_DEBUG=$debug $name" env GORT_DEBUG=$debug "$t"
            done
            [[ $name =~ ^($calm)_test$ ]] && continue
            seed=$((seed + 1))
            one "GORT_MAXPROCS=$p monkey $seed $name" "$WORK/monkey" $seed "$t"
        done
        [ $SECONDS -lt $end ] || break
    done
done
echo "$runs runs"
exit $failed
