#!/bin/sh
# Traces in Perfetto's own form: the packets hold together (tests/lib/pftrace_check.c), the file is
# a tenth of the JSON at most, gort-trace reads it, and there is a bound on its size.
set -eu
out=${OUT:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END2'
#include <gort.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static gort_mutex mu;
static gort_wg wg;
static long nap(void *arg) { return usleep(1000); }
static void worker(void *arg) {
    gort_region_begin("outer");
    for (int i = 0; i < 100; i++) {
        gort_mutex_lock(&mu);
        gort_region_begin("inner");
        gort_yield();
        gort_region_end("inner");
        gort_mutex_unlock(&mu);
    }
    if (arg == NULL) gort_region_end("outer"); /* else it is open when the goroutine ends */
    gort_blocking(nap, NULL);
    gort_wg_done(&wg);
}
static void before(void *arg) { gort_sleep(5 * GORT_MS); }
static int program(int argc, char **argv) {
    gort_go_with(&(gort_attr){.name = "was there before"}, before, NULL);
    gort_yield();
    if (argc > 1 && gort_trace_start(argv[1]) != 0) return 3;
    for (int i = 0; i < 8; i++) {
        gort_wg_add(&wg, 1);
        if (i == 3) gort_go_with(&(gort_attr){.name = "the \"third\""}, worker, &wg);
        else gort_go(worker, i & 1 ? &wg : NULL);
    }
    gort_wg_wait(&wg);
    gort_sleep(10 * GORT_MS);
    return argc > 1 ? gort_trace_stop() : 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END2
# shellcheck disable=SC2086
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
${CC:-cc} -g $san tests/lib/pftrace_check.c -o "$dir/check"
${CC:-cc} -g -O2 $san -Iinclude examples/sieve.c "$out/libgort.a" -lpthread -o "$dir/sieve"

# by the environment and by a call; every goroutine has its name
GORT_TRACE="$dir/a.pftrace" "$dir/prog" || fail "the traced program failed"
"$dir/check" "$dir/a.pftrace" program worker 'the "third"' 'was there before' ||
    fail "a.pftrace does not hold together"
"$dir/prog" "$dir/b.pftrace" || fail "the program with gort_trace_start failed"
"$dir/check" "$dir/b.pftrace" program worker 'the "third"' 'was there before' ||
    fail "b.pftrace does not hold together"
"$out/bin/gort-trace" summary "$dir/a.pftrace" >"$dir/summary" || fail "gort-trace failed"
grep -q '^worker  *7 ' "$dir/summary" || { cat "$dir/summary"; fail "not 7 workers"; }
grep -q 'worker, sync.Mutex.Lock, worker' "$dir/summary" || { cat "$dir/summary"; fail "no mutex"; }

# A thread that runs a goroutine when a trace begins records it at that moment, as the one that
# begins the trace records its name: the name comes first, whichever of the two came to life before.
cat >"$dir/begun.c" <<'END2'
#include <gort.h>
#include <stdio.h>
static int beginners, stop, turn;
static void computes(void *arg) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) gort_region_end(NULL), gort_now();
}
static void begins(void *arg) {
    for (int i = 0; i < 10; i++) {
        char path[300];
        while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) % 2 != *(int *)arg) gort_yield();
        snprintf(path, sizeof path, "begun-%d.pftrace", turn);
        if (gort_trace_start(path) != 0) return;
        for (int64_t until = gort_now() + GORT_MS; gort_now() < until;) gort_yield();
        gort_trace_stop();
        __atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_add_fetch(&beginners, -1, __ATOMIC_SEQ_CST);
}
static int program(int argc, char **argv) {
    beginners = 2;
    for (int i = 0; i < 3; i++) gort_go(computes, NULL);
    for (int i = 0; i < 2; i++) gort_go_copy(begins, &i, sizeof i);
    while (__atomic_load_n(&beginners, __ATOMIC_SEQ_CST) > 0) gort_yield();
    stop = 1;
    return turn != 20;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END2
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/begun.c" "$out/libgort.a" -lpthread -o "$dir/begun"
(cd "$dir" && GORT_MAXPROCS=4 ./begun) || fail "the program that begins traces failed"
for f in "$dir"/begun-*.pftrace; do
    "$dir/check" "$f" || fail "${f##*/} does not hold together"
done

# a file that is cut is told
head -c 3000 "$dir/a.pftrace" >"$dir/cut.pftrace"
"$out/bin/gort-trace" summary "$dir/cut.pftrace" 2>"$dir/err" && fail "a cut file was read"
grep -q 'cut.pftrace: the file ends in the middle of a packet' "$dir/err" ||
    { cat "$dir/err"; fail "nothing about a cut file"; }


# an order of magnitude smaller
GORT_TRACE="$dir/s.json" "$dir/sieve" >/dev/null
GORT_TRACE="$dir/s.pftrace" "$dir/sieve" >/dev/null
"$dir/check" "$dir/s.pftrace" generate filter app || fail "s.pftrace does not hold together"
json=$(wc -c <"$dir/s.json") packets=$(wc -c <"$dir/s.pftrace")
echo "sieve: $json bytes of JSON, $packets of packets"
[ "$json" -ge $((packets * 10)) ] || fail "not a tenth"

# a bound on the size
sed 's/i <= 25/i <= 500/' examples/sieve.c >"$dir/long.c"
${CC:-cc} -g -O2 $san -Iinclude "$dir/long.c" "$out/libgort.a" -lpthread -o "$dir/long"
for f in m.json m.pftrace; do
    GORT_DEBUG=tracemax=1 GORT_TRACE="$dir/$f" "$dir/long" >/dev/null 2>"$dir/err"
    [ "$(grep -c '^gort: the trace is full (1 MB, GORT_DEBUG=tracemax)' "$dir/err")" = 1 ] ||
        { cat "$dir/err"; fail "$f: no word, or more than one, about a full trace"; }
    [ "$(wc -c <"$dir/$f")" -lt 1500000 ] || fail "$f: larger than it may be"
    "$out/bin/gort-trace" summary "$dir/$f" >/dev/null || fail "$f: not whole"
done
"$dir/check" "$dir/m.pftrace" generate filter || fail "m.pftrace does not hold together"

# another decompressor agrees
command -v python3 >/dev/null || { echo "no python3: the groups were not read by zlib"; exit 0; }
python3 - "$dir"/[abs].pftrace <<'END2' || fail "zlib cannot read the groups"
import sys, zlib
def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128: return v, i
for name in sys.argv[1:]:
    b, i = open(name, "rb").read(), 0
    while i < len(b):
        tag, i = varint(b, i)
        size, i = varint(b, i)
        end = i + size
        inner, i = varint(b, i)
        n, i = varint(b, i)
        assert tag == 1 << 3 | 2 and inner == 50 << 3 | 2 and i + n == end
        assert zlib.decompress(b[i:end])[0] == 1 << 3 | 2
        i = end
END2
