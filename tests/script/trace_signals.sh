#!/bin/sh
# A trace and the flight recorder are whole when a signal ends the program, which dies by that
# signal; a handler of the program's own stays.
set -eu
[ -z "${SAN:-}" ] || { echo 'skipped: sanitizers have handlers of their own'; exit 77; }
out=${OUT:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ulimit -c 0

fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END2'
#include <gort.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
GORT_CHAN_TYPE(ints, int)
static void reader(void *arg) {
    for (int v; ints_recv(arg, &v) == 0;) {}
}
static volatile sig_atomic_t handled;
static void on_signal(int signo) { handled = 1; }
static void on_exit_signal(int signo) { exit(5); }
static int met;
static long meet(void *arg) {
    __atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&met, __ATOMIC_SEQ_CST) < 8) {}
    return 0;
}
static void crash_together(void *arg) {
    gort_blocking(meet, NULL);
    *(volatile int *)8 = 1;
}
static void end_by(const char *how) {
    if (!strcmp(how, "SEGV-many"))
        for (int i = 0; i < 8; i++) gort_go(crash_together, NULL);
    if (!strcmp(how, "ABRT")) abort();
    if (!strcmp(how, "SEGV")) *(volatile int *)8 = 1;
    if (!strcmp(how, "ILL")) __builtin_trap();
    if (!strcmp(how, "FPE")) raise(SIGFPE);
    if (!strcmp(how, "BUS")) raise(SIGBUS);
    if (!strcmp(how, "INT")) kill(getpid(), SIGINT);
    if (!strcmp(how, "HUP")) kill(getpid(), SIGHUP);
    if (!strcmp(how, "TERM") || strstr(how, "TERM-")) kill(getpid(), SIGTERM);
}
static int program(int argc, char **argv) {
    const char *how = argv[1];
    ints *c = ints_new(0);
    gort_go(reader, c);
    if (!strcmp(how, "TERM-call") && gort_trace_start(argv[2]) != 0) return 4;
    if (!strcmp(how, "TERM-over") && (gort_trace_start(argv[2]) != 0 || gort_trace_stop() != 0))
        return 4;
    if (!strcmp(how, "TERM-own")) signal(SIGTERM, on_signal);
    if (!strcmp(how, "TERM-exit")) signal(SIGTERM, on_exit_signal);
    for (int i = 0; i < 3000; i++) ints_send(c, i);
    end_by(how);
    if (!strcmp(how, "endless") && write(1, "busy\n", 5) != 5) return 4;
    for (int i = 0; !handled && strcmp(how, "TERM-ignored"); i++) ints_send(c, i); /* busy */
    return 6;
}
int main(int argc, char **argv) {
    if (!strcmp(argv[1], "TERM-before")) signal(SIGTERM, on_signal);
    if (!strcmp(argv[1], "TERM-ignored")) signal(SIGTERM, SIG_IGN);
    return gort_main(program, argc, argv);
}
END2
${CC:-cc} -g -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
${CC:-cc} -g tests/lib/pftrace_check.c -o "$dir/check"

# run how status: the rest is the environment
run() {
    how=$1 want=$2
    shift 2
    code=0
    (cd "$dir" && exec env "$@" ./prog "$how" "$dir/call.pftrace") >"$dir/err" 2>&1 || code=$?
    [ "$code" = "$want" ] || { cat "$dir/err"; fail "$how: status $code, not $want"; }
}
whole() {
    "$out/bin/gort-trace" summary "$1" >"$dir/summary" || fail "$how: no whole trace in $1"
    grep -q '^reader  *1 ' "$dir/summary" || { cat "$dir/summary"; fail "$how: no reader in $1"; }
    case $1 in *.pftrace) "$dir/check" "$1" reader program || fail "$how: $1 does not hold" ;; esac
}

for pair in ABRT:134 SEGV:139 BUS:135 ILL:132 FPE:136 INT:130 HUP:129 TERM:143; do
    for form in json pftrace; do
        run "${pair%:*}" "${pair#*:}" GORT_TRACE="$dir/${pair%:*}.$form"
        whole "$dir/${pair%:*}.$form"
        run "${pair%:*}" "${pair#*:}" GORT_DEBUG=flight=10000 GORT_TRACE="$dir/f-${pair%:*}.$form"
        grep -q 'the last [0-9]*ms are in' "$dir/err" || { cat "$dir/err"; fail "$how: no word"; }
        whole "$dir/f-${pair%:*}.$form"
    done
done

# Others that crash meanwhile do not end the writing.
for form in json pftrace; do
    run SEGV-many 139 GORT_DEBUG=flight=10000 GORT_TRACE="$dir/many.$form"
    whole "$dir/many.$form"
    run SEGV-many 139 GORT_DEBUG=flight=10000,crash=0 GORT_TRACE="$dir/many.$form"
    whole "$dir/many.$form"
done

# Without GORT_TRACE the recorder's file has a name of its own.
run TERM 143 GORT_DEBUG=flight=10000
whole "$dir"/gort-flight-*.json

# A trace that the program has begun; after its end a signal has its default action again.
run TERM-call 143 GORT_MAXPROCS=2
whole "$dir/call.pftrace"
run TERM-over 143 GORT_MAXPROCS=2

# A handler of the program's own, set before and later, and one that exits; an ignored signal.
for pair in TERM-before:6 TERM-own:6 TERM-exit:5 TERM-ignored:6; do
    run "${pair%:*}" "${pair#*:}" GORT_TRACE="$dir/${pair%:*}.pftrace"
    whole "$dir/${pair%:*}.pftrace"
done

# What cannot be written is said.
run TERM 143 GORT_TRACE=/dev/full
grep -q '^gort: the trace is not whole: ENOSPC$' "$dir/err" || fail "a full disk: no word"
run TERM 143 GORT_DEBUG=flight=10000 GORT_TRACE=/dev/full
grep -q '^gort: the last events are not in /dev/full: ENOSPC$' "$dir/err" || fail "no word"
run SEGV 139 GORT_DEBUG=flight=10000 GORT_TRACE=/no/such.json
grep -q '^gort: the last events are not in /no/such.json: ENOENT$' "$dir/err" || fail "no word"

# One signal that comes twice, as from timeout(1): the second finds a writer that waits for us.
busy() { # a program with a trace that nobody reads yet
    rm -f "$dir/fifo" "$dir/busy"
    mkfifo "$dir/fifo" "$dir/busy"
    GORT_TRACE="$dir/fifo" "$dir/prog" endless "$dir/call.pftrace" >"$dir/busy" 2>"$dir/err" &
    exec 4<"$dir/busy" 3<"$dir/fifo"
    read -r _ <&4
}
busy
kill -TERM $!
kill -TERM $!
cat <&3 >"$dir/twice.json"
wait $! 2>/dev/null || true
how=twice
whole "$dir/twice.json"

# One that comes again, later, ends the program at once.
busy
while kill -TERM $! 2>/dev/null && ! grep -q 'a second signal' "$dir/err"; do sleep 0.1; done
wait $! 2>/dev/null || true

# A signal as soon as there is a file: it is whole, not empty.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -f "$dir/soon.json"
    GORT_TRACE="$dir/soon.json" "$dir/prog" endless "$dir/call.pftrace" \
        >/dev/null 2>&1 &
    while [ ! -e "$dir/soon.json" ] && kill -0 $! 2>/dev/null; do :; done
    kill -TERM $!
    wait $! 2>/dev/null || true
    tail -c 4 "$dir/soon.json" | grep -q '}}' || fail "run $i: a file that is not whole"
done
