#!/bin/bash
# A user's program under ThreadSanitizer: a race between two goroutines is reported, and the same
# program with a mutex, a channel or a wait group in the right place is not.
set -u
[ -z "${SAN:-}" ] || { echo "once is enough"; exit 77; }
echo 'int main(void){return 0;}' | $CC -fsanitize=thread -x c - -o "$WORK/probe" 2>/dev/null && "$WORK/probe" ||
    { echo "no ThreadSanitizer here"; exit 77; }
$MAKE --no-print-directory SAN=thread lib >/dev/null || exit 1
cat >"$WORK/race.c" <<'C'
#include <gort.h>
static long counter;
static gort_mutex mu;
static gort_chan *turn;
static gort_wg wg;
static void count(void *arg) {
    for (int i = 0; i < 1000; i++) {
#if WAY == 1
        gort_mutex_lock(&mu);
#elif WAY == 2
        gort_chan_recv(turn, NULL);
#endif
        counter++;
#if WAY == 1
        gort_mutex_unlock(&mu);
#elif WAY == 2
        gort_chan_send(turn, NULL);
#endif
        if (i % 10 == 0) gort_yield();
    }
    gort_wg_done(&wg);
}
static int app(int argc, char **argv) {
    turn = gort_chan_new(0, 1);
    gort_chan_send(turn, NULL);
    gort_wg_add(&wg, 2);
    gort_go(count, NULL);
    gort_go(count, NULL);
    gort_wg_wait(&wg);
    return counter == 2000 || WAY == 0 ? 0 : 1;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
failed=0
for way in 0 1 2; do
    $CC -g -O1 -fsanitize=thread -DWAY=$way -Iinclude "$WORK/race.c" build/variant-thread/libgort.a -lpthread -o "$WORK/race$way" || exit 1
    for p in 1 2; do
        GORT_MAXPROCS=$p TSAN_OPTIONS=halt_on_error=0:exitcode=66 "$WORK/race$way" >"$WORK/out" 2>&1
        st=$?
        if [ $way = 0 ]; then
            grep -q 'data race' "$WORK/out" || { echo "P=$p: the race was not reported (status $st)"; failed=1; }
        elif [ $st != 0 ]; then
            echo "P=$p: way $way is reported (status $st)"; head -40 "$WORK/out"; failed=1
        fi
    done
done
exit $failed
