#!/bin/bash
# Running out, the quick walk (tests/scarce/scarce.c; all of it: tests/long/scarce.sh): each thing a
# program can be short of, once, with libgort.a and libgort.so. And every public call of the header
# is known to the searcher.
set -u
program=$WORK/scarce
[ -z "$SAN" ] || { echo 'skipped: a sanitizer needs all of it for itself'; exit 77; }
build() { # library, output
    $CC -O1 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-format-truncation \
        -fno-omit-frame-pointer \
        -pthread -Iinclude tests/scarce/scarce.c "$1" -Wl,-rpath,"$PWD/$OUT" -o "$2" || exit 1
}
build "$OUT/libgort.a" "$program" && build "$OUT/libgort.so" "$program-so"

# gort_fn is a type; the names of GORT_NOPREEMPT, and those that end in _, are the header's own.
$CC -E -Iinclude include/gort.h | grep -oE '\bgort_[a-z0-9_]+ ?\(' | tr -d ' (' |
    grep -vxE 'gort_fn|gort_nopreempt_.*|.*_' | sort -u >"$WORK/header"
"$program" -n | sort -u >"$WORK/known"
diff "$WORK/header" "$WORK/known" ||
    { echo 'tests/scarce/calls.h and include/gort.h differ'; exit 1; }

nr() { printf '#include <sys/syscall.h>\nNR SYS_%s\n' "$1" | $CC -E -P - | sed -n 's/^NR //p'; }
failed=0
"$program" -p 2 none late:full late:closefrom early:noproc early:as=48 late:as=8 late:as=0 \
    early:nproc=1 early:nproc=2 early:nproc=3 early:nproc=4 early:data=48 \
    early:sigpending=0 late:sigpending=0 early:memlock=0 \
    "early:sys=$(nr membarrier)/38" "early:sys=$(nr madvise)/22" \
    "late:sys=$(nr io_uring_enter)/1" || failed=1
"$program" -p 1 late:closehigh late:reuse=0 || failed=1
"$program" -p 2 late:reuse=1 late:closefrom+page "late:reuse+page=$((RANDOM % 5))" || failed=1
"$program-so" -p 1 late:full late:closehigh || failed=1
exit $failed
