#!/bin/bash
# The hook's two searchers over more seeds than make test has, linked and preloaded: numbers that
# change hands under a call that waits (tests/hook/reuse_test.c), and calls with arguments from the
# edges beside libc's own (tests/hook/same_test.c). FIRST and MANY choose the seeds.
set -u
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
first=${FIRST:-1000} many=${MANY:-4000} failed=0
hook=$(cd "$OUT" && pwd)/libgort-hook.so
for procs in 1 2 16; do
    for how in hook preload; do
        [ $how = preload ] && export LD_PRELOAD=$hook
        for t in reuse same; do
            GORT_MAXPROCS=$procs REUSE_SEED=$first REUSE_SCENES=$many SAME_SEED=$first \
                SAME_CASES=$((many * 5)) \
                timeout -s QUIT -k 5 600 "$OUT/tests/$how/${t}_test" </dev/null >"$WORK/out" 2>&1 ||
                { echo "$how/${t}_test, $procs Ps:"; tail -40 "$WORK/out"; failed=1; }
        done
        unset LD_PRELOAD
        first=$((first + many))
    done
done
exit $failed
