#!/bin/bash
# gort-run's own words, and where its program's threads stay threads: a line says so, and why.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
fail() { echo "$*" >&2; cat "$WORK/out" "$WORK/err" >&2 2>/dev/null || true; exit 1; }
mkdir "$WORK/bin"
cp tools/gort-run "$WORK/bin"
ln -s "$(cd "$OUT" && pwd)" "$WORK/lib"
run() { # status program...
    local want=$1 got=0
    shift
    timeout 60 "$WORK/bin/gort-run" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || got=$?
    [ $got = "$want" ] || fail "gort-run $*: status $got, not $want"
}
says() { grep -qxF -- "gort-run: $1" "$WORK/err" || fail "it does not say: $1"; }
silent() { [ ! -s "$WORK/err" ] || fail "it says something: $*"; }

# ---- its words -----------------------------------------------------------------------------------

run 2
grep -q '^usage: gort-run' "$WORK/err" || fail "no usage"
run 0 --help
grep -q '^usage: gort-run' "$WORK/out" || fail "no usage where it is asked for"
run 2 --nonsense
run 2 -p many sh
says '-p takes a number'
run 2 -p 0 sh
says '-p takes 1 or more'
run 127 there-is-no-such-program
says 'there-is-no-such-program: not found'
run 127 ./there/is/none
says './there/is/none: not found'
run 126 "$WORK"
says "$WORK: is a directory"
run 126 ./Makefile
says './Makefile: is not executable'
run 3 sh -c '[ "$1" = "two words" ] && [ "$GORT_MAXPROCS" = "" ] && exit 3' sh 'two words'
run 3 -p 2 sh -c '[ $GORT_MAXPROCS = 2 ] && exit 3'
run 3 -- sh -c 'exit 3'
silent

if ! LD_PRELOAD=libgort-hook.so env true 2>&1 | grep -q .; then echo 'one is installed'; else
    mkdir -p "$WORK/alone/bin"
    cp tools/gort-run "$WORK/alone/bin"
    got=0
    "$WORK/alone/bin/gort-run" true >"$WORK/out" 2>"$WORK/err" || got=$?
    [ $got = 2 ] || fail "without a hook: status $got"
    says 'libgort-hook.so is not found: make builds it'
fi

# ---- programs ------------------------------------------------------------------------------------

cat >"$WORK/which.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *which(void *arg) {
    puts(gettid() >= 1 << 23 ? "goroutine" : "thread");
    return arg;
}
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, which, &thread) != 0) return 1;
    void *value;
    return pthread_join(thread, &value) != 0 || value != &thread;
}
END
build() { # name options...
    local name=$1
    shift
    "${@:-$CC}" "$WORK/which.c" -o "$WORK/$name" -pthread 2>"$WORK/err"
}
is() { grep -qx "$1" "$WORK/out" || fail "not a $1"; }
stays() { # file why
    run 0 "$WORK/$1"
    says "$WORK/$1: threads stay threads: $2"
    is thread
}

build which || fail "it cannot be built"
run 0 "$WORK/which"
silent
is goroutine
(PATH=$WORK:$PATH && run 0 which && is goroutine)
echo "exec '$WORK/which'" | sed '1i #!/bin/sh' >"$WORK/script"
chmod +x "$WORK/script"
run 0 "$WORK/script"
silent
is goroutine

build static "$CC" -static && stays static 'it is statically linked'
build static-pie "$CC" -static-pie && stays static-pie 'it is statically linked'
if command -v musl-gcc >/dev/null && build musl musl-gcc; then
    stays musl 'it is linked for musl'
fi
if build narrow "$CC" -m32; then
    stays narrow 'it is for another processor than libgort-hook.so'
fi
{ head -c 18 "$WORK/which"; printf '\0\0'; tail -c +21 "$WORK/which"; } >"$WORK/foreign"
chmod +x "$WORK/foreign"
"$WORK/bin/gort-run" "$WORK/foreign" 2>"$WORK/err" && fail "another processor's program runs"
says "$WORK/foreign: threads stay threads: it is for another processor than libgort-hook.so"

# As Go's linker marks a program; and one with another's mark.
note() { # owner
    printf '%s\n' '.section .note.owner, "a"' '.balign 4' '.long 4, 3, 4' ".ascii \"$1id\\0\\0\""
}
note 'Go\0\0' >"$WORK/go.s"
note 'No\0\0' >"$WORK/no.s"
build go "$CC" "$WORK/go.s" || fail "it cannot be built"
run 0 "$WORK/go"
grep -qx 'gort: threads stay threads: a Go program has goroutines of its own' "$WORK/err" ||
    fail "no word about Go"
is thread
build no "$CC" "$WORK/no.s" || fail "it cannot be built"
run 0 "$WORK/no"
silent
is goroutine

# The loader gives nothing to a program with another user's rights.
if [ "$(id -u)" = 0 ]; then
    cp "$WORK/which" "$WORK/set-id"
    chown nobody "$WORK/set-id"
    chmod 4755 "$WORK/set-id"
    chmod 755 "$WORK"
    stays set-id 'it is set-user-ID'
elif su=$(command -v su) && [ -u "$su" ]; then
    run 0 "$su" --version
    says "$su: threads stay threads: it is set-user-ID"
fi

# ---- libc and the processor ----------------------------------------------------------------------

preloaded() { # code: runs the program behind a library with it
    echo "$1" | $CC -x c -shared -fPIC -o "$WORK/before.so" - || fail "a library cannot be built"
    LD_PRELOAD=$WORK/before.so run 0 "$WORK/which"
}
# A libc that keeps what it knows of a thread at another place.
preloaded 'static char somewhere[4096];
void *pthread_self(void) { return somewhere; }'
grep -q '^gort: threads stay threads: ' "$WORK/err" || fail "no word about an unknown libc"
is thread
# A kernel that does not let programs set the thread pointer: by a system call, then.
preloaded '#include <sys/auxv.h>
#include <unistd.h>
unsigned long getauxval(unsigned long type) {
    if (type == AT_HWCAP2) (void)!write(2, "asked\n", 6);
    return 0;
}'
is goroutine
grep -q asked "$WORK/err" || [ "$ARCH" != x86_64 ] || fail "the processor is not asked"
