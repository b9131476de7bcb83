# gort-explore finds the planted bugs of examples/explore, passes what is right, shows a schedule
# that is the same each time and that docs/EXPLORE.md lists, and says no to nonsense.
[ "$SAN" != thread ] || { echo 'skipped: TSan finds the planted races first'; exit 77; }
set -u
tool=$OUT/bin/gort-explore
[ -x "$tool" ] || { echo "no $tool"; exit 1; }
fail() {
    echo "$1"
    [ -e "$WORK/log" ] && cat "$WORK/log"
    exit 1
}
build() {
    "$CC" -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter ${SAN:+-fsanitize=$SAN} \
        -pthread -Iinclude \
        "examples/explore/$1.c" "$OUT/libgort.a" -o "$WORK/$1" || fail "$1 does not compile"
}

for bug in 'lost_wakeup asleep - deadlock' 'lock_order asleep - deadlock' \
    'counter workers counted to'; do
    set -- $bug
    name=$1
    shift
    build "$name"
    "$tool" "$WORK/$name" --seeds 400 --jobs 2 >"$WORK/log" 2>&1
    [ $? = 1 ] || fail "$name: no seed fails"
    grep -q '^seed [0-9]* fails' "$WORK/log" || fail "$name: no seed named"
    grep -q 'goroutine .* goes on: ' "$WORK/log" || fail "$name: no schedule"
    grep -q "$*" "$WORK/log" || fail "$name: not for this reason: $*"
    again=$(sed -n 's/^Again: GORT_SIM=\([0-9:]*\) .*/\1/p' "$WORK/log")
    for i in 1 2; do
        GORT_SIM=$again GORT_SIM_LOG=$WORK/schedule$i timeout 60 "$WORK/$name" >/dev/null 2>&1 &&
            fail "$name: not again"
    done
    cmp "$WORK/schedule1" "$WORK/schedule2" || fail "$name: the schedule is not the same"
done

# The listing in docs/EXPLORE.md is what its commands print, but for offsets, which are the
# compiler's, and for the dump. Whatever adds or removes a point of choice in the library changes
# it: then this prints the listing that belongs there. A sanitizer and another processor have
# points of their own.
listing() { # of what stands on stdin
    sed -n '/^seed [0-9]/,/^Again: /p' | sed 's/+0x[0-9a-f]*/+0x/' |
        sed '/^  gort: fatal:/,/^Again:/{/^  gort: fatal:/b;/^Again:/b;d;}'
}
if [ -z "${SAN:-}" ] && [ "$ARCH" = x86_64 ]; then
    "$CC" -g examples/explore/lock_order.c -Iinclude "$OUT/libgort.a" -lpthread \
        -o "$WORK/lock_order" || fail 'lock_order does not compile as the document says'
    real=$(realpath "$tool")
    (cd "$WORK" && "$real" ./lock_order --seeds 1000) >"$WORK/log" 2>&1
    listing <"$WORK/log" >"$WORK/listing"
    listing <docs/EXPLORE.md | diff - "$WORK/listing" ||
        fail 'docs/EXPLORE.md (<) lists another run than its commands print (>); all of that:'
fi

build right
"$tool" "$WORK/right" --seeds 60 --jobs 2 >"$WORK/log" 2>&1 || fail "right: a seed fails"
grep -q '^60 seeds passed' "$WORK/log" || fail 'right: no last line'

"$tool" >/dev/null 2>&1
[ $? = 2 ] || fail 'no program: not status 2'
"$tool" "$WORK/right" --seeds many >/dev/null 2>&1
[ $? = 2 ] || fail 'a bad number: not status 2'
"$tool" "$WORK/nothing-there" --seeds 1 >/dev/null 2>&1
[ $? = 2 ] || fail 'no such program: not status 2'
"$tool" --seeds 1 -- sh -c 'exit 127' >"$WORK/log" 2>&1
[ $? = 1 ] || fail 'a program that ends with status 127: not status 1'
# Killed, it takes a run along that would not end.
mkfifo "$WORK/alive"
"$tool" --seeds 1 -- sh -c "exec sleep 1000 >$WORK/alive" >/dev/null 2>&1 &
explorer=$!
exec 3<"$WORK/alive"
kill -KILL $explorer
cat <&3
exec 3<&-
"$tool" true --seeds 2 >"$WORK/log" 2>&1
[ $? = 2 ] || fail 'a program without gort: not status 2'
grep -q 'no simulation ran' "$WORK/log" || fail 'a program without gort: not a word about it'
printf '#!/bin/sh\necho >>"%s"\n' "$WORK/runs" >"$WORK/without"
chmod +x "$WORK/without"
"$tool" "$WORK/without" --seeds 20 >/dev/null 2>&1
[ "$(wc -l <"$WORK/runs")" = 1 ] || fail 'a program without gort: run more than once'
GORT_SIM=abc timeout 60 "$WORK/counter" 2>&1 | grep -q 'GORT_SIM=abc ignored' ||
    fail 'GORT_SIM=abc passed unseen'
GORT_SIM=1 GORT_SIM_LOG=$WORK/nowhere/log timeout 60 "$WORK/right" 2>&1 |
    grep -q 'GORT_SIM_LOG=.*/nowhere/log ignored: No such file' ||
    fail 'a log that cannot be made passed unseen'
exit 0
