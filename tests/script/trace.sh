#!/bin/sh
# GORT_TRACE on an example: the file is JSON that trace viewers accept, and gort-trace reads it.
# Also the flight recorder, written out by a fatal error.
set -eu
out=${OUT:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <signal.h>
#include <stdlib.h>
static gort_mutex mu;
static gort_wg wg;
static void worker(void *arg) {
    for (int i = 0; i < 100; i++) {
        gort_mutex_lock(&mu);
        gort_yield();
        gort_mutex_unlock(&mu);
    }
}
static volatile int zero;
static int deep(int n) {
    volatile char room[4096];
    room[n % 4096] = 1;
    return n == zero ? 0 : deep(n + 1) + room[0];
}
static int program(int argc, char **argv) {
    for (int i = 0; i < 8; i++) gort_wg_go(&wg, worker, NULL);
    gort_wg_wait(&wg);
    if (argc > 1 && argv[1][0] == 'f') gort_mutex_unlock(&mu);
    if (argc > 1 && argv[1][0] == 'e') exit(3);
    if (argc > 1 && argv[1][0] == 's') *(volatile int *)8 = 1;
    if (argc > 1 && argv[1][0] == 'o') return deep(1);
    if (argc > 1 && argv[1][0] == 'q') raise(SIGQUIT);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
# shellcheck disable=SC2086
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
${CC:-cc} -g $san tests/lib/jsontrace_check.c -o "$dir/check"

GORT_TRACE="$dir/a.json" "$dir/prog" || fail "the traced program failed"
"$out/bin/gort-trace" summary "$dir/a.json" >"$dir/summary"
grep -q 'sync.Mutex.Lock' "$dir/summary" || { cat "$dir/summary"; fail "no mutex in the summary"; }
grep -q '^worker  *8 ' "$dir/summary" ||
    { cat "$dir/summary"; fail "not 8 workers in the summary"; }
# a name is shown as it was, not as JSON has it
cat >"$dir/quoted.json" <<'END'
{"traceEvents":[
{"ph":"X","pid":1,"ts":3,"dur":2,"name":"\"a\" \\ b","cat":"run","args":{"g":2,"end":"exit"}}
],"otherData":{}}
END
"$out/bin/gort-trace" summary "$dir/quoted.json" >"$dir/summary"
grep -q '^"a" \\ b  *1 ' "$dir/summary" ||
    { cat "$dir/summary"; fail "a name with quotes is not as it was"; }

# Each of 300,000 goroutines has its own name and its own waker: read in one go. The name is that of
# the slice, not of the function that is known when it is created.
awk 'BEGIN {
    print "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["
    for (g = 1; g <= 300000; g++) {
        at = "\"pid\":1,\"tid\":0,\"ts\":" g ".000,"
        printf "{\"ph\":\"i\",%s\"s\":\"t\",\"name\":\"f\",\"cat\":\"create\"," \
               "\"args\":{\"g\":%d,\"by\":0}},\n", at, g
        printf "{\"ph\":\"X\",%s\"dur\":0.500,\"name\":\"w%d\",\"cat\":\"run\"," \
               "\"args\":{\"g\":%d,\"end\":\"sleep\"}},\n", at, g, g
        if (g == 1) continue
        printf "{\"ph\":\"s\",%s\"id\":%d,\"name\":\"wake\",\"cat\":\"wake\"," \
               "\"args\":{\"g\":%d,\"by\":%d}},\n", at, g, g - 1, g
    }
    print "],\n\"otherData\":{\"by\":\"gort\",\"dropped\":0,\"starts\":300000}}"
}' >"$dir/crowd.json"
"$out/bin/gort-trace" summary "$dir/crowd.json" >"$dir/summary"
grep -q '^w[0-9]*  *1  *1 ' "$dir/summary" || fail "no goroutine by its own name"
! grep -q '^f ' "$dir/summary" || fail "a goroutine by the name of its function"

# exit() in the middle still leaves a whole file.
code=0; GORT_TRACE="$dir/e.json" "$dir/prog" e || code=$?
[ "$code" = 3 ] || fail "exit status $code"
"$out/bin/gort-trace" summary "$dir/e.json" >/dev/null || fail "no whole trace after exit()"

# A fatal error writes the flight recorder out.
(cd "$dir" && GORT_DEBUG=flight=10000 GORT_TRACE="$dir/f.json" ./prog f >/dev/null \
    2>err) 2>/dev/null && fail "did not fail"
grep -q 'the last [0-9]*ms are in' "$dir/err" ||
    { cat "$dir/err"; fail "nothing said about the flight recorder"; }
"$out/bin/gort-trace" summary "$dir/f.json" >"$dir/summary"
grep -q 'sync.Mutex.Lock' "$dir/summary" || fail "no mutex in the flight recorder"

# So do a fault of the program's own, a stack overflow and SIGQUIT. (Sanitizers have handlers of
# their own.)
for how in s o q; do
    [ -z "${SAN:-}" ] || break
    (cd "$dir" && GORT_DEBUG=flight=10000 GORT_TRACE="$dir/$how.json" ./prog $how >/dev/null \
        2>err) 2>/dev/null && fail "$how: did not fail"
    "$out/bin/gort-trace" summary "$dir/$how.json" >"$dir/summary" ||
        { cat "$dir/err"; fail "$how: no flight recorder"; }
    grep -q 'sync.Mutex.Lock' "$dir/summary" || fail "$how: no mutex in the flight recorder"
done

# Without a path of the user's a planted link is not followed.
echo mine >"$dir/mine"
(cd "$dir" && GORT_DEBUG=flight=10000 sh -c 'ln -s mine gort-flight-$$.json; exec ./prog f' \
    >/dev/null 2>err) 2>/dev/null && fail "did not fail"
[ "$(cat "$dir/mine")" = mine ] || fail "the flight recorder followed a link"
grep -q 'the last events are not in' "$dir/err" || { cat "$dir/err"; fail "no word about a link"; }

# A wrong path is said, and the program runs.
GORT_TRACE=/nonexistent/x "$dir/prog" 2>"$dir/err" || fail "failed without its trace file"
grep -q '^gort: GORT_TRACE=/nonexistent/x ignored' "$dir/err" || fail "no word about the trace file"

# So is a file that cannot be written.
if [ -c /dev/full ]; then
    for how in return exit; do
        code=0; GORT_TRACE=/dev/full "$dir/prog" $how 2>"$dir/err" || code=$?
        case $how$code in return0 | exit3) ;; *) fail "/dev/full: $how with status $code" ;; esac
        [ "$(cat "$dir/err")" = 'gort: GORT_TRACE=/dev/full: No space left on device' ] ||
            { cat "$dir/err"; fail "not the reason, once, for a full disk"; }
    done
fi

# So is one that is cut by the process's limit, which the chunks that are spilled pass too.
for how in return exit; do
    code=0; (ulimit -f 32; GORT_TRACE="$dir/l.json" "$dir/prog" $how 2>"$dir/err") || code=$?
    case $how$code in return0 | exit3) ;; *) fail "past the limit: $how with status $code" ;; esac
    [ "$(cat "$dir/err")" = "gort: GORT_TRACE=$dir/l.json: File too large" ] ||
        { cat "$dir/err"; fail "not the reason for a file past the limit"; }
done

# Whatever goes on, and however the trace ends: slices nest, arrows begin in one, regions end.
cat >"$dir/mix.c" <<'END'
#include <gort.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static gort_chan *c[4], *there, *back, *never;
static gort_wg wg;
static volatile int stop;
static void drain(void *arg) { for (char x; gort_chan_recv(arg, &x) == 0;) {} }
static void tick(void *arg) { gort_chan_try_send(arg, &(char){0}); }
static void *thread(void *arg) { /* makes goroutines ready without an M and a P */
    for (; !stop; gort_sleep(50 * GORT_US))
        for (int i = 0; i < 4; i++) tick(c[i]);
    return NULL;
}
static long nap(void *arg) { return usleep(200); }
static void blocker(void *arg) {
    while (!stop) gort_blocking(nap, NULL), gort_yield();
}
static void echo(void *arg) {
    for (int x; gort_chan_recv(there, &x) == 0;) {
        gort_region_begin("say \"echo\"");
        gort_chan_send(back, &x);
        gort_region_end("say \"echo\"");
    }
}
static void brief(void *arg) {
    gort_region_begin("outer");
    gort_region_begin("inner");
    gort_region_begin("inner");
    gort_yield();
    if (gort_id() % 3 == 0) gort_exit(); /* in all three */
    gort_region_end(gort_id() % 3 == 1 ? "outer" : "inner");
}
static void inside(void *arg) {
    gort_region_begin("all the time");
    gort_chan_recv(arg, NULL);
    gort_region_end("all the time");
}
static int program(int argc, char **argv) {
    const char *how = argv[1];
    gort_timer *t[4];
    pthread_t threads[2];
    for (int i = 0; i < 4; i++) {
        c[i] = gort_chan_new(1, 0);
        gort_wg_go(&wg, drain, c[i]);
        t[i] = gort_ticker_new(GORT_MS, tick, c[i]);
    }
    there = gort_chan_new(sizeof(int), 0), back = gort_chan_new(sizeof(int), 0);
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, NULL);
    gort_wg_go(&wg, echo, NULL);
    gort_wg_go(&wg, blocker, NULL);
    gort_wg_go(&wg, inside, never);
    gort_region_begin("before");
    gort_region_begin("twice");
    gort_yield();
    if (!strcmp(how, "call") && gort_trace_start(argv[2]) != 0) return 3;
    gort_region_end("before");
    gort_region_begin("twice");
    for (int i = 0; i < 3000; i++) {
        gort_chan_send(there, &i);
        gort_chan_recv(back, NULL);
        if (i % 10 == 0) gort_wg_go(&wg, brief, NULL);
        if (i % 300 == 0) gort_stop_world(), gort_start_world();
        if (i % 100 == 0) gort_sleep(GORT_MS);
    }
    gort_region_begin("to the end");
    if (!strcmp(how, "call") && gort_trace_stop() != 0) return 4;
    if (!strcmp(how, "abort")) abort();
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) gort_timer_free(t[i]), gort_chan_close(c[i]);
    gort_chan_close(there);
    gort_chan_close(never);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g $san -Iinclude "$dir/mix.c" "$out/libgort.a" -lpthread -o "$dir/mix"
nests() { "$dir/check" "$dir/$1" >/dev/null || fail "$1 does not hold together"; }
for p in 1 2 4; do
    GORT_MAXPROCS=$p GORT_TRACE="$dir/plain.json" "$dir/mix" plain || fail "the mix failed"
    nests plain.json
    GORT_MAXPROCS=$p "$dir/mix" call "$dir/call.json" || fail "the mix failed"
    nests call.json
    (ulimit -c 0; GORT_MAXPROCS=$p GORT_DEBUG=flight=10000 GORT_TRACE="$dir/flight.json" \
        "$dir/mix" abort >/dev/null 2>&1) 2>/dev/null && fail "did not abort"
    nests flight.json
    GORT_MAXPROCS=$p GORT_DEBUG=tracemax=1 GORT_TRACE="$dir/full.json" \
        "$dir/mix" plain 2>"$dir/err"
    grep -q 'tracemax' "$dir/err" || fail "the trace was not full"
    nests full.json
done
for f in a e f; do nests $f.json; done

# So in a simulation, where a goroutine that lets others run has been preempted.
for seed in 1 2 3; do
    GORT_SIM=$seed GORT_TRACE="$dir/sim.json" "$dir/prog" || fail "the simulation failed"
    nests sim.json
    grep -q '"end":"preempted"' "$dir/sim.json" || fail "nobody is preempted in a simulation"
    ! grep -q '"end":"lost its P"' "$dir/sim.json" || fail "a P is lost in a simulation"
done

# A goroutine in a call whose P was taken before the trace began runs nowhere until it is back, at
# least 20 ms later.
cat >"$dir/call.c" <<'END'
#include <gort.h>
#include <unistd.h>
static volatile int in_call, go_on, done;
static void caller(void *arg) {
    gort_enter_syscall();
    for (in_call = 1; !go_on;) usleep(100);
    gort_exit_syscall();
    done = 1;
}
static int program(int argc, char **argv) {
    gort_go(caller, NULL);
    while (!in_call) gort_yield(); /* on the one P, which was taken from the caller */
    if (gort_trace_start(argv[1]) != 0) return 3;
    gort_sleep(20 * GORT_MS);
    for (go_on = 1; !done;) gort_yield();
    return gort_trace_stop() != 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g $san -Iinclude "$dir/call.c" "$out/libgort.a" -lpthread -o "$dir/call"
GORT_MAXPROCS=1 "$dir/call" "$dir/c.json" || fail "the call failed"
nests c.json
awk -F'"ts":' '/"caller","cat":"run"/ { n++; if ($2 + 0 < 20000) early = 1 }
    END { exit !(n && !early) }' "$dir/c.json" || fail "it runs in the trace while it was in a call"

# The flight recorder holds what its setting says: here everything, some 4 MB of events. With less
# memory than that it says what it holds, and that is there: of every P, from the first moment on.
cat >"$dir/pingpong.c" <<'END'
#include <gort.h>
#include <stdlib.h>
static gort_chan *there, *back;
static void pong(void *arg) {
    for (int v; gort_chan_recv(there, &v) == 0;) gort_chan_send(back, &v);
}
static int program(int argc, char **argv) {
    there = gort_chan_new(sizeof(int), 0), back = gort_chan_new(sizeof(int), 0);
    gort_go(pong, NULL);
    for (int i = 0; i < 100000; i++) {
        gort_chan_send(there, &i);
        gort_chan_recv(back, &i);
    }
    abort();
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g $san -Iinclude "$dir/pingpong.c" "$out/libgort.a" -lpthread -o "$dir/pingpong"
recorder() {
    (ulimit -c 0; cd "$dir" && GORT_DEBUG="$1" GORT_TRACE="$dir/r.json" ./pingpong >/dev/null \
        2>err) 2>/dev/null && fail "did not abort"
    nests r.json
    # on two Ps one of them may save a slice where the other has one more
    turns=$(grep -Ec '"name":"(pong|program)","cat":"run"' "$dir/r.json")
}
recorder flight=1000000
[ "$turns" -ge 200000 ] || fail "the recorder holds $turns of 200000 slices"
grep -q '^gort: the last [0-9]*ms are in' "$dir/err" || { cat "$dir/err"; fail "not all is held"; }
recorder flight=1000000,tracemax=1
[ "$turns" -ge 20000 ] && [ "$turns" -lt 160000 ] || fail "$turns slices in 1 MB"
held=$(sed -n 's/^gort: the last \([0-9]*\)ms of 1000000ms .*: its 1 MB of .*/\1/p' "$dir/err")
[ -n "$held" ] || { cat "$dir/err"; fail "nothing about the memory"; }
awk -v held="$held" -F'"ts":' '/"cat":"run"/ { t = $2 + 0; if (!n++ || t < first) first = t
    if (t > last) last = t } END { exit !(n && first < 1000 && last < (held + 1) * 1000) }' \
    "$dir/r.json" || fail "the file does not begin with what is held, $held ms"

command -v python3 >/dev/null || { echo "no python3: the JSON was not parsed"; exit 0; }
for f in a e f; do
    python3 - "$dir/$f.json" <<'END' || fail "$f.json is not a Chrome trace"
import json, re, sys
trace = json.load(open(sys.argv[1]))
tracks, begun = {}, set()
for e in trace["traceEvents"]:
    assert e["ph"] in "XBEMisfbe", e
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"], e
    if e["ph"] == "M": continue
    assert e["ts"] >= 0, e
    if e["ph"] == "X" and e["cat"] == "run":
        assert e["dur"] >= 0, e
        assert not re.fullmatch("G[0-9]+", e["name"]), ("no name", e)
        tracks.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
    if e["ph"] == "s": begun.add(e["id"])
    if e["ph"] == "f": assert e["id"] in begun, e
assert tracks
for p, slices in tracks.items(): # a P runs one goroutine at a time
    slices.sort()
    for a, b in zip(slices, slices[1:]): assert b[0] >= a[1] - 0.0005, (p, a, b) # of us
END
done
