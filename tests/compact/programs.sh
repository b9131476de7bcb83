# Programs on compact stacks, by LINKER, at 1 and 2 Ps, and without signals for preemption.
. tests/compact/lib
has_linker "$LINKER" || { echo "skipped: no ld.$LINKER"; exit 77; }
"$CC" -O2 -g -Iinclude -c tests/compact/mix_plain.c -o "$WORK/mix_plain.o"
build "$LINKER" "$WORK/features" tests/compact/features.c
build "$LINKER" "$WORK/mix" tests/compact/mix.c "$WORK/mix_plain.o"
build "$LINKER" "$WORK/overflow" tests/compact/overflow.c
for procs in 1 2; do
    for debug in asyncpreemptoff=0 asyncpreemptoff=1; do
        GORT_MAXPROCS=$procs GORT_DEBUG=$debug "$WORK/features" "$(mode_of "$LINKER")"
        GORT_MAXPROCS=$procs GORT_DEBUG=$debug "$WORK/mix"
    done
done
if command -v c++ >/dev/null; then
    build "$LINKER" "$WORK/exceptions" tests/compact/exceptions.cc
    "$WORK/exceptions"
fi
# The limit: a line, the dump with the function that grew, SIGSEGV.
status=0
GORT_DEBUG=maxstack=4m "$WORK/overflow" >"$WORK/out" 2>"$WORK/err" || status=$?
[ $status = 139 ] || { echo "overflow ended with $status"; cat "$WORK/err"; exit 1; }
grep -q 'gort: fatal: goroutine 2: stack overflow (' "$WORK/err"
grep -q ' endless+' "$WORK/err"
