# The servers among the examples, driven as a user would: examples/echo, examples/http, examples/proxy,
# examples/chat, examples/get, examples/checksum.
set -eu
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

for procs in 1 2 16; do
    export GORT_MAXPROCS=$procs
    [ "$("$ex/echo")" = ok ] || fail "echo ($procs)"

    start http "$ex/http" 127.0.0.1:0
    http=$addr
    start proxy "$ex/proxy" 127.0.0.1:0 "$http"
    proxy=$addr
    "$ex/get" "http://$http/" "http://$http/x" "http://$proxy/" "http://$proxy/y" >"$WORK/get" || fail "get ($procs)"
    [ "$(grep -c '^200 ' "$WORK/get")" = 4 ] || { fail "get says ($procs)"; cat "$WORK/get"; }
    if "$ex/get" "http://127.0.0.1:1/" >"$WORK/get"; then fail "get of nothing succeeds ($procs)"; fi

    # Pipelining, both ways of asking for the end, and through the proxy.
    python3 - "$http" "$proxy" <<'PY' || fail "pipelining ($procs)"
import socket, sys
for addr in sys.argv[1:]:
    host, port = addr.split(':')
    s = socket.create_connection((host, int(port)), 60)
    s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n' * 50 + b'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')
    data = b''
    while True:
        part = s.recv(65536)
        if not part: break
        data += part
    assert data.count(b'HTTP/1.1 200 OK') == 51, data.count(b'HTTP/1.1 200 OK')
    assert data.count(b'Hello, World!\n') == 51
    s = socket.create_connection((host, int(port)), 60)
    for c in b'POST / HTTP/1.0\r\n\r\n': s.sendall(bytes([c]))
    assert s.recv(100).startswith(b'HTTP/1.1 405')
PY

    start chat "$ex/chat" 127.0.0.1:0
    python3 - "$addr" <<'PY' || fail "chat ($procs)"
import socket, sys
host, port = sys.argv[1].split(':')
people = []
for i in range(5):
    s = socket.create_connection((host, int(port)), 60)
    people.append(s.makefile('rw'))
    for p in people[:-1]:
        assert p.readline() == '* %d has come\n' % (i + 1)
people[2].write('good morning\nall\n')
people[2].flush()
for p in people[:2] + people[3:]:
    assert p.readline() == '3: good morning\n'
    assert p.readline() == '3: all\n'
PY
    for p in $pids; do kill "$p" 2>/dev/null || :; wait "$p" 2>/dev/null || :; done
    pids=

    head -c 300000 /dev/urandom >"$WORK/a"
    : >"$WORK/b"
    "$ex/checksum" "$WORK/a" "$WORK/b" "$0" >"$WORK/sums" || fail "checksum ($procs)"
    cksum "$WORK/a" "$WORK/b" "$0" >"$WORK/expected"
    diff -u "$WORK/expected" "$WORK/sums" || fail "checksum and cksum differ ($procs)"
    GORT_DEBUG=uring=0 "$ex/checksum" "$WORK/a" "$WORK/b" "$0" | diff -u "$WORK/expected" - || fail "without io_uring ($procs)"
    if "$ex/checksum" "$WORK/none" 2>/dev/null; then fail "checksum of nothing ($procs)"; fi
done
exit $bad
