#!/bin/sh
# Block and mutex profiles and creation sites of a running program: the right stacks, times that
# add up, formats that their readers accept; promtool accepts /metrics.
set -eu
out=${OUT:-build}
command -v curl >/dev/null || { echo "no curl"; exit 77; }
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
static gort_mutex mu;
static gort_chan *slow, *ping, *pong;
static __attribute__((noinline)) void hold(void) {
    gort_mutex_lock(&mu);
    gort_sleep(5 * GORT_MS);
    gort_mutex_unlock(&mu);
    __asm__ volatile("");
}
static void holder(void *arg) {
    for (;;) hold(), gort_sleep(5 * GORT_MS);
}
static void wants_lock(void *arg) {
    for (;;) {
        gort_mutex_lock(&mu);
        gort_mutex_unlock(&mu);
        gort_yield();
    }
}
static void sender(void *arg) {
    for (;;) gort_sleep(5 * GORT_MS), gort_chan_send(slow, NULL);
}
static void receiver(void *arg) {
    for (;;) gort_chan_recv(slow, NULL), gort_yield();
}
static void fast_one(void *arg) {
    for (;;) gort_chan_send(ping, NULL), gort_chan_recv(pong, NULL);
}
static void fast_two(void *arg) {
    for (;;) gort_chan_recv(ping, NULL), gort_chan_send(pong, NULL);
}
static int program(int argc, char **argv) {
    char c;
    gort_attr attr = {.name = "the receiver"};
    slow = gort_chan_new(0, 0), ping = gort_chan_new(0, 0), pong = gort_chan_new(0, 0);
    gort_go(holder, NULL);
    gort_go(wants_lock, NULL);
    gort_go(sender, NULL);
    gort_go_with(&attr, receiver, NULL);
    gort_go(fast_one, NULL);
    gort_go(fast_two, NULL);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -O1 -fno-optimize-sibling-calls -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread \
    -o "$dir/prog"
mkfifo "$dir/hold"
GORT_HTTP=127.0.0.1:0 "$dir/prog" <"$dir/hold" 2>"$dir/err" &
pid=$!
exec 9>"$dir/hold"
i=0
until grep -q 'live page on' "$dir/err"; do
    i=$((i + 1)); [ $i -lt 600 ] || fail "no page: $(cat "$dir/err")"
    sleep 0.05
done
base=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$dir/err")
secret=$(sed -n 's/^gort: its traces and profiles, for other clients: ?token=//p' "$dir/err")
get() { curl -s -S -m 60 -H "Authorization: Bearer $secret" --noproxy '*' "$@"; }

get "${base}debug/pprof/block?seconds=3&format=folded" >"$dir/block"
grep -q '^the_receiver;receiver;[^;]*chan_recv[^;]* [0-9]*$' "$dir/block" ||
    fail "no receiver: $(cat "$dir/block")"
grep -q '^fast_one;fast_one;' "$dir/block" || fail "no short waits: $(cat "$dir/block")"
grep -q ';wants_lock;.*lock' "$dir/block" || fail "no waiter for the lock: $(cat "$dir/block")"
! grep -q ';sender;.*sleep' "$dir/block" || fail "a sleeper is no contention: $(cat "$dir/block")"
# The receiver does nothing but wait: 3 s, less what the machine takes for others.
ns=$(sed -n 's/^the_receiver;.* //p' "$dir/block" | awk '{n += $1} END {print n}')
awk "BEGIN {exit !($ns > 1.5e9 && $ns < 4.5e9)}" || fail "the receiver waited for $ns ns in 3 s"

get "${base}debug/pprof/mutex?seconds=2&format=folded" >"$dir/mutex"
grep -q '^holder;holder;hold;[^;]*unlock[^;]* [0-9]*$' "$dir/mutex" ||
    fail "no holder: $(cat "$dir/mutex")"
! grep -q 'receiver' "$dir/mutex" || fail "a channel is no mutex: $(cat "$dir/mutex")"

get "${base}debug/pprof/created?format=folded" >"$dir/created"
grep -q ';program;receiver 1$' "$dir/created" || fail "creation sites: $(cat "$dir/created")"
get "${base}debug/pprof/block?seconds=1&format=svg" | grep -q '<svg' || fail "no flame graph"
get "${base}debug/pprof/goroutine?format=svg" | grep -q '<svg' ||
    fail "no flame graph of goroutines"

for kind in block mutex; do get "${base}debug/pprof/$kind?seconds=1" >"$dir/$kind.pb"; done
get "${base}debug/pprof/profile?seconds=1" >"$dir/profile.pb"
get "${base}debug/pprof/goroutine" >"$dir/goroutine.pb"
get "${base}debug/pprof/created" >"$dir/created.pb"
if command -v go >/dev/null; then
    for kind in block mutex profile goroutine created; do
        (cd "$dir" && HOME=$dir timeout 120 go tool pprof -top $kind.pb >$kind.top 2>$kind.err) ||
            fail "pprof: $kind: $(cat "$dir/$kind.err")"
        grep -q 'flat%' "$dir/$kind.top" || fail "pprof: $kind: $(cat "$dir/$kind.top")"
    done
    grep -q ' receiver$' "$dir/block.top" || fail "pprof shows no receiver: $(cat "$dir/block.top")"
    grep -q ' hold$' "$dir/mutex.top" || fail "pprof shows no hold: $(cat "$dir/mutex.top")"
    echo "go tool pprof reads all five"
fi

get "${base}metrics" >"$dir/metrics"
if ! command -v promtool >/dev/null && [ "$(id -u)" = 0 ]; then
    # the tool, not the server
    (cd "$dir" && apt-get download -qq prometheus >/dev/null 2>&1 && dpkg -x prometheus_*.deb p) ||
        true
    [ -x "$dir/p/usr/bin/promtool" ] && PATH=$PATH:$dir/p/usr/bin
fi
if command -v promtool >/dev/null; then
    promtool check metrics <"$dir/metrics" >"$dir/promtool" 2>&1 ||
        fail "promtool: $(cat "$dir/promtool")"
    [ ! -s "$dir/promtool" ] || fail "promtool: $(cat "$dir/promtool")"
    echo "promtool accepts /metrics"
fi
exec 9>&-
wait $pid || fail "the program failed: $(cat "$dir/err")"
pid=
