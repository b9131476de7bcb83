# Functions that outlive their runtime, for some seconds (tests/stress/behind_stress.c), alone and
# with the hook; minutes of it, and under the sanitizers: tests/long/behind.sh. The seed is printed:
# behind_stress SECONDS SEED plays it again.
set -u
failed=0
one() { # procs program
    GORT_MAXPROCS=$1 timeout -s QUIT -k 5 120 "$2" "${SECONDS_EACH:-2}" >"$WORK/log" 2>&1 && return
    echo "GORT_MAXPROCS=$1 $2:"
    tail -c 4000 "$WORK/log"
    failed=1
}
for procs in 1 2 4; do one $procs "$OUT/tests/stress/behind_stress"; done
[ -z "$SAN" ] || exit $failed # a sanitizer has hooks of its own in libc
$CC -O1 -g -DHOOKED -Iinclude tests/stress/behind_stress.c -L"$OUT" -Wl,--no-as-needed -lgort-hook \
    -lgort -Wl,-rpath,"$(cd "$OUT" && pwd)" -pthread \
    -o "$WORK/behind_hooked" || exit 1
for procs in 1 2 4; do one $procs "$WORK/behind_hooked"; done
exit $failed
