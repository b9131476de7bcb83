#!/bin/sh
# The live page of a program with 100,000 goroutines: it answers, it aggregates, and while it is
# open it costs less than 1 % of a CPU (what the process used with it, less what it used without).
set -eu
out=${OUT:-build}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
for tool in curl python3; do command -v $tool >/dev/null || { echo "no $tool"; exit 77; }; done
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <stdio.h>
static gort_chan *never;
static int waiting;
static void waiter(void *arg) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    gort_chan_recv(never, NULL);
    __asm__ volatile("");
}
static int program(int argc, char **argv) {
    char c;
    gort_attr attr = {.name = "one of many"};
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 100000; i++)
        i % 2 ? gort_go(waiter, NULL) : gort_go_with(&attr, waiter, NULL);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < 100000) gort_sleep(GORT_MS);
    fputs("all wait\n", stderr);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -O1 -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"
GORT_HTTP=127.0.0.1:0 "$dir/prog" <"$dir/hold" 2>"$dir/err" &
pid=$!
exec 9>"$dir/hold"
i=0
until grep -q 'all wait' "$dir/err"; do
    i=$((i + 1)); [ $i -lt 1200 ] || fail "it does not start: $(cat "$dir/err")"
    sleep 0.05
done
base=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$dir/err")
cpu() { awk '{print ($14 + $15) * 10}' /proc/$pid/stat; } # ms

sleep 2 # stacks of the start are given back
a=$(cpu); sleep 20; b=$(cpu)
(curl -s -N -m 21 --noproxy '*' "${base}events" || true) >"$dir/events" &
sleep 1; c=$(cpu); sleep 20; d=$(cpu)
wait $!
idle=$((b - a)) open=$((d - c))
echo "CPU in 20 s: $idle ms without the page, $open ms with it open"
[ $((open - idle)) -lt 200 ] || fail "more than 1 % of a CPU"
python3 - "$dir/events" <<'END'
import json, sys
events = [json.loads(l[6:]) for l in open(sys.argv[1])
          if l.startswith("data: {") and l.endswith("}\n")]
print(len(events), "events")
assert len(events) >= 20, len(events)
full = [e for e in events if "groups" in e]
assert full and len(full) < len(events) / 2, (len(full), len(events)) # seldom enough
n = {g["name"]: g["n"] for g in full[0]["groups"]}
assert n["one of many"] == 50000 and n["waiter"] == 50000, n
assert max(len(l) for l in open(sys.argv[1])) < 20000
END
curl -s -m 60 --noproxy '*' "${base}goroutines?format=json&limit=50&filter=waiter" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["matched"] == 100000 and len(d["goroutines"]) == 50, \
    (d["matched"], len(d["goroutines"]))' || fail "the list"
exec 9>&-
wait $pid || fail "the program failed"
pid=
