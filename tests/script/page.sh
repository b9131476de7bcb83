#!/bin/sh
# The live page of a running program: every address, refusals, and formats as their readers want
# them (curl; python3 for JSON; go tool pprof where there is one).
set -eu
out=${OUT:-build}
. tests/lib/deps.sh
use_deps
if words=$(lack http); then echo "skipped: $words"; exit 77; fi
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <unistd.h>
static gort_chan *never;
static gort_mutex mu;
static void waiter(void *arg) { gort_chan_recv(never, NULL); __asm__ volatile(""); }
static void worker(void *arg) {
    for (;;) {
        gort_mutex_lock(&mu);
        gort_yield();
        gort_mutex_unlock(&mu);
        gort_sleep(GORT_MS);
    }
}
static int program(int argc, char **argv) {
    char c;
    gort_attr attr = {.name = "a \"worker\""};
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 50; i++) gort_go(waiter, NULL);
    for (int i = 0; i < 5; i++) gort_go_with(&attr, worker, NULL);
    if (argc > 1 && gort_debug_listen(argv[1]) != 0) return 9;
    gort_read(0, &c, 1); /* until the test closes the other end */
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"

# Starts the program with $1 as the address (through the environment if $2), waits for its line.
start() {
    : >"$dir/err"
    if [ "${2:-}" = env ]; then GORT_HTTP=$1 "$dir/prog" <"$dir/hold" 2>"$dir/err" & else \
        "$dir/prog" "$1" <"$dir/hold" 2>"$dir/err" & fi
    pid=$!
    exec 9>"$dir/hold"
    i=0
    until grep -q 'live page on' "$dir/err"; do
        i=$((i + 1)); [ $i -lt 600 ] || fail "no page: $(cat "$dir/err")"
        kill -0 $pid 2>/dev/null || fail "ended: $(cat "$dir/err")"
        sleep 0.05
    done
    url=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$dir/err")
    base=${url%%\?*}
    secret=$(sed -n 's/^gort: its traces and profiles, for other clients: ?token=//p' "$dir/err")
}
stop() {
    exec 9>&-
    wait $pid || fail "the program failed: $(cat "$dir/err")"
    pid=
}
get() { curl -s -S -m 60 -H "Authorization: Bearer ${secret:-}" --noproxy '*' "$@"; }
code() { get -o /dev/null -w '%{http_code}' "$@"; }
expect() { want=$1; shift; got=$(code "$@"); [ "$got" = "$want" ] || fail "$*: $got, not $want"; }

start 127.0.0.1:0 env
get "$base" >"$dir/page"
grep -q '<title>gort</title>' "$dir/page" || fail "no page"
get "${base}metrics" >"$dir/metrics"
grep -q '^gort_goroutines 5[0-9]$' "$dir/metrics" ||
    fail "goroutines: $(grep '^gort_goroutines ' "$dir/metrics")"
grep -q '^gort_goroutines_by_status{status="chan receive"} 50$' "$dir/metrics" ||
    fail "no 50 waiters"
get "${base}goroutines" >"$dir/text"
[ "$(grep -c '^goroutine [0-9]* \[chan receive, ' "$dir/text")" = 50 ] ||
    fail "not 50 waiters in the dump"
grep -q ' waiter+0x' "$dir/text" || fail "no frame of waiter"
get "${base}leaks?minutes=0" >"$dir/leaks"
grep -q '^gort: leak: 5[0-9] goroutines blocked for more than 0ms$' "$dir/leaks" ||
    fail "leaks: $(cat "$dir/leaks")"
grep -q '^ *50  chan receive, .*: created by program+0x.* with waiter$' "$dir/leaks" ||
    fail "leaks: $(cat "$dir/leaks")"
get "${base}leaks?minutes=1000000" | grep -q '^no goroutine has been blocked for so long$' ||
    fail "leaks of two years"
expect 200 "${base}goroutines?id=1"
expect 404 "${base}goroutines?id=123456789"
expect 404 "${base}nothing"
expect 400 "${base}trace?seconds=0"
expect 400 "${base}%zz"
expect 405 -X POST "$base"
secret= expect 403 -H 'Host: elsewhere.example' "$base"
secret= expect 403 --request-target http://elsewhere.example/ "$base"
secret= expect 200 --request-target "$base" -H 'Host: elsewhere.example' "$base"
expect 413 -d x -X GET "$base"
get "${base}trace?seconds=1" >"$dir/trace.json"
"$out/bin/gort-trace" summary "$dir/trace.json" >"$dir/summary"
grep -q 'worker' "$dir/summary" || fail "no worker in the trace"
get "${base}debug/pprof/" >"$dir/index"
grep -q '<title>prog ([0-9]*): profiles</title>' "$dir/index" || fail "index: $(cat "$dir/index")"
# Every end point is linked, by the page and by the index.
routes=$(sed -n 's/^    {"\(\/[^"]*\)", serve_.*/\1/p' src/inspect/page_routes.c)
[ "$(echo "$routes" | wc -l)" -ge 13 ] || fail "routes: $routes"
for r in $routes; do
    case $r in
        /debug/pprof) continue ;;
        /debug/pprof/) ;;
        *) grep -qF "href=\"$r\"" "$dir/index" || fail "$r is not in the index" ;;
    esac
    grep -qF "href=\"$r\"" "$dir/page" || fail "$r is not on the page"
done
# The page's own goroutines are told of only if asked for.
get "${base}goroutines?format=json" | grep -q 'live page' && fail 'the page lists itself'
get "${base}goroutines?format=json&own=1" | grep -q '"gort: live page"' || fail 'own=1'
grep -q 'live page' "$dir/text" "$dir/leaks" && fail 'the page dumps itself'
get "${base}goroutines?own=1" | grep -q '^goroutine [0-9]* "gort: live page"' || fail 'own=1, text'
get "${base}debug/pprof/goroutine?format=folded" >"$dir/folded"
grep -q '^waiter;waiter;gort_chan_recv[^;]* 50$' "$dir/folded" || fail "$(cat "$dir/folded")"
grep -q 'live.page\|goroutine_entry' "$dir/folded" && fail "plumbing: $(cat "$dir/folded")"
get "${base}debug/pprof/goroutine?format=folded&own=1&library=1" >"$dir/folded"
grep -q 'live.page' "$dir/folded" && grep -q ';goroutine_entry;' "$dir/folded" ||
    fail "all of it: $(cat "$dir/folded")"
get "${base}debug/pprof/goroutine?format=svg" | grep -q goroutine_entry && fail 'plumbing as svg'
get "${base}trace?seconds=1&format=timeline" >"$dir/timeline"
get "${base}debug/pprof/goroutine" >"$dir/pb"
[ -s "$dir/pb" ] || fail "no profile"
(curl -s -N -m 3 --noproxy '*' "${base}events" || true) >"$dir/events"
[ "$(grep -c '^data: {' "$dir/events")" -ge 2 ] || fail "no events"
if command -v python3 >/dev/null; then
    get "${base}goroutines?format=json&filter=waiter&limit=10" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["matched"] == 50 and len(d["goroutines"]) == 10, d
assert all(g["name"] == "waiter" and g["created_by"] == "program" and
           g["created_at"].startswith("prog.c:") for g in d["goroutines"]), \
    d' || fail "JSON list"
    get "${base}goroutines?format=json&name=a+%22worker%22&status=sleep" >"$dir/sleepers"
    get "${base}goroutines?format=json&name=wait" >"$dir/none"
    get "${base}leaks?format=json&minutes=0" >"$dir/sites"
    python3 - "$dir" <<'END' || fail "a list is wrong"
import json, sys
read = lambda name: json.load(open(sys.argv[1] + "/" + name))
sleepers = read("sleepers")["goroutines"]
assert all((g["name"], g["status"]) == ('a "worker"', "sleep") for g in sleepers), sleepers
assert read("none")["matched"] == 0, "a name is a whole name"
sites = read("sites")
assert sites["sites"][0]["n"] == 50 and sites["sites"][0]["entry"] == "waiter", sites
assert sites["goroutines"] == sum(s["n"] for s in sites["sites"]), sites
t = read("timeline") # slices of a P in order, and whose waker is known
names = {i[1]: i[2] for i in t["items"] if i[0] == 0}
at, workers, woken = {}, 0, 0
for _, p, start, length, g, end, *by in sorted(i for i in t["items"] if i[0] == 1):
    assert at.get(p, 0) <= start + 1000 and start + length <= t["length"] and g in names, (p, start)
    assert t["ends"][end]
    at[p] = start + length
    workers += names[g] == 'a "worker"'
    woken += len(by) == 3 and by[0] <= start
assert workers > 20 and woken > 20 and t["length"] >= 1e9 and not t["full"], (workers, woken)
END
    python3 - "$dir/events" "$dir/metrics" "$dir/pb" <<'END' || fail "a format is wrong"
import json, re, sys, time
events = [json.loads(l[6:]) for l in open(sys.argv[1])
          if l.startswith("data: {") and l.endswith("}\n")]
assert events[-1]["switches"] > events[0]["switches"], "nothing moves"
assert len(events[0]["ps"]) == events[0]["maxprocs"]
groups = events[0]["groups"]
assert any(g["name"] == "waiter" and g["n"] == 50 for g in groups), groups
assert not any("live page" in g["name"] for g in groups), groups
assert events[0]["goroutines"] == 56 and len(events[0]["longest"]) == 12, events[0]
ages = [g["ms"] for g in events[0]["longest"]]
assert ages == sorted(ages, reverse=True) and ages[-1] > 0, ages
who = events[0]["who"]
assert who["program"] == "prog" and who["pid"] > 1 and who["flight"] == 0, who
assert abs(who["began"] / 1000 - time.time()) < 3600 and "who" not in events[1], who
kind, seen = {}, set()
for l in open(sys.argv[2]): # the text format, as its description has it
    if l.startswith("# TYPE "):
        _, _, name, k = l.split(); assert name not in kind; kind[name] = k
    elif not l.startswith("# HELP "):
        m = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\\\n]*"\})? (\d+)\n', l); assert m, l
        assert m.group(1) in kind and l.split(" ")[0] not in seen, l
        assert (kind[m.group(1)] == "counter") == m.group(1).endswith("_total"), l
data = open(sys.argv[3], "rb").read() # a protocol buffer: fields and lengths fit exactly
at, samples = 0, 0
def varint():
    global at
    v = s = 0
    while True:
        b = data[at]; at += 1; v |= (b & 127) << s; s += 7
        if b < 128: return v
while at < len(data):
    key = varint(); v = varint()
    if key & 7 == 2: at += v
    else: assert key & 7 == 0
    samples += key >> 3 == 2
assert at == len(data) and samples >= 3, (at, len(data), samples)
END
fi
if command -v go >/dev/null && [ -z "${SAN:-}" ]; then
    (cd "$dir" && HOME=$dir GOFLAGS= timeout 120 go tool pprof -top pb >top 2>/dev/null) &&
        { grep -q ' waiter$' "$dir/top" || fail "pprof shows no waiter"; }
fi
stop

# SIGPROF is the scheduler's: there is no CPU profile, and not because of another one.
export GORT_DEBUG=signal=prof
start 127.0.0.1:0
unset GORT_DEBUG
get "${base}debug/pprof/profile?seconds=1" | grep -q 'signal=prof' ||
    fail 'signal=prof: another word'
stop

# A unix socket has no URL: its line names the path.
start "unix:$dir/page.sock"
grep -qx "gort: live page on unix:$dir/page.sock" "$dir/err" || fail "unix: $(cat "$dir/err")"
get --unix-socket "$dir/page.sock" http://localhost/ | grep -q '<title>gort</title>' ||
    fail 'no page on a unix socket'
stop

# Not the loopback: a token is needed.
start 0.0.0.0:0
port=${base##*:}; port=${port%/}
token=${url##*token=}
base=http://127.0.0.1:$port/
[ ${#token} = 32 ] || fail "no token in: $url"
expect 401 "$base"
expect 401 "${base}?token=wrong"
expect 200 "${base}?token=$token"
expect 200 -H "Authorization: Bearer $token" "${base}metrics"
stop
