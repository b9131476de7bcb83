# GORT_DEBUG=help lists every setting, with its value and its default, and every variable, and the
# program does not start; what GORT_HTTP and GORT_TRACE cannot be is said in words.
set -u
cat >"$WORK/prog.c" <<'C'
#include <gort.h>
#include <stdio.h>
static int app(int argc, char **argv) { return puts("it runs") < 0; }
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
# shellcheck disable=SC2086
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
${CC:-cc} $san -Iinclude "$WORK/prog.c" "$OUT/libgort.a" -lpthread -o "$WORK/prog" || exit 1
bad=0
fail() { echo "$*"; bad=1; }
export GORT_MAXPROCS=3
GORT_DEBUG=stack=64k,help,leak=30s,signal=usr1,retake=off,flight=5 "$WORK/prog" \
    >"$WORK/out" 2>"$WORK/err" || fail "help: status $?"
[ ! -s "$WORK/err" ] || fail "help: stderr: $(cat "$WORK/err")"
grep -q "it runs" "$WORK/out" && fail 'help: the program was started'
for name in $(sed -n 's/^    {"\([a-z]*\)", AT(.*/\1/p' src/base/env.c) sysfault; do
    grep -q "^\.It Cm $name Ns =" man/gort_debug.3 || fail "gort_debug(3) does not explain $name"
    [ "$name" != break ] || continue # in debug builds
    grep -q "^  $name=" "$WORK/out" || fail "help: no $name"
done
for v in $(grep -rhoE '(env_get\(|keep\([^"]*)"GORT_[A-Z_]+"' src | grep -oE 'GORT_[A-Z_]+'); do
    grep -qE "(^  |^)$v=" "$WORK/out" || fail "help: no $v"
    grep -qx "\.It Ev $v" man/gort.7 || fail "gort(7) does not explain $v"
done
line() { # the setting, its value and its default
    grep -qE "^  $1=[a-zA-Z0-9]+ +$2 +$3 +[a-z]" "$WORK/out" || fail "help: not $1 $2 $3"
}
line stack 64k 0
line leak 30s 0
line forcegc 2 2
line signal usr1 urg
line retake off 0
line flight 5 0
line maxstack 1g 1g
line tracemax 1024 1024
grep -q '^  GORT_MAXPROCS=n .*processors used: 3 (now 3)' "$WORK/out" || fail 'help: no MAXPROCS'
awk 'length > 100' "$WORK/out" | grep -q . && fail 'help: a line is too long'

says() { # variable, words
    env "$1" "$WORK/prog" >"$WORK/out" 2>"$WORK/err" || fail "$1: status $?"
    grep -q "it runs" "$WORK/out" || fail "$1: the program did not go on"
    grep -qF "gort: $1 ignored: $2" "$WORK/err" || fail "$1: $(cat "$WORK/err")"
    ! grep -qE 'No such file|Invalid argument' "$WORK/err" || fail "$1: $(cat "$WORK/err")"
}
says GORT_HTTP=6060 'no address: a port stands behind a colon, as in :6060'
says GORT_HTTP=:abc 'no address: it is host:port'
says GORT_HTTP=unix:/no/such/socket 'there is no such directory'
says GORT_TRACE=/no/such/dir/x 'there is no such directory'
says GORT_DEBUG=flihgt=100 'unknown name, perhaps flight; GORT_DEBUG=help lists all'
exit $bad
