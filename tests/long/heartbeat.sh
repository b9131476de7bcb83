# 64 goroutines that read and fsync files at one P leave a 1 ms heartbeat goroutine at most 5 ms
# late at p99, with and without io_uring: one measurement of 20 s each, of all beats. On a machine
# where others work too it is their work that shows; a plain thread beside the goroutine tells how
# much of it (heartbeat.c), and the run asks for its share of the CPUs where it may. DIR=... for
# another file system than the build's.
set -u
[ -z "$SAN" ] || { echo 'skipped: a measurement'; exit 77; }
$CC -O2 -g -Wall -Iinclude tests/long/heartbeat.c "$OUT/libgort.a" -lpthread \
    -o "$WORK/heartbeat" || exit 1
dir=$(mktemp -d "${DIR:-$OUT}/heartbeat.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
for uring in 1 0; do
    GORT_DEBUG=uring=$uring setsid -w sh \
        -c 'echo -20 >/proc/self/autogroup; exec timeout -s QUIT 120 "$@"' sh \
        "$WORK/heartbeat" "$dir" "${BEAT_SECONDS:-20}" >"$WORK/out" 2>"$WORK/err" || failed=1
    echo "uring=$uring: $(cat "$WORK/out")"
    [ $failed = 0 ] || cat "$WORK/err"
done
exit $failed
