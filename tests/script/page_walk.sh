#!/bin/sh
# Who may look at the live page: every method, path, Host, Origin, Sec-Fetch-Site and token, one
# with another, on a loopback listener and on one for all, each answer against the rule. Then what
# costs something ends with its client. WALK_SEED and WALK_SECONDS: random spellings of the same on
# top.
set -eu
out=${OUT:-build}
. tests/lib/deps.sh
use_deps
if words=$(lack python); then echo "skipped: $words"; exit 77; fi
dir=$(mktemp -d)
pids=
trap 'for p in $pids; do kill $p 2>/dev/null || true; done; rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }
cat >"$dir/prog.c" <<'END'
#include <gort.h>
static void worker(void *arg) { for (;;) { gort_yield(); gort_sleep(GORT_MS); } }
static int program(int argc, char **argv) {
    char c;
    for (int i = 0; i < 4; i++) gort_go(worker, NULL);
    int r = gort_debug_listen(argv[1]);
    if (r != 0) return -r;
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"

# A token that does not fit is an error, and so is one that cannot be drawn.
if GORT_HTTP_TOKEN=$(printf '%0200d' 7) "$dir/prog" 127.0.0.1:0 </dev/null 2>"$dir/err"; then
    fail 'a token of 200 bytes was taken'
fi
grep -q 'GORT_HTTP_TOKEN is longer than 127 bytes' "$dir/err" ||
    fail "a long token: $(cat "$dir/err")"

if GORT_DEBUG=sysfault=getrandom:ENOSYS:1 "$dir/prog" 127.0.0.1:0 </dev/null 2>"$dir/err"; then
    fail 'a page without a token'
fi
grep -q 'gort: fatal: no random numbers.*: ENOSYS' "$dir/err" ||
    fail "no random numbers: $(cat "$dir/err")"

mkfifo "$dir/hold"
for at in 127.0.0.1:0 '[::1]:0' 127.0.0.2:0 0.0.0.0:0; do
    case $at in
        '[::1]:0') [ -e /proc/net/if_inet6 ] &&
            grep -q '^00000000000000000000000000000001' /proc/net/if_inet6 || continue ;;
    esac
    rm -f "$dir/err" # it has the last one's address
    GORT_HTTP_TOKEN=right "$dir/prog" "$at" <"$dir/hold" 2>"$dir/err" &
    pid=$!
    pids="$pids $pid"
    exec 9>"$dir/hold"
    until grep -qs 'live page on' "$dir/err"; do
        kill -0 $pid 2>/dev/null || fail "ended: $(cat "$dir/err")"; sleep 0.05
    done
    if grep -q right "$dir/err" || ! grep -q 'the token in GORT_HTTP_TOKEN$' "$dir/err"; then
        fail "of a given token only its place is said, not: $(cat "$dir/err")"
    fi
    python3 - "$(sed -n 's/^gort: live page on http:\/\/\([^ ]*\)\/.*$/\1/p' "$dir/err")" \
        <<'END' || fail "listening on $at"
import itertools, os, random, re, socket, sys, time
local = sys.argv[1]
name, port = re.match(r"(.*):(\d+)$", local).groups()
everywhere = name == "0.0.0.0"
to = ("127.0.0.1" if everywhere else name.strip("[]"), int(port))

def ask(text, wait=True):
    s = socket.create_connection(to, timeout=60)
    s.sendall(text.encode("latin1"))
    if not wait: return s
    got = b""
    while b"\r\n\r\n" not in got:
        part = s.recv(65536)
        if not part: break
        got += part
    s.close()
    m = re.match(rb"HTTP/1.1 (\d+) ", got)
    assert m, (text, got)
    return int(m.group(1))

paths = {"/": 200, "/events": 200, "/goroutines": 200, "/leaks": 200, "/metrics": 200,
         "/debug/pprof/": 200, "/debug/pprof": 200,
         "/debug/pprof/goroutine": 200, "/debug/pprof/created": 200, "/nothing": 404,
         # 400: it was let in, and costs nothing
         "/trace?seconds=0": 400, "/debug/pprof/profile?seconds=0": 400,
         "/debug/pprof/block?seconds=0": 400, "/debug/pprof/mutex?seconds=601": 400}
params = {"/leaks?minutes=0": 200, "/leaks?minutes=abc": 400, "/leaks?minutes=0.001": 400,
          "/leaks?minutes=-1": 400, "/leaks?minutes=1048577": 400, "/leaks?minutes=": 400,
          "/goroutines?id=1": 200, "/goroutines?id=abc": 400, "/goroutines?id=0": 404,
          "/goroutines?id=" + "9" * 30: 400, "/goroutines?format=json": 200,
          "/goroutines?format=svg": 400, "/goroutines?format=json&limit=few": 400,
          "/debug/pprof/created?format=folded": 200, "/debug/pprof/created?format=bogus": 400,
          "/debug/pprof/created?format=" + "x" * 30: 400, "/debug/pprof/goroutine?debug=yes": 400,
          "/debug/pprof/created?format=svg&library=1": 200,
          "/debug/pprof/created?library=yes": 400, "/debug/pprof/goroutine?format=json": 200,
          "/debug/pprof/profile?format=json&seconds=1": 400, "/leaks?format=json": 200,
          "/leaks?format=svg": 400, "/metrics?format=json": 400, "/debug/pprof/?format=svg": 400,
          "/goroutines?format=json&own=1": 200, "/goroutines?own=all": 400, "/events?own=1": 200,
          "/events?own=all": 400, "/goroutines?format=json&name=x&status=y": 200,
          "/trace?seconds=one": 400, "/trace?last=1": 409, "/trace?last=soon": 400,
          "/trace?last=1&format=timeline": 409, "/trace?seconds=0&format=timeline": 400,
          "/trace?seconds=1&format=svg": 400, "/trace?seconds=0&format=perfetto": 400}
costs = ("/trace", "/debug/pprof/profile", "/debug/pprof/block", "/debug/pprof/mutex")
ours = [f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", local, f"LocalHost:{port}"]
hosts = [None] + ours + ["localhost", "127.0.0.1", "127.0.0.1:1", f"127.evil.example:{port}",
         f"127.0.0.1.evil.example:{port}", f"evil.example:{port}", f"localhost.evil.example:{port}",
         f"127.0.0.1:{port}.evil", f"127.1:{port}", f"[::1]evil:{port}", "[::1]",
         f"localhost:0{port}"]
origins = [None, "null", "http://evil.example", f"http://localhost:{port}",
           f"http://127.0.0.1:{port}", f"https://127.0.0.1:{port}", f"http://{local}"]
sites = [None, "same-origin", "none", "same-site", "cross-site", "nonsense"]
tokens = [None, "?right", "?wrong", "Bearer right", "Bearer wrong", "Bearer righ"]
methods = ["GET", "HEAD", "POST", "OPTIONS"]

def rule(method, path, host, origin, site, token):
    if method not in ("GET", "HEAD"): return 405
    bare = path.split("?")[0]
    served = 200 if method == "HEAD" and bare in costs else {**paths, **params}[path]
    if token in ("?right", "Bearer right"): return served
    if everywhere: return 401
    h = host.lower() if host else None
    if h is not None and h not in [x.lower() for x in ours]: return 403
    same = h is not None and origin == "http://" + h
    if origin is not None and not same: return 403
    if site not in (None, "same-origin", "none") and bare != "/": return 403
    proof = site in ("same-origin", "none") if site else same
    return 401 if bare in costs and not proof else served

def text(method, path, host, origin, site, token, shake=None):
    if token and token[0] == "?": path += ("&" if "?" in path else "?") + "token=" + token[1:]
    lines = []
    if host: lines.append(("Host", host))
    if origin: lines.append(("Origin", origin))
    if site: lines.append(("Sec-Fetch-Site", site))
    if token and token[0] == "B": lines.append(("Authorization", token))
    if shake:
        shake.shuffle(lines)
        lines = [(shake.choice((n, n.lower(), n.upper())),
                  shake.choice(("", " ", "\t ")) + v + shake.choice(("", " "))) for n, v in lines]
        lines.insert(shake.randrange(len(lines) + 1), ("X-Forwarded-Host", "localhost:" + port))
    return f"{method} {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines) + "\r\n"

bad = n = 0
def check(case, shake=None):
    global bad, n
    got, want = ask(text(*case, shake)), rule(*case)
    n += 1
    if got != want:
        bad += 1
        if bad < 40: print(f"{case}: {got}, not {want}")
# each pair of values meets, in an order that a seed can repeat
sets = [methods, list(paths), hosts, origins, sites, tokens]
first = [s[0] for s in sets]
for i, j in itertools.combinations(range(6), 2):
    for a in sets[i]:
        for b in sets[j]:
            case = list(first); case[i], case[j] = a, b
            check(case)
for path, host, site in itertools.product(paths, hosts, sites):
    check(("GET", path, host, None, site, None))
for path in params: check(("GET", path, None, None, None, "?right"))
seed = int(os.environ.get("WALK_SEED", "1")); shake = random.Random(seed)
until = time.time() + float(os.environ.get("WALK_SECONDS", "0"))
while n < 2600 or time.time() < until: check([shake.choice(s) for s in sets], shake)
print(f"{local}: {n} requests, {bad} wrong, seed {seed}")
assert bad == 0

# What costs something ends with its client: the next one need not wait for its ten minutes.
for path in [c + "?" for c in costs] + ["/trace?format=timeline&"]:
    while True: # one that was quicker has made it wait in vain
        held = ask(f"GET {path}seconds=600&token=right HTTP/1.1\r\n\r\n", wait=False)
        if ask(f"GET {path}seconds=1&token=right HTTP/1.1\r\n\r\n") == 409: break
        held.close()
    held.close()
    while ask(f"GET {path}seconds=1&token=right HTTP/1.1\r\n\r\n") != 200: time.sleep(0.05)
END
    exec 9>&-
    wait $pid || fail "the program failed: $(cat "$dir/err")"
done
