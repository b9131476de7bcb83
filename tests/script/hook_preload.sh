# libgort-hook.so in front of programs that never heard of gort: they do what they do without it,
# with the same output and status, no thread more, no signal handler or mask more.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
. tests/lib/deps.sh
use_deps
hook=$(cd "$OUT" && pwd)/libgort-hook.so
ran=

# name command...: with and without. What it says about threads and signals is part of its output.
same() {
    local name=$1 a=0 b=0
    shift
    timeout 60 "$@" >"$WORK/plain" 2>&1 </dev/null || a=$?
    LD_PRELOAD=$hook timeout 60 "$@" >"$WORK/hooked" 2>&1 </dev/null || b=$?
    [ $a = $b ] || { echo "$name: status $a, with the hook $b"; cat "$WORK/hooked"; exit 1; }
    cmp -s "$WORK/plain" "$WORK/hooked" ||
        { echo "$name: other output with the hook"; diff "$WORK/plain" "$WORK/hooked" ||
        true; exit 1; }
    [ -s "$WORK/plain" ] || { echo "$name says nothing: no test"; exit 1; }
    ran="$ran $name"
}
has() { command -v "$1" >/dev/null 2>&1; }

# The hook must really be there.
LD_PRELOAD=$hook sh -c 'cat /proc/self/maps' | grep -q libgort-hook.so ||
    { echo 'it is not loaded'; exit 1; }

# Read by the shell itself: with a child under way its masks are others from moment to moment.
state='while read -r line; do
    case $line in Threads*|SigCgt*|SigBlk*|SigIgn*) echo "$line" ;; esac
done </proc/$$/status'
same sh sh -c "$state
    echo a b c | tr ' ' '\n' | sort -r | while read x; do echo \$x; done; sleep 0.01; (exit 3)"
has bash && same bash bash -c "$state"'
    coproc c { cat; }; echo x >&${c[1]}; read -u ${c[0]} y; echo $y; exec {c[1]}>&-
    trap "echo caught" USR1; kill -USR1 $$; read -t 0.01 z </dev/zero; echo $?
    printf "%s\n" {1..2000} | xargs -P 4 -n 100 echo | wc -w; wait'
has dd && same dd sh -c '
    dd if=/dev/zero bs=4096 count=100 2>/dev/null | dd bs=512 2>/dev/null | wc -c
    mkfifo "$0"; (echo through >"$0") & cat "$0"; wait; rm "$0"' "$WORK/fifo"
has tar && same tar sh -c 'tar cf - src | tar tf - | sort | sum'
has make && same make make -s -j2 -f tests/script/hook_preload.mk

cat >"$WORK/all.py" <<'PY'
import os, select, signal, socket, subprocess, threading, time, queue, tempfile, fcntl

def state():
    return [l.strip() for l in open('/proc/self/status')
            if l.startswith(('Threads', 'SigCgt', 'SigBlk', 'SigIgn'))]

print(state())
a, b = socket.socketpair()
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    for _ in range(20):
        conn, _ = listener.accept()
        conn.sendall(conn.recv(100).upper())
        conn.close()
t = threading.Thread(target=serve)
t.start()
for i in range(20):
    c = socket.create_connection(listener.getsockname())
    c.sendall(b'hello %d' % i)
    print(c.recv(100))
    c.close()
t.join()
jobs, done = queue.Queue(), queue.Queue()
def work():
    while (n := jobs.get()) is not None: done.put(n * n)
pool = [threading.Thread(target=work) for _ in range(8)]
for t in pool: t.start()
for n in range(100): jobs.put(n)
for t in pool: jobs.put(None)
for t in pool: t.join()
print(sum(done.get() for _ in range(100)))
a.settimeout(0.01)
try: a.recv(1)
except socket.timeout: print('timeout')
print(select.select([a], [b], [], 0)[1] == [b])
poll = select.epoll(); poll.register(b, select.EPOLLOUT); print(poll.poll(0) == [(b.fileno(), 4)])
print(subprocess.run(['sh', '-c', 'cat; exit 4'], input=b'to a child', capture_output=True))
pid = os.fork()
if pid == 0:
    time.sleep(0.01)
    os._exit(7)
print(os.waitpid(pid, 0)[1])
with tempfile.TemporaryFile() as f:
    fcntl.flock(f, fcntl.LOCK_EX); f.write(b'x' * 10000); f.flush(); os.fsync(f.fileno())
    f.seek(0); print(len(f.read()))
signal.signal(signal.SIGALRM, lambda *_: print('alarm'))
signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
print(socket.getaddrinfo('127.0.0.1', 80)[0][4], os.system('true'))
print(state())
PY
has python3 && same python3 python3 "$WORK/all.py"
echo 'a page' >"$WORK/page"
if has curl && has python3; then
    (cd "$WORK" && exec python3 -u -c "
import http.server, sys
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(s.server_address[1], flush=True)
s.serve_forever()") >"$WORK/port" 2>/dev/null &
    server=$!
    trap 'kill $server 2>/dev/null || true' EXIT
    for i in $(seq 300); do [ -s "$WORK/port" ] && break; sleep 0.1; done
    same curl curl -s -S "http://127.0.0.1:$(cat "$WORK/port")/page" \
        "http://127.0.0.1:$(cat "$WORK/port")/none" -o /dev/stdout
    kill $server
fi
has psql && same psql psql -h "$WORK" -p 1 -c 'select 1'
has redis-cli && same redis-cli redis-cli -h 127.0.0.1 -p 1 ping
has sqlite3 && same sqlite3 sqlite3 "$WORK/db" \
    'drop table if exists t; create table t(x); insert into t values (1),(2); select sum(x) from t;'
has openssl && same openssl sh -c '
    echo text | openssl enc -aes-128-cbc -K 00 -iv 00 2>/dev/null |
    openssl enc -d -aes-128-cbc -K 00 -iv 00 2>/dev/null'
has perl && same perl perl -e '
    use IO::Socket;
    open(F, "/proc/self/status"); print grep {/^(Threads|SigCgt|SigBlk|SigIgn)/} <F>;
    my $p = open(P, "-|", "echo child") or die; print <P>;
    select(undef, undef, undef, 0.01); print "end\n"'
echo "the same with it:$ran"
