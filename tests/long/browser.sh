#!/bin/sh
# The live page in a real browser: Chromium, driven by Playwright.
#
#   tests/page/fixed.mjs   over data that never change: filters, zoom, search, keys; what axe finds
#                          wrong for a screen reader; pictures, compared with tests/page/pictures,
#                          in both colours, 1280 and 390 pixels wide. UPDATE=1 makes them anew.
#   tests/page/real.mjs    of a program that runs; its pictures are kept in $OUT/page.png and
#                          $OUT/page-dark.png
#
# Chromium comes from Debian (tests/deps), Playwright and axe by npm, both into $DEPS. Where they
# cannot be had the test is skipped.
set -eu
out=${OUT:-build}
[ -z "${SAN:-}" ] || { echo "skipped: not under a sanitizer"; exit 77; }
. tests/lib/deps.sh
tests/deps browser
use_deps
if words=$(lack browser); then echo "skipped: $words"; exit 77; fi
for tool in node npm; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
MODULES=$DEPS/npm/node_modules
brought() { [ -d "$MODULES/playwright-core" ] && [ -d "$MODULES/axe-core" ]; }
if ! brought; then
    [ -z "${NODEPS:-}" ] || { echo 'skipped: needs playwright-core axe-core (NODEPS=1)'; exit 77; }
    timeout 300 npm install --prefix "$DEPS/npm" --ignore-scripts --no-audit --no-fund \
        playwright-core@1.65.1 axe-core@4.14.0 >"$WORK/npm" 2>&1 || true
    brought || { echo "skipped: npm cannot fetch them: $(tail -n 1 "$WORK/npm")"; exit 77; }
fi
dir=$(mktemp -d)
pids=
trap 'for p in $pids; do kill $p 2>/dev/null || true; done; rm -rf "$dir"' EXIT

# One font for everything, so that pictures are the same everywhere.
use() {
    echo "<alias binding=\"same\"><family>$1</family>"
    echo "<prefer><family>$2</family></prefer></alias>"
}
{
    echo '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
    echo "<dir>$(in_deps $DEJAVU)</dir><cachedir>$dir/fonts</cachedir>"
    echo '<selectfont><rejectfont><glob>*Serif*</glob><glob>*Math*</glob></rejectfont></selectfont>'
    for family in system-ui sans-serif; do use $family 'DejaVu Sans'; done
    for family in ui-monospace monospace; do use $family 'DejaVu Sans Mono'; done
    echo '</fontconfig>'
} >"$dir/fonts.conf"
export MODULES OUT="$out" HOME="$dir" FONTCONFIG_FILE="$dir/fonts.conf"
CHROMIUM=$(chromium_program)
export CHROMIUM

status=0
node tests/page/fixed.mjs || status=1

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
/* Keeps its P from the others for 300 ms. */
static void hog(void *arg) {
    for (;;) {
        gort_pin();
        int64_t until = gort_now() + 300 * GORT_MS;
        while (gort_now() < until) {}
        gort_unpin();
        gort_sleep(200 * GORT_MS);
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
    gort_go(hog, NULL);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
mkfifo "$dir/hold"
GORT_DEBUG=flight=2000,leak=200ms GORT_TRACE=$dir/flight.json GORT_MAXPROCS=4 \
    GORT_HTTP=127.0.0.1:0 "$dir/prog" <"$dir/hold" 2>"$dir/err" &
pids=$!
exec 9>"$dir/hold"

page=
until [ -n "$page" ]; do
    kill -0 $pids || { echo "the program has ended: $(cat "$dir/err")"; exit 1; }
    page=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$dir/err")
    sleep 0.05
done
node tests/page/real.mjs "$page" "$out/page.png" >"$dir/said" 9>&- &
look=$!
pids="$pids $look"
until grep -q 'the page is right' "$dir/said" || ! kill -0 $look 2>/dev/null; do sleep 0.1; done
exec 9>&-
wait $look || { cat "$dir/said"; status=1; }
exit $status
