#!/bin/bash
# Each system call on a descriptor is made to fail with each error it can give, while a program that
# takes errors for answers does every kind of I/O (tests/api/io_faults_test.c): it comes to its end,
# with all descriptors closed and every byte right. Here: the errors of a call one after the other,
# in a few runs for each call. With FULL=1 (tests/long/io_faults.sh) every single call of a run with
# every error, and seeds.
set -u
prog=$OUT/tests/api/io_faults_test
[ -x "$prog" ] || { echo "no $prog"; exit 1; }
export TMPDIR="$WORK"
failed=0 runs=0
once() { # GORT_DEBUG's value
    runs=$((runs + 1))
    GORT_MAXPROCS=${PROCS:-2} GORT_DEBUG=$1 timeout -s QUIT -k 5 "${EACH:-120}" "$prog" \
        >"$WORK/out" 2>&1
    local st=$?
    [ $st = 0 ] && return
    echo "GORT_MAXPROCS=${PROCS:-2} GORT_DEBUG=$1: status $st"
    head -60 "$WORK/out"
    failed=$((failed + 1))
    [ $failed -lt 5 ] || exit 1
}
# name, how often, errors
count() {
    GORT_MAXPROCS=2 GORT_DEBUG=uring=$1,sysfault=count "$prog" 2>&1 |
        sed -n 's/^gort: sysfault: //p'
}
# Not of this test: memory, threads, the dump and the start (tests/script/fault_walk.sh).
memory='alloc|clone|mmap|munmap|mprotect|madvise|process_madvise|sigaltstack'
dump='process_vm_readv|memfd_create|tgkill|membarrier|sched_getaffinity|clock_gettime|readlinkat'
ours() { grep -vE "^($memory|$dump) "; }

# Eight calls, drawn from the seed, each of which fails now and then.
drawn() { # seed uring
    printf 'uring=%d' "$2"
    awk -v s="$1" 'BEGIN {srand(s)} {print rand(), $1}' "$WORK/calls.$2" | sort -n | head -n 8 |
        while read -r _ name; do
            printf ',sysfault=%s:any:1/%d:%d' "$name" $((20 + $1 % 40)) "$1"
        done
}

for uring in 1 0; do
    count $uring | ours >"$WORK/calls.$uring"
    [ "$(wc -l <"$WORK/calls.$uring")" -ge 20 ] ||
        { echo "too few calls were made:"; cat "$WORK/calls.$uring"; exit 1; }
done
if [ -z "${FULL:-}" ]; then
    while read -r name n errors; do
        grep -q "^$name " "$WORK/calls.1" && uring=1 || uring=0
        for first in 1 3 7; do # the very first ones may be the runtime's own, at its start
            rules= k=$first
            for e in $errors; do
                [ $k -lt $((first + 8)) ] && rules="$rules,sysfault=$name:$e:$k"
                k=$((k + 1))
            done
            [ "$n" -lt $first ] || once "uring=$uring$rules"
        done
    done < <(sort -u -k1,1 "$WORK/calls.1" "$WORK/calls.0")
    for seed in 1 2 3 4 5; do once "$(drawn $seed 1)"; done
else
    for PROCS in ${ALL_PROCS:-1 2}; do
        for uring in 1 0; do
            while read -r name n errors; do
                [ "$n" -gt "${MOST:-30}" ] && n=${MOST:-30}
                for e in $errors; do
                    for k in $(seq 1 "$n"); do once "uring=$uring,sysfault=$name:$e:$k"; done
                done
            done <"$WORK/calls.$uring"
            for seed in $(seq 1 "${SEEDS:-200}"); do
                once "$(drawn $seed $uring)"
            done
        done
    done
fi
echo "$runs runs, $failed failed"
[ $failed = 0 ]
