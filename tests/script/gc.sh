# The Boehm collector with goroutines: tests/gc at 1, 2 and 16 Ps, with every goroutine moved at
# every switch, with Ps taken at random, with the shared and the static libraries.
set -eu
. tests/lib/deps.sh
use_deps
[ -z "$SAN" ] || { echo 'skipped: a sanitizer and the collector do not go together'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: no collector for this machine here'; exit 77; }
# A collector that lacks some of the calls, as an older one does, is left alone.
cat >"$WORK/older.c" <<'C'
#include <gort.h>
#include <stdlib.h>
#define CALLED(name) void name(void) { abort(); }
CALLED(GC_init) CALLED(GC_is_init_called) CALLED(GC_register_my_thread) CALLED(GC_set_stackbottom)
CALLED(GC_is_heap_ptr) CALLED(GC_set_on_collection_event) CALLED(GC_set_push_other_roots)
CALLED(GC_push_all_eager) CALLED(GC_get_suspend_signal)
static int body(int argc, char **argv) { return 0; }
int main(int argc, char **argv) { return gort_main(body, argc, argv); }
C
"$CC" -Iinclude "$WORK/older.c" "$OUT/libgort.a" -lpthread -o "$WORK/older"
"$WORK/older" || { echo 'an older collector was called'; exit 1; }
if words=$(lack gc); then echo "skipped: $words"; exit 77; fi
"${MAKE:-make}" -s CC="$CC" DEBUG="${DEBUG:-}" "$OUT/libgort-gc.a"
build() { # name program libraries...
    local name=$1 source=$2
    shift 2
    "$CC" -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Iinclude \
        "tests/gc/$source.c" -o "$WORK/$name" "$@" -lpthread
}
run() { # program arguments...: said and shown when it fails
    timeout -s QUIT -k 5 200 "$@" >"$WORK/out" 2>&1 ||
        { \
        st=$?; echo "$* (GORT_MAXPROCS=${GORT_MAXPROCS:-} GORT_DEBUG=${GORT_DEBUG:-}): status $st"
        tail -40 "$WORK/out"; exit 1; }
}
for t in roots churn force; do build $t $t "$OUT/libgort-gc.a" "$OUT/libgort.a" -lgc; done
build roots-so roots -L"$OUT" -Wl,-rpath,"$PWD/$OUT" -lgort -lgc
for p in 1 2 16; do
    export GORT_MAXPROCS=$p
    run "$WORK/roots"
    run "$WORK/roots" init
    run "$WORK/churn"
done
GORT_MAXPROCS=4 run "$WORK/roots-so"
export GORT_MAXPROCS=3
GORT_DEBUG=migrate=1 run "$WORK/churn" 60
for i in 1 2 3; do GORT_DEBUG=retake=hammer run "$WORK/churn" 60; done
GORT_DEBUG=migrate=1 run "$WORK/roots"
GORT_DEBUG=retake=hammer run "$WORK/roots"
GORT_DEBUG=forcegc=30ms run "$WORK/force"
# Threads of the collector are not the program's: a deadlock is one.
st=0
GORT_DEBUG=forcegc=30ms timeout 100 "$WORK/force" stay >"$WORK/out" 2>&1 || st=$?
[ $st = 2 ] && grep -q 'all goroutines are asleep - deadlock!' "$WORK/out" ||
    { echo "no deadlock was found: status $st"; cat "$WORK/out"; exit 1; }
# The static collector; Debian's needs libdl and libatomic_ops not to be asked for.
gc_a=$("$CC" -print-file-name=libgc.a)
if [ -e "$gc_a" ]; then
    build roots-a roots "$OUT/libgort-gc.a" "$OUT/libgort.a" "$gc_a" -ldl
    run "$WORK/roots-a"
fi
# A whole program whose collector stops the threads itself.
"$CC" -O1 -Wall -Wextra -Werror tests/programs/collect.c -lgc -lpthread -o "$WORK/collect"
for p in 1 2 16; do
    export GORT_MAXPROCS=$p
    GORT_THREADS=1 LD_PRELOAD="$PWD/$OUT/libgort-hook.so" run "$WORK/collect"
    grep -q ' rounds, collected$' "$WORK/out" || { cat "$WORK/out"; exit 1; }
done
