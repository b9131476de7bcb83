# A goroutine never leaves its thread in the middle of malloc, whatever the allocator's library
# waits by: tests/lib/allocator.c, preloaded.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has an allocator of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
link="-Iinclude -L$OUT -Wl,-rpath,$(cd "$OUT" && pwd) -Wl,--no-as-needed"
$CC -O1 -g -Wall -fPIC -shared tests/lib/allocator.c -o "$WORK/liballocator.so"
# shellcheck disable=SC2086
$CC -O1 -g -Wall -DPROGRAM tests/lib/allocator.c -o "$WORK/program" $link \
    -lgort-hook -lgort -lpthread
for procs in 1 2 16; do
    GORT_MAXPROCS=$procs LD_PRELOAD="$WORK/liballocator.so" "$WORK/program" ||
        { echo "at $procs Ps: status $?"; exit 1; }
done
