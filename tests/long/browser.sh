#!/bin/sh
# The live page in a real browser: it draws Ps and goroutines that change, shows a backtrace on a
# click, takes a trace and a CPU profile, and the console has no error. Screenshots are kept in
# $OUT/page.png and $OUT/page-dark.png.
set -eu
out=${OUT:-build}
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
for tool in python3 chromedriver; do
    command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
command -v chromium >/dev/null || { echo "no chromium"; exit 77; }
dir=$(mktemp -d)
pids=
trap 'for p in $pids; do kill $p 2>/dev/null || true; done; rm -rf "$dir"' EXIT

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <unistd.h>
static gort_chan *jobs, *results, *never;
static gort_mutex mu;
static void stuck_here(void *arg) { gort_chan_recv(never, NULL); __asm__ volatile(""); }
static void short_one(void *arg) {
    int64_t until = gort_now() + GORT_MS;
    while (gort_now() < until) {}
}
static void worker(void *arg) {
    int v;
    while (gort_chan_recv(jobs, &v) == 0) {
        int64_t until = gort_now() + 3 * GORT_MS;
        while (gort_now() < until) {}
        gort_mutex_lock(&mu);
        gort_yield();
        gort_mutex_unlock(&mu);
        gort_chan_send(results, &v);
    }
}
static void producer(void *arg) {
    for (int i = 0;; i++) {
        gort_chan_send(jobs, &i);
        gort_sleep(2 * GORT_MS);
    }
}
static long nap(void *arg) { usleep(300000); return 0; }
static void caller(void *arg) {
    for (;;) gort_blocking(nap, NULL);
}
static void burst(void *arg) {
    for (;;) {
        gort_wg wg = {0};
        for (int i = 0; i < 60; i++) gort_wg_go(&wg, short_one, NULL);
        gort_wg_wait(&wg);
        gort_sleep(100 * GORT_MS);
    }
}
static void collector(void *arg) {
    int v;
    while (gort_chan_recv(results, &v) == 0) {}
}
static int program(int argc, char **argv) {
    char c;
    gort_attr attr = {.name = "worker"};
    jobs = gort_chan_new(sizeof(int), 16);
    results = gort_chan_new(sizeof(int), 0);
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 12; i++) gort_go_with(&attr, worker, NULL);
    for (int i = 0; i < 30; i++) gort_go(stuck_here, NULL);
    gort_go(producer, NULL);
    gort_go(collector, NULL);
    gort_go(caller, NULL);
    gort_go(burst, NULL);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"
GORT_MAXPROCS=4 GORT_HTTP=127.0.0.1:0 "$dir/prog" <"$dir/hold" 2>"$dir/err" &
pids=$!
exec 9>"$dir/hold"

python3 - "$dir" "$out/page.png" <<'END'
import atexit, base64, json, os, re, subprocess, sys, time, urllib.request
dir, picture = sys.argv[1:3]

def wait(what, get, seconds=90):
    end = time.time() + seconds
    while time.time() < end:
        v = get()
        if v: return v
        time.sleep(0.1)
    sys.exit("waited in vain for " + what)

def found(path, pattern):
    m = re.search(pattern, open(path).read())
    return m and m.group(1)

page = wait("the page's address", lambda: found(dir + "/err", r"live page on (\S+)"))
driver = None
def driver_port(): # it ends when the port it has drawn is taken for the other family: again
    global driver
    if driver is None or driver.poll() is not None:
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=open(dir + "/driver", "w"),
                                  stderr=subprocess.STDOUT, env=dict(os.environ, HOME=dir))
    return found(dir + "/driver", r"successfully on port ([1-9]\d*)")
atexit.register(lambda: driver and driver.terminate())
port = wait("chromedriver", driver_port)

def call(method, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request("http://127.0.0.1:%s%s" % (port, path), data,
                                     {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request, timeout=120))["value"]

try: session = call("POST", "/session", {"capabilities": {"alwaysMatch": {
    "goog:chromeOptions": {"args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                                    "--disable-dev-shm-usage", "--window-size=1280,1240",
                                    "--no-proxy-server", "--user-data-dir=" + dir + "/profile"]},
    "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]
except Exception as e:
    print("the browser does not start here:", e)
    sys.exit(77)
base = "/session/" + session
def run(script): return call("POST", base + "/execute/sync", {"script": script, "args": []})
try:
    call("POST", base + "/url", {"url": page})
    wait("four Ps", lambda: run("return document.querySelectorAll('g.P').length") == 4)
    switches = ("return [...document.querySelectorAll('g.P')]"
                ".reduce((n, p) => n + +p.dataset.switches, 0)")
    first = run(switches)
    wait("Ps that change", lambda: run(switches) > first)
    wait("threads", lambda: run("return document.querySelectorAll('g.M').length") >= 2)
    wait("plots", lambda: len(run("return document.getElementById('l1').getAttribute('points')"
                                   " || ''").split()) >= 4)
    wait("groups", lambda: run("return document.querySelector('#groups').textContent")
         .count("stuck_here"))
    run("const f = document.getElementById('filter'); f.value = 'stuck_here';"
        " f.dispatchEvent(new Event('input'))")
    wait("30 goroutines in the table",
         lambda: run("return document.querySelectorAll('#list tbody tr').length") == 30)
    run("document.querySelector('#list tbody tr').click()")
    text = wait("a backtrace", lambda: (lambda t: t if "stuck_here+0x" in t else None)(
        run("return document.getElementById('trace-text').textContent")))
    assert "[chan receive, " in text, text
    run("document.getElementById('trace').click()")
    wait("a trace", lambda: "gort-trace.json: " in
         run("return document.getElementById('state').textContent"))
    state = run("return document.getElementById('state').textContent")
    assert "failed" not in state, state
    run("document.getElementById('profile').click()")
    wait("a flame graph", lambda: run("return !document.getElementById('flame').hidden &&"
         " document.querySelector('#flame iframe').src.startsWith('blob:')"))
    svg = call("POST", base + "/execute/async", {
        "script": "const done = arguments[0]; fetch(document.querySelector('#flame iframe').src)"
                  ".then(r => r.text()).then(done)", "args": []})
    assert "<svg" in svg and "worker" in svg, svg[:500]
    run("document.getElementById('flame-close').click(); window.scrollTo(0, 0)")
    time.sleep(1)
    open(picture, "wb").write(base64.b64decode(call("GET", base + "/screenshot")))
    call("POST", base + "/goog/cdp/execute", {
        "cmd": "Emulation.setEmulatedMedia",
        "params": {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}})
    time.sleep(0.5)
    open(picture.replace(".png", "-dark.png"), "wb").write(
        base64.b64decode(call("GET", base + "/screenshot")))
    errors = [l for l in call("POST", base + "/se/log", {"type": "browser"})
              if l["level"] == "SEVERE"]
    assert not errors, errors
finally:
    call("DELETE", base)
END
