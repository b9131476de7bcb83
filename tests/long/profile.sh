#!/bin/sh
# Profiles of a running program, over its live page: CPU time by goroutine and stack as folded
# stacks, flame graph and pprof's format. Whatever is looked for is asked for until it is there.
set -eu
out=${OUT:-build}
command -v curl >/dev/null || { echo "no curl"; exit 77; }
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <errno.h>
#include <gort.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile unsigned long sink;
static volatile int others;
static void on_prof(int signo) { others++; }
static __attribute__((noinline)) void burn_inner(void) {
    for (int i = 0; i < 100000; i++) sink += i;
}
static void burn(void *arg) { for (;;) burn_inner(); }
static void caller(void *arg) { /* works and calls: that it is interrupted must not show */
    int *end = arg;
    for (char c = 1;; c++) {
        char d = 0;
        if (write(end[1], &c, 1) != 1 || read(end[0], &d, 1) != 1 || d != c)
            fprintf(stderr, "call: %d\n", errno), _exit(8);
        burn_inner();
    }
}
static int program(int argc, char **argv) {
    char c;
    static int ends[2];
    gort_attr attr = {.name = "the burner"};
    if (pipe(ends)) return 7;
    gort_go_with(&attr, burn, NULL);
    gort_go(caller, ends);
    gort_read(0, &c, 1); /* until the test closes the other end */
    raise(SIGPROF);      /* still the program's own */
    if (others != 1) fprintf(stderr, "%d signals of its own\n", others);
    return others == 1 ? 0 : 6;
}
int main(int argc, char **argv) {
    signal(SIGPROF, on_prof);
    return gort_main(program, argc, argv);
}
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"
GORT_HTTP=127.0.0.1:0 "$dir/prog" <"$dir/hold" 2>"$dir/err" &
pid=$!
exec 9>"$dir/hold"
i=0
until grep -q 'live page on' "$dir/err"; do
    i=$((i + 1)); [ $i -lt 600 ] || fail "no page: $(cat "$dir/err")"
    kill -0 $pid 2>/dev/null || fail "ended: $(cat "$dir/err")"
    sleep 0.05
done
base=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$dir/err")
secret=$(sed -n 's/^gort: its traces and profiles, for other clients: ?token=//p' "$dir/err")
get() { curl -s -S -m 60 -H "Authorization: Bearer $secret" --noproxy '*' "$@"; }
code() { get -o /dev/null -w '%{http_code}' "$@"; }
until_there() { # pattern url: into $dir/got
    i=0
    while :; do
        get "$2" >"$dir/got" || fail "$2: $(cat "$dir/err")"
        if grep -a -q "$1" "$dir/got"; then return; fi
        i=$((i + 1)); [ $i -lt 40 ] || fail "$2: no $1 in: $(head -30 "$dir/got")"
    done
}

until_there '^the_burner;burn;burn_inner [0-9]*$' \
    "${base}debug/pprof/profile?seconds=1&format=folded"
until_there 'burn_inner [0-9.]*%</title>' "${base}debug/pprof/profile?seconds=1&format=svg"
cp "$dir/got" "$dir/svg"
until_there 'the burner' "${base}debug/pprof/profile?seconds=1"
cp "$dir/got" "$dir/cpu.pb"
[ "$(code "${base}debug/pprof/profile?seconds=0")" = 400 ] || fail "0 seconds"

if command -v python3 >/dev/null; then
    cat >"$dir/pprof.py" <<'PY'
import sys, xml.dom.minidom
class Message: # a protocol buffer: fields and lengths fit exactly
    def __init__(self, data):
        self.f, at = {}, 0
        def varint():
            nonlocal at
            v = s = 0
            while True:
                b = data[at]; at += 1; v |= (b & 127) << s; s += 7
                if b < 128: return v
        while at < len(data):
            key = varint(); v = varint()
            if key & 7 == 2: v, at = data[at:at + v], at + v
            else: assert key & 7 == 0
            self.f.setdefault(key >> 3, []).append(v)
        assert at == len(data)
    def sub(self, n): return [Message(x) for x in self.f.get(n, [])]
    def one(self, n): return self.f[n][0]
p = Message(open(sys.argv[1], "rb").read())
xml.dom.minidom.parse(sys.argv[2])
strings = [s.decode() for s in p.f[6]]
assert strings[0] == ""
types = [(strings[t.one(1)], strings[t.one(2)]) for t in p.sub(1)]
assert types == [("samples", "count"), ("cpu", "nanoseconds")], types
functions = {f.one(1): strings[f.one(2)] for f in p.sub(5)}
locations = {l.one(1): functions[l.sub(4)[0].one(1)] for l in p.sub(4)}
found = False
for s in p.sub(2):
    names = [locations[i] for i in s.f[1]]
    label = {strings[l.one(1)]: strings[l.one(2)] for l in s.sub(3)}
    count, ns = s.f[2]
    assert count > 0 and ns == count * 10**7, s.f
    if label == {"goroutine": "the burner"}: found = found or "burn" in names
assert found
PY
    python3 "$dir/pprof.py" "$dir/cpu.pb" "$dir/svg" || fail "a format is wrong"
fi
exec 9>&-
wait $pid || fail "the program failed: $(cat "$dir/err")"
pid=
