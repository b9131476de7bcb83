#!/bin/bash
# Every system call and every allocation that tests/long/sysfault_walk.c makes the library ask for
# is made to fail: each with each error it can give, at its first, second ... call, and for good
# from some call on. And at random, all calls, over seeds. Each run ends by itself, with success or
# a clear error, and leaves nothing behind.
#
#   WALK=n              at most n places for each call and error (6)
#   SEEDS=n             random runs (200)
#   CALLS="mmap futex"  only these
set -u
walk=${WALK:-6} seeds=${SEEDS:-200} program=$WORK/walk
$CC -O1 -g -std=gnu11 ${SAN:+-fsanitize=$SAN} -pthread -Iinclude tests/long/sysfault_walk.c \
    "$OUT/libgort.a" -o "$program" || exit 1
export GORT_MAXPROCS=2
failed=0 runs=0 fatal=0
try() { # rules
    runs=$((runs + 1))
    local st=0
    { GORT_DEBUG=$1,sysfault=log timeout -s QUIT -k 5 120 "$program" >"$WORK/out" 2>&1 ||
        st=$?; } 2>/dev/null
    [ $st = 0 ] && return
    # A fatal error that says what is missing is a clear end, where there is no caller to tell.
    if [ $st = 134 ] && grep -q '^gort: fatal: .*\(no memory\|cannot\)' "$WORK/out"; then
        fatal=$((fatal + 1))
        return
    fi
    echo "GORT_DEBUG=$1: status $st"
    tail -40 "$WORK/out"
    failed=$((failed + 1))
}
GORT_DEBUG=sysfault=count "$program" >"$WORK/out" 2>"$WORK/counts" ||
    { cat "$WORK/out" "$WORK/counts"; echo 'fails without faults'; exit 1; }
while read -r _ _ name count errors; do
    case " ${CALLS:-$name} " in *" $name "*) ;; *) continue ;; esac
    for e in $errors; do
        step=$(((count + walk - 1) / walk))
        for ((n = 1; n <= count; n += step)); do try "sysfault=$name:$e:$n"; done
        # Those that mean "not now" come and go.
        case $name:$e in
            clone:EAGAIN) try "sysfault=$name:$e:3+" ;;
            io_uring_enter:*) try "sysfault=$name:$e:1+" ;;
            *:EINTR | *:EAGAIN) ;;
            *) try "sysfault=$name:$e:1+"; try "sysfault=$name:$e:$((count / 2 + 1))+" ;;
        esac
    done
    echo "$name: $count calls, $errors"
done <"$WORK/counts"
if [ -z "${CALLS:-}" ]; then
    for ((s = 1; s <= seeds; s++)); do try "sysfault=any:any:1/$((3 + s % 60)):$s"; done
fi
echo "$runs runs, $failed failed, $fatal ended by a fatal error that says what is missing"
[ $failed = 0 ]
