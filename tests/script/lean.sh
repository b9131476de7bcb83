# libgort-lean.a: a program without the floor inspect runs, is smaller, reports a deadlock with its
# goroutines, and says that it cannot be looked into. A call of that floor does not link.
set -u
cat >"$WORK/p.c" <<'C'
#include <gort.h>
#include <string.h>
static gort_chan *c; /* whoever still waits at the end has it: it is not released */
static void waits(void *arg) { gort_chan_recv(c, NULL); }
static int app(int argc, char **argv) {
    c = gort_chan_new(0, 0);
    gort_go(waits, NULL);
    if (argc > 1) gort_chan_recv(c, NULL);
    gort_chan_close(c);
    return 0;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
echo '#include <gort.h>
int main(void) { return gort_trace_start("t.json"); }' >"$WORK/t.c"
status=0
fail() { echo "$*"; status=1; }
flags="-O1 -g ${SAN:+-fsanitize=$SAN} -Iinclude"
for kind in '' -lean; do
    $CC $flags "$WORK/p.c" "$OUT/libgort$kind.a" -lpthread -o "$WORK/p$kind" || exit 1
done
bytes() { wc -c <"$1"; }
[ "$(bytes "$WORK/p-lean")" -lt "$(bytes "$WORK/p")" ] || fail 'it is not smaller'
for v in GORT_HTTP=:0 GORT_TRACE="$WORK/trace.json" GORT_DEBUG=flight=1000; do
    env "$v" "$WORK/p-lean" 2>"$WORK/err" || fail "$v: status $?"
    grep -q "^gort: warning: ${v%=*} is ignored" "$WORK/err" || fail "$v: not a word about it"
    env "$v" "$WORK/p" 2>"$WORK/err" || fail "$v, all floors: status $?"
    ! grep -q 'is ignored' "$WORK/err" || fail "$v is ignored with all floors"
done
"$WORK/p-lean" 2>"$WORK/err" || fail "status $?"
[ ! -s "$WORK/err" ] || { fail 'it speaks:'; cat "$WORK/err"; }
"$WORK/p-lean" deadlock 2>"$WORK/err"
[ $? = 2 ] || fail 'a deadlock does not end with 2'
grep -q 'all goroutines are asleep - deadlock!' "$WORK/err" || fail 'no deadlock was reported'
grep -q '^goroutine 1 .*chan receive' "$WORK/err" || fail 'no goroutine was listed'
! $CC $flags "$WORK/t.c" "$OUT/libgort-lean.a" -lpthread -o "$WORK/t" 2>/dev/null ||
    fail 'gort_trace_start links'
exit $status
