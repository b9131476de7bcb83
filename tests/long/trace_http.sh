#!/bin/sh
# The HTTP example under wrk with a trace: the file validates against the Chrome trace format, and
# its sums are those of gort_stats over the same time, within 1 %.
#
# The program is examples/http.c with a main of its own around it, which starts the trace, stops it
# when wrk has ended, and says what gort_stats did in between. Half of the load keeps its
# connections, the other half makes a new one for each request, so that goroutines come and go.
set -eu
out=${OUT:-build}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
if ! command -v wrk >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get install -y -qq wrk >/dev/null 2>&1 || true
fi
for tool in wrk python3; do command -v $tool >/dev/null || { echo "no $tool"; exit 77; }; done
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

# The example itself, with a main of its own around it that stops at a line on stdin.
cat >"$dir/prog.c" <<'END'
#define main http_main
#include "http.c"
#undef main
static char address[] = "127.0.0.1:0";
static void server(void *arg) { run(2, (char *[]){"http", address, NULL}); }
static void print(const char *when, const gort_stats *s) {
    fprintf(stderr, "%s created=%llu starts=%llu steals=%llu preemptions=%llu handoffs=%llu\n",
            when, (unsigned long long)s->goroutines_created, (unsigned long long)s->switches,
            (unsigned long long)s->steals, (unsigned long long)s->preemptions,
            (unsigned long long)s->handoffs);
}
static int program(int argc, char **argv) {
    char c;
    gort_stats before, after;
    gort_go(server, NULL);
    while (gort_read(0, &c, 1) == 1 && c != 'a') {}
    gort_stats_read(&before);
    if (gort_trace_start(argv[1]) != 0) return 9;
    FILE *started = fopen(argv[2], "w");
    if (started == NULL || fputs("yes\n", started) < 0 || fclose(started) != 0) return 7;
    while (gort_read(0, &c, 1) == 1 && c != 'b') {}
    gort_stats_read(&after);
    if (gort_trace_stop() != 0) return 8;
    print("before", &before);
    print("after", &after);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -O2 -Iinclude -iquote examples "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/orders"
"$dir/prog" "$dir/trace.json" "$dir/started" <"$dir/orders" >"$dir/out" 2>"$dir/err" &
pid=$!
exec 9>"$dir/orders"
i=0
until grep -q listening "$dir/out"; do
    i=$((i + 1)); [ $i -lt 600 ] || fail "no server"
    sleep 0.05
done
url=$(sed -n 's/^listening on //p' "$dir/out")
echo a >&9
i=0
until [ -s "$dir/started" ]; do
    i=$((i + 1)); [ $i -lt 600 ] || fail "no trace"
    sleep 0.05
done
wrk -t1 -c64 -d3s "$url" >"$dir/wrk" || fail "wrk failed"
wrk -t1 -c16 -d3s -H 'Connection: close' "$url" >>"$dir/wrk" || fail "wrk failed"
echo b >&9
wait $pid || fail "the server failed: $(cat "$dir/err")"
pid=
exec 9>&-
cat "$dir/wrk"

python3 - "$dir/trace.json" "$dir/err" <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
line = {l.split()[0]: {k: int(v) for k, v in (x.split("=") for x in l.split()[1:])}
        for l in open(sys.argv[2]) if "=" in l}
stats = {k: line["after"][k] - line["before"][k] for k in line["after"]}

# The format, the object form of it:
# https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
number = (int, float)
assert isinstance(trace["traceEvents"], list) and trace["displayTimeUnit"] in ("ms", "ns")
need = {"X": ("dur",), "i": ("s",), "s": ("id",), "f": ("id", "bp"), "b": ("id",),
        "e": ("id",), "M": ("args",)}
begun, slices, seen = {}, {}, {}
for e in trace["traceEvents"]:
    assert e["ph"] in need, e
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int), e
    assert isinstance(e["name"], str) and e["name"], e
    for key in need[e["ph"]]: assert key in e, e
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and e["args"]["name"], e
        continue
    assert isinstance(e["ts"], number) and e["ts"] >= 0 and isinstance(e["cat"], str), e
    assert "args" not in e or isinstance(e["args"], dict), e
    seen[e["ph"], e["cat"]] = seen.get((e["ph"], e["cat"]), 0) + 1
    if e["ph"] == "X":
        assert isinstance(e["dur"], number) and e["dur"] >= 0, e
        if e["cat"] == "run": slices.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
    if e["ph"] == "i": assert e["s"] in "tpg", e
    if e["ph"] == "s": begun[e["id"]] = e["ts"]
    if e["ph"] == "f": assert e["bp"] == "e" and begun[e["id"]] <= e["ts"] + 1, e
for p, list_ in slices.items(): # a P runs one goroutine at a time
    list_.sort()
    for a, b in zip(list_, list_[1:]): assert b[0] >= a[1] - 1.0, (p, a, b)

# The sums.
sums = trace["otherData"]
assert sums["dropped"] == 0, sums
print("events", len(trace["traceEvents"]), "stats", stats, "trace", sums)
assert stats["starts"] > 5000 and stats["created"] > 500, stats
for key, n in stats.items():
    assert abs(sums[key] - n) <= max(0.01 * n, 5), (key, sums[key], n)
runs = seen["X", "run"]
assert abs(runs - stats["starts"]) <= 0.01 * stats["starts"], (runs, stats["starts"])
assert abs(seen.get(("i", "create"), 0) - stats["created"]) <= max(0.01 * stats["created"], 5)
END
"$out/bin/gort-trace" summary "$dir/trace.json" >"$dir/summary" || fail "gort-trace failed"
grep -q '^serve  *[0-9]' "$dir/summary" || { cat "$dir/summary"; fail "no serve in the summary"; }
head -30 "$dir/summary"
