# 10 GB through 1,000 goroutines whose only roots are their stacks (tests/gc/churn.c): nothing live
# is freed, the heap stays small.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer and the collector do not go together'; exit 77; }
echo '#include <gc.h>' | "$CC" -x c -fsyntax-only - 2>/dev/null ||
    { echo 'skipped: needs libgc-dev'; exit 77; }
"$CC" -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Iinclude tests/gc/churn.c \
    -o "$WORK/churn" "$OUT/libgort.a" -lgc -lpthread
for p in 1 2 16; do
    GORT_MAXPROCS=$p timeout -s QUIT -k 5 900 "$WORK/churn" 10240 >"$WORK/out" 2>&1 ||
        { echo "with $p Ps: status $?"; tail -40 "$WORK/out"; exit 1; }
    cat "$WORK/out"
done
