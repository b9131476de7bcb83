#!/bin/bash
# Under gort-run a stack overflow of main's or of a thread's is told as one, with the frames that
# led there, and what such a program can do about it. It ends by SIGSEGV.
# tests/threads/scenes/overflow.c.
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
set -u
fail() {
    echo "$1"
    head -n 40 "$WORK/said"
    exit 1
}
says() { grep -q -- "$1" "$WORK/said" || fail "$scene: not a line with $1"; }
"$CC" -O1 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-infinite-recursion \
    -pthread tests/threads/scenes/overflow.c -o "$WORK/overflow" || exit 1
ulimit -c 0
ulimit -s 1024 || { echo 'skipped: no limit of the stack'; exit 77; }

for scene in main thread apart guarded; do
    timeout -k 1 60 tools/gort-run "$WORK/overflow" "$scene" >"$WORK/said" 2>&1
    [ $? = 139 ] || fail "$scene: not ended by SIGSEGV"
    [ "$(grep -c '^gort: fatal: ' "$WORK/said")" = 1 ] || fail "$scene: not one report"
    says '^gort: fatal: goroutine [0-9]*: stack overflow ([12][0-9]* KB, fault at '
    grep -q gort_attr "$WORK/said" && fail "$scene: advice for gort's own goroutines"
    says '  0x[0-9a-f]* deeper+0x[0-9a-f]* overflow.c:'
    grep -m 1 -A 1 '^goroutine ' "$WORK/said" | grep -q 'deeper+' ||
        fail "$scene: another's frames come first"
    case $scene in
        main) says ': ulimit -s gives' ;;
        *) says ': pthread_attr_setstacksize gives' ;;
    esac
done
