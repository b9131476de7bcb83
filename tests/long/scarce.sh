#!/bin/bash
# Running out, all of it (tests/scarce/scarce.c): every limit from where nothing begins to where
# nothing is felt, and every system call of the machine refused, each with ENOSYS and EPERM, before
# the start and while a runtime runs; 1 and 2 Ps.
#
#   CALLS="membarrier futex"  only these system calls, and no limits
#
# Left out: what ends a process or a handler, what a word on stderr takes, and rseq, without which
# libc ends the process.
set -u
program=$WORK/scarce
[ -z "$SAN" ] || { echo 'skipped: a sanitizer needs all of it for itself'; exit 77; }
$CC -O1 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-format-truncation \
    -fno-omit-frame-pointer \
    -pthread -Iinclude tests/scarce/scarce.c "$OUT/libgort.a" -o "$program" || exit 1
left_out=' exit exit_group rt_sigreturn write restart_syscall execve rseq '
printf '#include <sys/syscall.h>\n' | $CC -E -dM - |
    sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/\1/p' | sort >"$WORK/names"
nr() { printf '#include <sys/syscall.h>\nNR SYS_%s\n' "$1" | $CC -E -P - | sed -n 's/^NR //p'; }
failed=0
for name in ${CALLS:-$(cat "$WORK/names")}; do
    case $left_out in *" $name "*) continue ;; esac
    n=$(nr "$name")
    "$program" -p 2 "early:sys=$n/38" "late:sys=$n/1" >"$WORK/out" ||
        { echo "$name:"; cat "$WORK/out"; failed=1; }
done
[ -n "${CALLS:-}" ] && exit $failed
cases=
for n in 3 4 5 6 7 8 9 10 12 14 16 18 20 22 24 28 32; do cases="$cases early:nofile=$n"; done
for n in 1 2 4 6 8 12 16 20 24 28 32 40 48 64 96 128 200 300 500 1000 1100 2000 4000; do
    cases="$cases early:as=$n late:as=$n early:data=$n"
done
for n in 1 2 3 4 5 6 7 8 10; do cases="$cases early:nproc=$n"; done
for n in 16384 65536 262144; do cases="$cases early:stack=$n"; done
cases="$cases early:sigpending=0 late:sigpending=0 late:sigpending=1 early:memlock=0 late:memlock=0"
cases="$cases none late:full late:closefrom late:closehigh"
cases="$cases late:reuse=0 late:reuse=1 late:reuse=2 late:reuse=3 early:noproc late:closefrom+page"
for n in 0 1 2 3 4; do cases="$cases late:reuse+page=$n"; done
for p in 1 2; do "$program" -p $p $cases || failed=1; done
exit $failed
