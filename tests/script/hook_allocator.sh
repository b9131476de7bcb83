# A goroutine never leaves its thread in the middle of malloc, whatever the allocator's library
# waits by; and the first call of malloc, before the hook is loaded, gets from it what it calls
# without another malloc. tests/lib/allocator.c, preloaded and linked; and TCMalloc.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has an allocator of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
. tests/lib/deps.sh
use_deps
link="-Iinclude -L$OUT -Wl,-rpath,$(cd "$OUT" && pwd) -Wl,--no-as-needed"
$CC -O1 -g -Wall -fPIC -shared tests/lib/allocator.c -o "$WORK/liballocator.so"
# shellcheck disable=SC2086
$CC -O1 -g -Wall -DPROGRAM tests/lib/allocator.c -o "$WORK/program" $link \
    -lgort-hook -lgort -lpthread
# shellcheck disable=SC2086
$CC -O1 -g -Wall -DPROGRAM tests/lib/allocator.c -o "$WORK/linked" $link \
    -lgort-hook -lgort -L"$WORK" -Wl,-rpath,"$WORK" -lallocator -lpthread
for procs in 1 2 16; do
    GORT_MAXPROCS=$procs LD_PRELOAD="$WORK/liballocator.so" "$WORK/program" ||
        { echo "at $procs Ps: status $?"; exit 1; }
    GORT_MAXPROCS=$procs "$WORK/linked" || { echo "linked, at $procs Ps: status $?"; exit 1; }
done
# Its first call holds a lock of its own: a second one inside would wait for ever.
if has tcmalloc; then
    tcmalloc=-l:libtcmalloc_minimal.so.4
    # shellcheck disable=SC2086
    $CC -O1 -g -Wall -DPROGRAM tests/lib/allocator.c -o "$WORK/tcmalloc" $link \
        -lgort-hook -lgort $tcmalloc -lpthread
    "$WORK/tcmalloc" || { echo "with TCMalloc: status $?"; exit 1; }
else
    lack tcmalloc || true
fi
