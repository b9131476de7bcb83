# Under gort-run: programs without threads, scripts, make under it; libraries that are opened and
# closed while threads live, or make threads before main, and C++'s objects of threads
# (tests/threads/programs).
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
run=$PWD/tools/gort-run programs=tests/threads/programs
build=$(cd "$OUT" && pwd)
export LD_PRELOAD="$build/libgort-hook.so" # where the built tree is another one than the script's
fail() { echo "$1"; exit 1; }

# ---- no threads
"$run" true || fail 'true'
[ "$("$run" sh -c 'echo $(echo a; (echo b)); exit 0')" = 'a b' ] || fail 'a shell'
r=0
"$run" sh -c 'exit 9' || r=$?
[ $r = 9 ] || fail "a status of 9 is $r"
printf 'all: a b\na b:\n\t@echo $@ >$@.out\n' >"$WORK/Makefile"
"$run" $MAKE -s -j2 -C "$WORK" >"$WORK/made" 2>&1 || { cat "$WORK/made"; fail 'make'; }
[ "$(cat "$WORK/a.out" "$WORK/b.out")" = 'a
b' ] || fail 'what make has made'

# ---- in all ways
both() { # what, program, arguments
    what=$1
    shift
    LD_PRELOAD= "$@" >"$WORK/native" 2>&1 || { cat "$WORK/native"; fail "$what, native"; }
    for procs in 1 2 16; do
        timeout 120 "$run" -p $procs "$@" >"$WORK/out" 2>&1 ||
            { r=$?; cat "$WORK/out"; fail "$what at $procs Ps: status $r"; }
        cmp "$WORK/native" "$WORK/out" || { cat "$WORK/out"; fail "$what at $procs Ps: output"; }
    done
}
flags="-O1 -g -Wall -Werror -pthread"
$CC $flags -fPIC -shared -DFIRST_VALUE=100 $programs/module.c -o "$WORK/dynamic.so"
$CC $flags -fPIC -shared -DFIRST_VALUE=5000 \
    -DSTORAGE='__attribute__((tls_model("initial-exec")))' $programs/module.c -o "$WORK/static.so"
$CC $flags $programs/modules.c -o "$WORK/modules" -ldl
both 'libraries, opened and closed' "$WORK/modules" "$WORK/dynamic.so" "$WORK/static.so"
$CC $flags -fPIC -shared $programs/early.c -o "$WORK/libearly.so"
$CC $flags $programs/late.c -o "$WORK/late" -L"$WORK" -learly -Wl,-rpath,"$WORK"
both 'threads of a constructor' "$WORK/late"
$CC $flags -fPIC -shared $programs/clock.c -o "$WORK/clock.so" -ldl
LD_PRELOAD=$LD_PRELOAD:$WORK/clock.so both 'a clock in between' "$WORK/late"
if command -v g++ >/dev/null; then
    g++ -std=c++17 $flags $programs/objects.cc -o "$WORK/objects"
    both "C++'s objects of threads" "$WORK/objects"
    [ "$(cat "$WORK/native")" = 'mains two one' ] || { cat "$WORK/native"; fail 'order'; }
fi
