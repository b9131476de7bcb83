#!/bin/bash
# Each request for memory or a thread that a run of the runtime makes is refused once, in turn: the
# program ends with success or with a clear error, in every case. How many there are depends on how
# the threads meet, from run to run, 30 to 60: sixty are walked, and on until three in a row have
# found nothing to refuse.
set -u
cat >"$WORK/walk.c" <<'C'
#include <gort.h>
#include <stdio.h>
#include <unistd.h>
static gort_wg wg;
static gort_chan *c;
static void waits(void *arg) {
    gort_chan_recv(c, NULL);
    gort_wg_done(&wg);
}
static void sleeps(void *arg) {
    gort_sleep(GORT_MS);
    gort_wg_done(&wg);
}
static long blocks(void *arg) {
    usleep(1000);
    return 0;
}
static void calls(void *arg) {
    gort_blocking(blocks, NULL);
    gort_wg_done(&wg);
}
static void start(gort_fn *fn, const gort_attr *attr) {
    gort_wg_add(&wg, 1);
    int r = gort_go_with(attr, fn, NULL);
    if (r == 0) return;
    if (r != -ENOMEM) _exit(3);
    gort_wg_done(&wg);
}
static int app(int argc, char **argv) {
    static gort_attr big = {.name = "big", .stack_size = 1 << 20};
    if ((c = gort_chan_new(0, 0)) == NULL) return 4;
    for (int i = 0; i < 300 / SCALE; i++) start(waits, NULL);
    for (int i = 0; i < 600 / SCALE; i++) start(sleeps, NULL);
    for (int i = 0; i < 8; i++) start(calls, NULL);
    for (int i = 0; i < 8; i++) start(waits, &big);
    gort_yield();
    gort_chan_close(c);
    gort_wg_wait(&wg);
    gort_chan_release(c);
    return 0;
}
int main(int argc, char **argv) {
    int r = gort_main(app, argc, argv);
    if (r == -ENOMEM || r == -EAGAIN) {
        printf("refused: %d\n", r);
        return 0;
    }
    return r;
}
C
# Under TSan a goroutine costs as much as a thread. A tenth of them makes the same requests: stacks,
# records and timers come by the hundreds and thousands.
scale=1
[ "$SAN" = thread ] && scale=10
$CC -O1 -g -DSCALE=$scale ${SAN:+-fsanitize=$SAN} -Iinclude "$WORK/walk.c" "$OUT/libgort.a" \
    -lpthread -o "$WORK/walk" || exit 1
failed=0

# walk CALL ERROR MOST LEAST: refuses the first, the second ..., MOST of them and until three in a
# row were not asked for; fewer than LEAST cannot be all
walk() {
    local n=0 none=0 refused=0 st
    while [ $n -lt "$3" ] || [ $none -lt 3 ]; do
        n=$((n + 1)) none=$((none + 1))
        GORT_MAXPROCS=2 GORT_DEBUG=sysfault=$1:$2:$n,sysfault=log timeout -s QUIT -k 5 60 \
            "$WORK/walk" >"$WORK/out" 2>&1
        st=$?
        grep -q "^gort: sysfault: $1 #$n: " "$WORK/out" && none=0 refused=$((refused + 1))
        [ $st = 0 ] && continue
        echo "sysfault=$1:$2:$n: status $st"
        head -30 "$WORK/out"
        failed=1
    done
    echo "$1: $refused refused"
    [ $refused -ge "$4" ] || { echo "so few cannot be all of them"; failed=1; }
}
walk mmap ENOMEM 50 20
walk clone EAGAIN 10 3
exit $failed
