# gort-run --explore finds the bugs of examples/explore/pthreads within a few seeds, each time with
# the seed that it tells, and passes the programs put right; a seed is one history of a program that
# uses all that is hooked (tests/threads/scenes/mix.c).
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ "$ARCH" = x86_64 ] || { echo 'skipped: threads stay threads here'; exit 77; }
set -u
fail() {
    echo "$1"
    cat "$WORK/said"
    exit 1
}
build() { # source name flag...
    from=$1 to=$2
    shift 2
    "$CC" -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -pthread "$@" \
        "$from" -o "$WORK/$to" || fail "$from does not compile"
}
explore() { timeout -k 1 200 tools/gort-run --explore "$@" >"$WORK/said" 2>&1; }

for bug in 'lost_wakeup all threads are asleep - deadlock' \
    'lock_order which is held by goroutine' 'counter workers counted to'; do
    set -- $bug
    name=$1
    shift
    build "examples/explore/pthreads/$name.c" "$name"
    explore -n 100 "$WORK/$name"
    [ $? = 1 ] || fail "$name: no seed fails"
    grep -q "$*" "$WORK/said" || fail "$name: not for this reason: $*"
    grep -q 'goroutine .* goes on: pthread_.* in .* '"$name.c:[0-9]" "$WORK/said" ||
        fail "$name: no schedule"
    seed=$(sed -n 's/^Again: gort-run --explore --seed \([0-9:]*\) .*/\1/p' "$WORK/said")
    for i in 1 2 3; do
        GORT_SIM_LOG=$WORK/schedule$i explore --seed "$seed" "$WORK/$name"
        [ $? = 0 ] && fail "$name: not again with seed $seed"
        grep -q "$*" "$WORK/said" || fail "$name: again, not for this reason: $*"
    done
    cmp "$WORK/schedule1" "$WORK/schedule2" && cmp "$WORK/schedule1" "$WORK/schedule3" ||
        fail "$name: the schedule is not the same"
    build "examples/explore/pthreads/$name.c" "${name}_right" -DRIGHT
    explore -n 60 "$WORK/${name}_right" || fail "$name put right: a seed fails"
    grep -q '^60 seeds passed' "$WORK/said" || fail "$name put right: no last line"
done

build tests/threads/scenes/mix.c mix
for seed in 1 2 3; do
    for i in 1 2 3 4 5; do
        explore --seed $seed "$WORK/mix" || fail "mix, seed $seed: status $?"
        cat "$WORK/said"
    done | sort -u >"$WORK/history$seed"
    [ "$(wc -l <"$WORK/history$seed")" = 1 ] || {
        cat "$WORK/history$seed"
        fail "mix, seed $seed: more than one history"
    }
done
[ "$(cat "$WORK"/history? | sort -u | wc -l)" = 3 ] || fail 'mix: two seeds are one history'

# Options end at the program; no seed, no program and no number are errors.
printf '#!/bin/sh\n[ "$*" = "-n 3 --seed" ]\n' >"$WORK/args"
chmod +x "$WORK/args"
explore --seed 5 "$WORK/args" -n 3 --seed || fail 'arguments of the program'
for wrong in "--seed x $WORK/mix" "-n many $WORK/mix" '' "--seed 1 $WORK/nothing-there" \
    "-n 1 $WORK/nothing-there"; do
    explore $wrong
    [ $? = 2 ] || fail "--explore $wrong: not status 2"
done
exit 0
