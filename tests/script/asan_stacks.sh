# A program with AddressSanitizer and the plain library: goroutines leave frames without returning,
# by longjmp, gort_exit and C++ exceptions, and go on. ASan has to know each one's stack, or it
# takes the red zones of those frames for overflows; with detect_stack_use_after_return also each
# one's frames in other memory.
set -eu
[ -z "$SAN" ] || { echo 'skipped: it brings its own sanitizer'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
cat >"$WORK/leaves.h" <<'C'
#include <gort.h>
#include <string.h>
static gort_wg wg;
static volatile char *kept;
/* Frames with arrays, thus with red zones; the deepest does not return. */
static __attribute__((noinline)) int deep(int n, void (*leave)(void)) {
    volatile char frame[200];
    memset((char *)frame, n, sizeof frame);
    kept = frame;
    if (n == 0) leave();
    return deep(n - 1, leave) + frame[n];
}
/* Uses the stack where those frames were. */
static __attribute__((noinline)) int fill(void) {
    volatile char large[8000];
    memset((char *)large, 1, sizeof large);
    kept = large;
    return large[100];
}
C
cat >"$WORK/c.c" <<'C'
#include "leaves.h"
#include <setjmp.h>
static __thread jmp_buf *where;
static void jumps(void) { longjmp(*where, 1); }
static void jumper(void *arg) {
    for (int i = 0; i < 20; i++) {
        jmp_buf here;
        where = &here;
        if (setjmp(here) == 0) deep(20, jumps);
        fill();
        gort_yield();
        fill();
    }
}
static void exits(void *arg) {
    gort_yield();
    deep(20, gort_exit);
}
static int app(int argc, char **argv) {
    for (int i = 0; i < 50; i++) gort_wg_go(&wg, i % 2 ? exits : jumper, NULL);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) {
    for (int i = 0; i < 3; i++)
        if (gort_main(app, argc, argv) != 0) return 1;
    return 0;
}
C
cat >"$WORK/cc.cc" <<'C'
#include "leaves.h"
static void throws() { throw 1; }
static void thrower(void *) {
    for (int i = 0; i < 20; i++) {
        try {
            deep(20, throws);
        } catch (int) {
            fill();
            gort_yield();
        }
        fill();
    }
}
static int app(int, char **) {
    for (int i = 0; i < 50; i++) gort_wg_go(&wg, thrower, nullptr);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
flags='-fsanitize=address -g -O1 -Wno-infinite-recursion -Iinclude'
# shellcheck disable=SC2086
$CC $flags "$WORK/c.c" "$OUT/libgort.a" -lpthread -o "$WORK/c" 2>"$WORK/err" ||
    { grep -q . "$WORK/err" && cat "$WORK/err"; echo 'skipped: no AddressSanitizer'; exit 77; }
programs=c
cxx=${CXX:-g++}
# shellcheck disable=SC2086
if command -v "$cxx" >/dev/null &&
    "$cxx" $flags "$WORK/cc.cc" "$OUT/libgort.a" -lpthread -o "$WORK/cc" 2>/dev/null; then
    programs='c cc'
fi
for program in $programs; do
    for procs in 1 4; do
        for option in detect_stack_use_after_return=0 detect_stack_use_after_return=1; do
            GORT_MAXPROCS=$procs ASAN_OPTIONS=$option "$WORK/$program" 2>"$WORK/err" &&
                [ ! -s "$WORK/err" ] ||
                { echo "$program, $procs Ps, $option:"; cat "$WORK/err"; exit 1; }
        done
    done
done
