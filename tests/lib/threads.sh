# Unmodified programs with their threads as goroutines: sourced by tests/long/threads_*.sh.
#
#   begin NEED...             what the test needs (tests/lib/deps.sh); skips it where that cannot be
#   under WAY command...      runs it: WAY native, or a number of Ps: as gort-run does
#   alike NAME command...     as it is, and on 1, 2 and 16 Ps: the same output, the same end
#   start WAY command...      runs it beside the test: $server is its process, $input its input
#   await 'command'           until it works, for as long as the server lives; false: it does not
#   ended                     the server ends in its time, with 0; else $status says how
#   spare_port                prints a port that nobody listens on
#   threads_of PID            how many threads the kernel sees in a process
#   fail WORDS                says why, and ends
. tests/lib/deps.sh
ways='native 1 2 16'
hook=$(cd "$OUT" && pwd)/libgort-hook.so

fail() {
    echo "$*"
    exit 1
}
begin() {
    local words
    [ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
    [ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
    tests/deps "$@"
    use_deps
    if words=$(lack "$@"); then echo "skipped: $words"; exit 77; fi
    server=
    trap '[ -z "$server" ] || kill -9 $server 2>/dev/null' EXIT
}
# The limit is for one run: a test that hangs shows its goroutines.
under() {
    local way=$1
    shift
    [ "$way" = native ] || set -- GORT_MAXPROCS="$way" GORT_THREADS=1 LD_PRELOAD="$hook" "$@"
    timeout -s QUIT -k 5 "${SECONDS_EACH:-100}" env "$@"
}
alike() {
    local name=$1 way
    shift
    for way in $ways; do
        under $way "$@" >"$WORK/$name.$way" 2>"$WORK/$name.$way.err" </dev/null
        echo "exit status $?" >>"$WORK/$name.$way"
        ! grep 'threads stay threads' "$WORK/$name.$way.err" || fail "$name: no goroutines"
        cmp -s "$WORK/$name.native" "$WORK/$name.$way" && continue
        tail -n 60 "$WORK/$name.$way.err"
        diff "$WORK/$name.native" "$WORK/$name.$way"
        fail "$name: another result on $way Ps than as it is"
    done
    grep -q '^exit status 0$' "$WORK/$name.native" ||
        { cat "$WORK/$name.native" "$WORK/$name.native.err"; fail "$name: fails as it is"; }
}
# Without a limit of its own: the test's ends it.
start() {
    local way=$1
    shift
    [ "$way" = native ] || set -- env GORT_MAXPROCS="$way" GORT_THREADS=1 LD_PRELOAD="$hook" "$@"
    "$@" <"${input:-/dev/null}" &
    server=$!
}
await() {
    local i
    for i in $(seq 600); do
        eval "$1" >/dev/null 2>&1 && return
        kill -0 $server 2>/dev/null || return
        sleep 0.1
    done
    return 1
}
# One that does not end is asked by SIGQUIT what it waits for.
ended() {
    local i of=$server
    for i in $(seq 600); do
        kill -0 $of 2>/dev/null || break
        [ $i != 590 ] || kill -QUIT $of
        sleep 0.1
    done
    server=
    if kill -9 $of 2>/dev/null; then status='the help of SIGKILL'; return 1; fi
    wait $of
    status=$?
    return $status
}
threads_of() { sed -n 's/^Threads:[[:space:]]*//p' "/proc/$1/status"; }
spare_port() {
    local port
    while port=$((10000 + RANDOM % 20000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
    done
}
