#!/bin/sh
# The flight recorder read while it goes on: /trace?last=1, again and again, of a program that fills
# its ring within milliseconds, so that it is written over while it is read. What comes is in
# order, of the last seconds, and without a gap: goroutines count in the names of regions. The
# recorder's file is whole afterwards.
set -eu
out=${OUT:-build}
. tests/lib/deps.sh
use_deps
if words=$(lack python); then echo "skipped: $words"; exit 77; fi
cat >"$WORK/prog.c" <<'END'
#include <gort.h>
#include <stdio.h>
static void hot(void *arg) { for (;;) gort_yield(); }
static void pong(void *arg) { for (;;) gort_chan_send(arg, NULL); }
static void ping(void *arg) { for (;;) gort_chan_recv(arg, NULL); }
static void count(void *arg) {
    char name[32];
    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof name, "%u", i);
        gort_region_begin(name);
        gort_region_end(name);
        gort_yield();
    }
}
static int program(int argc, char **argv) {
    char c;
    gort_chan *ball = gort_chan_new(0, 0);
    for (int i = 0; i < 3; i++) gort_go(hot, NULL), gort_go(count, NULL);
    gort_go(pong, ball);
    gort_go(ping, ball);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g -O1 $san -Iinclude "$WORK/prog.c" "$out/libgort.a" -lpthread -o "$WORK/prog"
mkfifo "$WORK/hold"
GORT_DEBUG=flight=2000,tracemax=4 GORT_TRACE=$WORK/flight.json GORT_MAXPROCS=3 \
    GORT_HTTP_TOKEN=right GORT_HTTP=127.0.0.1:0 "$WORK/prog" <"$WORK/hold" 2>"$WORK/err" &
pid=$!
trap 'kill $pid 2>/dev/null || true' EXIT
exec 9>"$WORK/hold"
until grep -q 'GORT_HTTP_TOKEN' "$WORK/err"; do
    kill -0 $pid 2>/dev/null || { cat "$WORK/err"; exit 1; }
    sleep 0.05
done
python3 - "$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$WORK/err")" <<'END'
import json, sys, urllib.request
def last(form):
    r = urllib.request.Request(sys.argv[1] + "trace?last=1" + form,
                               headers={"Authorization": "Bearer right"})
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=100).read()
known = ("hot", "count", "ping", "pong", "program", "gort: live page")
n, slices = 0, 0
while n < 10 or slices < 10000:
    t = json.loads(last("&format=timeline"))
    names = {i[1]: i[2] for i in t["items"] if i[0] == 0}
    at = {}
    for _, p, start, length, g, *_ in sorted(i for i in t["items"] if i[0] == 1):
        assert at.get(p, 0) <= start + 2000, f"P{p}: {start} within a slice that ends at {at[p]}"
        assert start + length <= t["length"] <= 2e9, (start, length, t["length"])
        assert p < 3 and names[g] in known, (p, g)
        at[p] = start + length
        slices += 1
    n += 1
counted = 0
while counted < 40000: # the same for other programs
    events = json.loads(last(""))["traceEvents"]
    at = {}
    for e in events:
        if e["ph"] == "b":
            i = int(e["name"])
            assert at.get(e["id"], i - 1) == i - 1, f"G{e['id']}: {i} after {at[e['id']]}"
            at[e["id"]] = i
            counted += 1
print(f"{n} times, {slices} slices, {counted} regions")
END
kill -TERM $pid
wait $pid || true
trap - EXIT
"$out/bin/gort-trace" summary "$WORK/flight.json" >"$WORK/summary"
grep -q '^hot ' "$WORK/summary" || { cat "$WORK/summary"; exit 1; }
