#!/bin/bash
# A user's program under ThreadSanitizer, linked with the library as it is installed, static and
# shared: a race between two goroutines is reported with both goroutines' stacks, and the same
# program with a mutex or a channel in the right place is not; nor is what the program does after
# gort_main with what goroutines have used. With one P, where both run on one thread, and with two.
set -u
[ -z "${SAN:-}" ] || { echo "once is enough"; exit 77; }
echo 'int main(void){return 0;}' | $CC -fsanitize=thread -x c - -o "$WORK/probe" 2>/dev/null &&
    "$WORK/probe" ||
    { echo "no ThreadSanitizer here"; exit 77; }
$MAKE --no-print-directory CC="$CC" PREFIX="$WORK/usr" install >"$WORK/log" 2>&1 ||
    { tail "$WORK/log"; exit 1; }
cflags=-I$WORK/usr/include libs="-L$WORK/usr/lib -lgort -lpthread"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$WORK/usr/lib/pkgconfig
    cflags=$(pkg-config --cflags gort) libs=$(pkg-config --libs gort) || exit 1
fi
cat >"$WORK/race.c" <<'C'
#include <gort.h>
static long counter;
static gort_mutex mu;
static gort_chan *turn;
static gort_wg wg;
static void begin(void) {
#if WAY == 1
    gort_mutex_lock(&mu);
#elif WAY == 2
    gort_chan_recv(turn, NULL);
#endif
}
static void end(void) {
#if WAY == 1
    gort_mutex_unlock(&mu);
#elif WAY == 2
    gort_chan_send(turn, NULL);
#endif
}
static void add(int i) {
    begin();
    counter++;
    end();
    if (i % 10 == 0) gort_yield();
}
static void first(void *arg) {
    for (int i = 0; i < 1000; i++) add(i);
    gort_wg_done(&wg);
}
static void second(void *arg) {
    for (int i = 0; i < 1000; i++) add(i);
    gort_wg_done(&wg);
}
static int app(int argc, char **argv) {
    turn = gort_chan_new(0, 1);
    gort_chan_send(turn, NULL);
    gort_wg_add(&wg, 2);
    gort_go(first, NULL);
#if WAY == 3
    while (gort_count() > 1) gort_yield();
    return 0;
#endif
    gort_go(second, NULL);
    gort_wg_wait(&wg);
    gort_chan_release(turn);
    return counter == 2000 || WAY == 0 ? 0 : 1;
}
int main(int argc, char **argv) {
    int r = gort_main(app, argc, argv);
    counter = 0;
    return r;
}
C
failed=0
both_stacks() { # the two accesses of the first report, each with its goroutine's function
    sed -n '/WARNING: ThreadSanitizer: data race/,/^  Location/p' "$WORK/out" >"$WORK/report"
    grep -q ' add .*race.c' "$WORK/report" && grep -q ' first .*race.c' "$WORK/report" &&
        grep -q ' second .*race.c' "$WORK/report"
}
for way in 0 1 2 3; do
    for kind in static shared; do
        [ $kind = static ] && how=${libs/-lgort/-l:libgort.a} ||
            how="$libs -Wl,-rpath,$WORK/usr/lib"
        # shellcheck disable=SC2086
        $CC -g -O1 -fno-inline -fsanitize=thread -DWAY=$way $cflags "$WORK/race.c" -o "$WORK/race" \
            $how || exit 1
        for p in 1 2; do
            GORT_MAXPROCS=$p TSAN_OPTIONS=halt_on_error=0:exitcode=66 timeout -s QUIT 60 \
                "$WORK/race" >"$WORK/out" 2>&1
            st=$?
            if [ $way = 0 ]; then
                both_stacks && [ $st = 66 ] && continue
                echo "$kind, P=$p: the race was not reported with both stacks (status $st)"
            else
                [ $st = 0 ] && continue
                echo "$kind, P=$p: way $way is reported (status $st)"
            fi
            head -40 "$WORK/out"
            failed=1
        done
    done
done
exit $failed
