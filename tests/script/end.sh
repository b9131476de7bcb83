# Runtimes that end at any moment, for some seconds (tests/stress/end_stress.c), with libgort.a and
# libgort.so; minutes of it, and under the sanitizers: tests/long/end.sh. The seed is printed:
# end_stress SECONDS SEED plays it again.
set -u
failed=0
one() { # procs program
    GORT_MAXPROCS=$1 timeout -s QUIT -k 5 120 "$2" "${SECONDS_EACH:-2}" >"$WORK/log" 2>&1 && return
    echo "GORT_MAXPROCS=$1 $2:"
    grep -v -e 'live page on' -e 'its traces and profiles' "$WORK/log" | tail -c 8000
    failed=1
}
$CC -O1 -g ${SAN:+-fsanitize=$SAN} -Iinclude tests/stress/end_stress.c -L"$OUT" -lgort \
    -Wl,-rpath,"$PWD/$OUT" -pthread \
    -o "$WORK/end_so" || exit 1
for procs in 1 2 4; do one $procs "$OUT/tests/stress/end_stress"; done
one 2 "$WORK/end_so"
END_KINDS=thread,want,chan,once one 2 "$OUT/tests/stress/end_stress"
# on a busy machine a thread waits for a CPU at any step of its own
hogs=
for i in 1 2 3 4; do
    (while :; do :; done) &
    hogs="$hogs $!"
done
END_KINDS=callback,interrupted,stops one 4 "$OUT/tests/stress/end_stress"
kill $hogs
exit $failed
