# gdb walks through segments, and so does a dump.
. tests/compact/lib
has_linker "$LINKER" || { echo "skipped: no ld.$LINKER"; exit 77; }
command -v gdb >/dev/null || { echo 'skipped: no gdb'; exit 77; }
cat >"$WORK/deep.c" <<'C'
#include <gort.h>
#include <unistd.h>
static __attribute__((noinline)) long innermost(void) { gort_dump(1); return getpid() > 0; }
static __attribute__((noinline)) long deeper(long n) {
    volatile char frame[4000];
    frame[0] = 1;
    return n ? deeper(n - 1) + frame[0] : innermost();
}
static void outermost(void *done) { deeper(150); gort_wg_done(done); }
static int body(int argc, char **argv) {
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    gort_go(outermost, &wg);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(body, argc, argv); }
C
build "$LINKER" "$WORK/deep" "$WORK/deep.c"
gdb -q -batch -ex 'handle SIGURG nostop noprint pass' -ex 'break innermost' -ex run -ex bt \
    "$WORK/deep" >"$WORK/bt" 2>&1 </dev/null
if grep -q 'ptrace: Operation not permitted' "$WORK/bt"; then
    echo 'skipped: gdb may not trace here'; exit 77
fi
[ "$(grep -c ' in deeper ' "$WORK/bt")" -ge 150 ] ||
    { echo 'gdb lost the frames'; tail -30 "$WORK/bt"; exit 1; }
grep -q ' outermost ' "$WORK/bt" ||
    { echo 'gdb did not get to the end'; tail -5 "$WORK/bt"; exit 1; }
"$WORK/deep" >"$WORK/dump"
[ "$(grep -c ' deeper[.+]' "$WORK/dump")" -ge 40 ] ||
    { echo 'the dump lost the frames'; cat "$WORK/dump"; exit 1; }
