#!/bin/sh
# A program with more rights than its caller obeys no GORT_ variable: they name files that it would
# write with its own rights. The library reads the environment at one place; and a program of root's
# with the set-user-ID bit, started by nobody with every variable set, does what it does with none.
set -eu
bad=0
fail() { echo "$*" >&2; bad=1; }

# One place. The tools run as whoever calls them; they may set variables for a child.
allowed='^src/base/env\.c:[0-9]+:const char \*env_get\(|^src/base/env\.[ch]:[0-9]+:[ /]\*|setenv'
allowed="$allowed|^tools/.*getenv\\(.LD_PRELOAD.\\)"
others=$(grep -rnE 'getenv|environ\b' src tools | grep -vE "$allowed|/\*[^*]*getenv" || true)
[ -z "$others" ] || fail "read the environment by env_get (src/base/env.c), not here:
$others"
variables=$(grep -rhoE '(env_get\(|->env\(|keep\([^"]*)"GORT_[A-Z_]+"' src |
    grep -oE 'GORT_[A-Z_]+' |
    sort -u)
for v in GORT_CGROUP_ROOT GORT_DEBUG GORT_HTTP GORT_HTTP_TOKEN GORT_MAXPROCS GORT_SIM GORT_SIM_LOG \
    GORT_THREADS GORT_THREADS_REAL GORT_TRACE; do
    echo "$variables" | grep -qx "$v" ||
        fail "$v is not read by env_get any more: this test looks for the wrong names"
done
[ "$(echo "$variables" | wc -l)" = 10 ] ||
    fail "a new variable: set it below, too. There are: $variables"
[ $bad = 0 ] || exit 1

if [ "$(id -u)" != 0 ]; then
    echo 'skipped: only root can make a set-user-ID program (the sources were looked through)'
    exit 77
fi
command -v setpriv >/dev/null || { echo 'skipped: no setpriv'; exit 77; }
[ -z "${SAN:-}" ] || { echo 'skipped: a sanitizer reads the environment itself'; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir "$dir/theirs" "$dir/cgroup"
chmod 777 "$dir/theirs"
cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
static int has_page(void) { /* stderr is a file */
    static char text[65536];
    long n = pread(2, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "live page on ") != NULL;
}
static int program(int argc, char **argv) {
    /* The page is started beside this goroutine. */
    while (!getauxval(AT_SECURE) && !has_page()) gort_sleep(GORT_MS);
    for (int i = 0; i < 10; i++) gort_yield();
    printf("secure %lu, procs %d\n", getauxval(AT_SECURE), gort_maxprocs(0));
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -Iinclude "$dir/prog.c" "$OUT/libgort.a" -lpthread -o "$dir/static"
cp -L "$OUT"/libgort.so* "$dir"
${CC:-cc} -Iinclude "$dir/prog.c" -L"$dir" -lgort -Wl,-rpath,"$dir" -o "$dir/shared"

# As nobody, with everything set; what it wrote goes to theirs/ and $dir/out, $dir/err.
run() {
    rm -f "$dir"/theirs/*
    : >"$dir/err"
    (cd "$dir/theirs" && setpriv --reuid=65534 --regid=65534 --clear-groups env GORT_MAXPROCS=7 \
        GORT_TRACE="$dir/theirs/trace" GORT_THREADS=1 GORT_THREADS_REAL=all $2 \
        GORT_SIM_LOG="$dir/theirs/log" GORT_HTTP=0.0.0.0:0 GORT_HTTP_TOKEN=known \
        GORT_CGROUP_ROOT="$dir/cgroup" \
        GORT_DEBUG=schedtrace=1,nonsense=1 "$1" >"$dir/out" 2<>"$dir/err")
}
for p in static shared; do
    run "$dir/$p" '' # without the bit: all of it is obeyed, else this test shows nothing
    grep -q 'secure 0, procs 7' "$dir/out" || fail "$p, without the bit: $(cat "$dir/out")"
    grep -q 'nonsense=1 ignored' "$dir/err" || fail "$p, without the bit: no complaint"
    grep -q 'live page on .* with the token in GORT_HTTP_TOKEN$' "$dir/err" ||
        fail "$p, without the bit: no page"
    [ -e "$dir/theirs/trace" ] || fail "$p, without the bit: no trace"
    run "$dir/$p" GORT_SIM=5
    [ -e "$dir/theirs/log" ] || fail "$p, without the bit: no list of a simulation"
    chmod u+s "$dir/$p"
    for sim in '' GORT_SIM=5; do
        run "$dir/$p" "$sim"
        if ! grep -q 'secure 1' "$dir/out"; then
            echo 'skipped: set-user-ID has no effect here'; exit 77
        fi
        ! grep -q 'procs 7' "$dir/out" || fail "$p: GORT_MAXPROCS is obeyed"
        [ ! -s "$dir/err" ] || fail "$p: it speaks: $(cat "$dir/err")"
        [ -z "$(ls "$dir/theirs")" ] || fail "$p: it has written $(ls "$dir/theirs")"
    done
done
exit $bad
