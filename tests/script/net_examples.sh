# The servers among the examples, driven as a user would: examples/echo, examples/http,
# examples/proxy, examples/chat, examples/get, examples/checksum.
set -eu
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # what lives at the end is left
bad=0
pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || :; done' EXIT
ex="$OUT/examples"
fail() { echo "$*"; bad=1; }

# Starts a server on a free port; $addr is where it listens.
start() {
    log="$WORK/log.$1"
    shift
    : >"$log"
    "$@" >"$log" 2>&1 &
    pids="$pids $!"
    addr=
    while [ -z "$addr" ]; do
        addr=$(sed -n 's/.*\(127\.0\.0\.1:[0-9][0-9]*\).*/\1/p' "$log" | head -n 1)
        kill -0 $! 2>/dev/null || { cat "$log"; exit 1; }
        [ -n "$addr" ] || sleep 0.1
    done
}

# bash opens a connection where a path /dev/tcp/host/port is named.
tcp() { echo "/dev/tcp/${1%:*}/${1##*:}"; }

# 51 requests at once, the last of which asks for the end.
pipelining() { # address
    local request='GET / HTTP/1.1\r\nHost: x\r\n\r\n' i
    exec 5<>"$(tcp "$1")" || return 1
    # shellcheck disable=SC2059
    {
        for i in $(seq 50); do printf "$request"; done
        printf 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'
    } >&5
    timeout 100 cat <&5 >"$WORK/answers"
    exec 5>&-
    [ "$(grep -c '^HTTP/1.1 200 OK' "$WORK/answers")" = 51 ] &&
        [ "$(grep -c '^Hello, World!$' "$WORK/answers")" = 51 ]
}

byte_by_byte() { # address
    local text=$'POST / HTTP/1.0\r\n\r\n' i line
    exec 5<>"$(tcp "$1")" || return 1
    for ((i = 0; i < ${#text}; i++)); do printf %s "${text:i:1}" >&5; done
    read -r -t 100 line <&5
    exec 5>&-
    [[ $line == 'HTTP/1.1 405'* ]]
}

hears() { # descriptor line
    local line
    read -r -t 100 -u "$1" line && [ "$line" = "$2" ] ||
        { echo "heard '$line', not '$2'"; return 1; }
}

# Five people come in, and the third says something.
chat() { # address
    local to i p
    to=$(tcp "$1")
    for i in 1 2 3 4 5; do
        eval "exec $((10 + i))<>$to" || return 1
        for ((p = 1; p < i; p++)); do hears $((10 + p)) "* $i has come" || return 1; done
    done
    printf 'good morning\nall\n' >&13
    for p in 1 2 4 5; do
        hears $((10 + p)) '3: good morning' && hears $((10 + p)) '3: all' || return 1
    done
    exec 11>&- 12>&- 13>&- 14>&- 15>&-
}

# The second of three does not read, and is dropped; the first reads, and hears all of the third.
chat_slow() { # address
    local to
    to=$(tcp "$1")
    exec 11<>"$to" || return 1
    exec 12<>"$to" || return 1
    hears 11 '* 2 has come' || return 1
    exec 13<>"$to" || return 1
    hears 11 '* 3 has come' || return 1
    cat <&11 12>&- 13>&- >"$WORK/heard" &
    cat "$WORK/speech" >&13
    until grep -q '^3: the end' "$WORK/heard"; do sleep 0.1; done
    exec 13>&-
    until grep -q '^\* 3 has left' "$WORK/heard"; do sleep 0.1; done
    kill $!
    exec 11>&- 12>&-
    grep -q '^\* 2 has left' "$WORK/heard" || { echo 'nobody was dropped'; return 1; }
    [ "$(grep -c '^3: ' "$WORK/heard")" = "$(wc -l <"$WORK/speech")" ] ||
        { echo 'the one who reads has missed something'; return 1; }
}
{ yes "$(printf '%0300d' 0)" | head -n 50000; echo 'the end'; } >"$WORK/speech"

# What cannot be reached is told with its address, in words that are about addresses: without a name
# server those are other ones, and strerror has "No such file or directory" for a name nobody has.
tells() { # words command...
    local words=$1
    shift
    RES_OPTIONS='timeout:1 attempts:1' timeout 100 "$@" >"$WORK/told" 2>&1 &&
        fail "succeeds: $*"
    grep -q -- "$words" "$WORK/told" || { cat "$WORK/told"; fail "says nothing of '$words': $*"; }
}
none=nobody.invalid:7 unknown='\(no such host\|the host, or a name server, cannot be reached\)'
for e in echo http chat 'httpd/httpd -l'; do
    name=${e%%[/ ]*}
    # shellcheck disable=SC2086
    tells "^$name: $none: $unknown\$" "$ex"/$e "$none"
    # shellcheck disable=SC2086
    tells "^$name: 127.0.0.1: no address: it is host:port" "$ex"/$e 127.0.0.1
done
tells "^proxy: $none: $unknown\$" "$ex/proxy" "$none" 127.0.0.1:1
tells "^$unknown .* http://$none/\$" "$ex/get" "http://$none/"
tells '^Protocol not supported .* ftp://x' "$ex/get" ftp://x
[ ! -x "$ex/tls" ] || tells "^tls: $none: $unknown\$" "$ex/tls" cert key "$none"

for procs in 1 2 16; do
    export GORT_MAXPROCS=$procs
    [ "$("$ex/echo")" = ok ] || fail "echo ($procs)"

    start http "$ex/http" 127.0.0.1:0
    http=$addr
    start proxy "$ex/proxy" 127.0.0.1:0 "$http"
    proxy=$addr
    "$ex/get" "http://$http/" "http://$http/x" "http://$proxy/" "http://$proxy/y" >"$WORK/get" ||
        fail "get ($procs)"
    [ "$(grep -c '^200 ' "$WORK/get")" = 4 ] || { fail "get says ($procs)"; cat "$WORK/get"; }
    if "$ex/get" "http://127.0.0.1:1/" >"$WORK/get"; then
        fail "get of nothing succeeds ($procs)"
    fi

    # Through the proxy as well.
    for server in "$http" "$proxy"; do
        pipelining "$server" || fail "pipelining ($procs, $server)"
        byte_by_byte "$server" || fail "a request byte by byte ($procs, $server)"
    done

    start chat "$ex/chat" 127.0.0.1:0
    chat "$addr" || fail "chat ($procs)"
    start slow "$ex/chat" 127.0.0.1:0
    chat_slow "$addr" || fail "a chat with a member who does not read ($procs)"
    kill "${pids##* }" && wait "${pids##* }" || fail "SIGTERM does not end the chat ($procs)"
    for p in $pids; do kill "$p" 2>/dev/null || :; wait "$p" 2>/dev/null || :; done
    pids=

    head -c 300000 /dev/urandom >"$WORK/a"
    : >"$WORK/b"
    "$ex/checksum" "$WORK/a" "$WORK/b" "$0" >"$WORK/sums" || fail "checksum ($procs)"
    cksum "$WORK/a" "$WORK/b" "$0" >"$WORK/expected"
    diff -u "$WORK/expected" "$WORK/sums" || fail "checksum and cksum differ ($procs)"
    GORT_DEBUG=uring=0 "$ex/checksum" "$WORK/a" "$WORK/b" "$0" | diff -u "$WORK/expected" - ||
        fail "without io_uring ($procs)"
    if "$ex/checksum" "$WORK/none" 2>/dev/null; then fail "checksum of nothing ($procs)"; fi
done
exit $bad
