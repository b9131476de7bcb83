# Backtraces in programs that are linked statically (src/unwind/modules.c): a position-independent
# one has no PT_PHDR that tells where it was loaded. gcc -static writes no index of the unwind
# tables unless it is asked: then the innermost frame has its name, and with the index all have.
set -u
[ -z "${SAN:-}" ] || { echo 'skipped: a sanitizer is linked dynamically'; exit 77; }
cat >"$WORK/p.c" <<'C'
#include <gort.h>
static void ends(void *c) { gort_chan_send(c, NULL); }
__attribute__((noinline)) int asks(gort_chan *c) {
    gort_go(ends, c);
    gort_dump(1);
    return gort_chan_recv(c, NULL);
}
static int app(int argc, char **argv) {
    gort_chan *c = gort_chan_new(0, 0);
    return asks(c);
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
links() {
    $CC -O1 -g -Iinclude $1 "$WORK/p.c" "$OUT/libgort.a" -lpthread -o "$WORK/p" 2>"$WORK/err"
}
status=0
# expect FLAGS WORD...: the dump of a program linked so has these words
expect() {
    flags=$1
    shift
    "$WORK/p" >"$WORK/dump" || { echo "$flags: status $?"; status=1; }
    for word; do
        grep -q "$word" "$WORK/dump" && continue
        echo "$flags: the dump has no $word"
        cat "$WORK/dump"
        status=1
        break
    done
}
links -static || { echo 'skipped: no static libc'; exit 77; }
expect -static '(p)$' 'created by asks' 'with ends'
links '-static -Wl,--eh-frame-hdr' || { cat "$WORK/err"; exit 1; }
expect '-static -Wl,--eh-frame-hdr' ' asks+' 'created by asks' ' app+'
if links -static-pie; then
    expect -static-pie ' asks+' 'created by asks' ' app+'
else
    echo 'no static libc for position-independent programs'
fi
exit $status
