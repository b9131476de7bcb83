#!/bin/bash
# Every benchmark runs with tiny counts and says its figures: that the programs work, no more.
# Their results are checked by themselves (sums, primes, answers), so a wrong one fails here.

set -u
# the counters that `hold` reads while they count are meant to race
[ "${SAN:-}" = thread ] && exit 77
# what is left at the end is left
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
B=$OUT/bench
failed=0

# must NAME COMMAND...: exits with 0 and prints at least one line `NAME... value unit`
must() {
    local name=$1 out status
    shift
    out=$("$@")
    status=$?
    if [ $status != 0 ] || ! grep -Eq "^$name[a-z0-9_]* -?[0-9.e+-]+ " <<<"$out"; then
        echo "$*: status $status, printed: $out"
        failed=1
    fi
}

# server PROGRAM KIND CLIENT...: starts it on a free port, loads it, ends it
server() {
    local kind=$2 pid addr=
    WORKERS=2 "$1" "$kind" 127.0.0.1:0 >"$WORK/addr" &
    pid=$!
    shift 2
    while [ -z "$addr" ] && kill -0 $pid 2>/dev/null; do
        sleep 0.05
        addr=$(sed -n 's/^listening //p' "$WORK/addr")
    done
    if [ -z "$addr" ]; then
        echo "the $kind server did not start"
        failed=1
    else
        must "$1" "$B/load" "$1" "$addr" "${@:2}"
    fi
    kill $pid
    wait $pid 2>/dev/null
}

for workers in 1 2; do
    export WORKERS=$workers
    for w in yield:100 yield1k:3 spawn:2000 spawn_burst:1000 pingpong:100 chan_buf:1000 \
        chan_mpmc:1000 \
        select:100 mutex:800 mutex_uncontended:1000 mutex_handoff:80 skynet:1000 sieve:20 fib:8 \
        timers:100 memory:1000 syscall:10 syscall_short:10 scale_g:100 scale_p:1000; do
        must "${w%:*}" "$B/bench" "${w%:*}" "${w#*:}"
    done
    must syscall_enter_exit "$B/bench" getpid 100
    must preempt_late "$B/bench" preempt 3
done
unset WORKERS
must floor_ "$B/floor" all 100
must yield "$B/pthread" all 100
# PEERS=dir: the peers whose sources are there; Boost.Fiber, where the machine has it.
if [ -z "${SAN:-}" ]; then
    bench/peers "$WORK/peers" ${PEERS:+"$PEERS"}
    for p in "$WORK"/peers/peer_*; do
        case $p in *'*' | *.version) continue ;; esac
        for workers in 1 2; do
            [ -z "$(WORKERS=$workers "$p" list)" ] || WORKERS=$workers must yield "$p" all 1000
        done
        [ -s "$p.version" ] || { echo "$p has no version"; failed=1; }
    done
fi
must hold_blocking "$B/hold" blocking 10
must hold_enter_exit "$B/hold" enter 1000
must hold_share "$B/hold" share 0.2 4
must hold_tax "$B/hold" tax 0.5
for kind in loop malloc printf qsort avx mutex usleep pipe poll flock; do
    must "beat_$kind" "$B/hold" beat $kind 0.2
done
server "$B/bench" echo echo 10 0.1
server "$B/bench" echo wake 3
server "$B/bench" http http 10 0.1
exit $failed
