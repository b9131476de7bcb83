#!/bin/sh
# gort-top on a program that works, on one that sleeps, and where there is nothing to see.
set -eu
out=${OUT:-build}
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <stdio.h>
#include <sys/prctl.h>
static gort_chan *never;
static void waiter(void *arg) { gort_chan_recv(never, NULL); }
static void busy_one(void *arg) {
    for (;;) gort_yield();
}
static int program(int argc, char **argv) {
    char c;
    gort_attr attr = {.name = "the busy one"};
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 20; i++) gort_go(waiter, NULL);
    for (int i = 0; argc > 1 && i < 3; i++) gort_go_with(&attr, busy_one, NULL);
    puts("ready");
    fflush(stdout);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) {
    prctl(PR_SET_NAME, "prog\033[31m");
    return gort_main(program, argc, argv);
}
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"

start() { # arguments of the program
    : >"$dir/ready"
    GORT_MAXPROCS=2 "$dir/prog" "$@" <"$dir/hold" >"$dir/ready" &
    pid=$!
    exec 9>"$dir/hold"
    i=0
    until grep -q ready "$dir/ready"; do
        i=$((i + 1)); [ $i -lt 1200 ] || fail "it does not start"
        sleep 0.05
    done
}
stop() {
    exec 9>&-
    wait $pid || fail "the program failed"
    pid=
}
# Reports until the text is there, since a busy machine may let the monitor wait.
sees() {
    i=0
    until "$out/bin/gort-top" -b -n 2 -d 0.2 $pid >"$dir/top" && grep -q "$1" "$dir/top"; do
        i=$((i + 1)); [ $i -lt 30 ] || { cat "$dir/top"; fail "gort-top does not show: $1"; }
    done
}

start busy
sees 'the busy one'
sees 'prog?\[31m, pid ' # a terminal would take it for a colour
sees '^goroutines 24 '
sees 'stacks [0-9]* MB reserved, '
sees '^per second: [1-9][0-9.]*[kM]* switches'
sees '^P1  *running '
stop

start # nothing moves: the monitor sleeps, and what it wrote before is shown
sees '^goroutines 21 '
sees '^P0  *idle '
sees 'Ps 2, 2 idle'
stop

"$out/bin/gort-top" -n 1 $$ 2>"$dir/err" && fail "a shell has no scheduler"
grep -q "^gort-top: $$: not a program that runs gort" "$dir/err" || fail "$(cat "$dir/err")"
code=0; "$out/bin/gort-top" nobody 2>/dev/null || code=$?
[ $code = 2 ] || fail "status $code for a wrong call"
code=0; "$out/bin/gort-top" -n x $$ 2>/dev/null || code=$?
[ $code = 2 ] || fail "status $code for -n x"

# Whoever asks for help gets it, and no complaint.
for tool in "$out/bin/gort-top" "$out/bin/gort-trace" "$out/bin/gort-explore" tools/gort-new; do
    for word in -h --help; do
        "$tool" $word >"$dir/help" 2>"$dir/err" || fail "$tool $word: status $?"
        grep -q "^usage: ${tool##*/} " "$dir/help" && [ ! -s "$dir/err" ] ||
            fail "$tool $word: $(cat "$dir/help" "$dir/err")"
    done
done
