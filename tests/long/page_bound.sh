#!/bin/sh
# A trace asked of the live page for ten minutes ends by itself, when 32 MB of events are recorded,
# and is a whole one.
set -eu
command -v curl >/dev/null || { echo 'skipped: no curl'; exit 77; }
[ -z "${SAN:-}" ] || { echo 'skipped: too slow with a sanitizer'; exit 77; }
cat >"$WORK/prog.c" <<'END'
#include <gort.h>
static void hot(void *arg) { for (;;) gort_yield(); }
static int program(int argc, char **argv) {
    char c;
    for (int i = 0; i < 8; i++) gort_go(hot, NULL);
    gort_read(0, &c, 1);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -O2 -Iinclude "$WORK/prog.c" "$OUT/libgort.a" -lpthread -o "$WORK/prog"
mkfifo "$WORK/hold"
GORT_HTTP=127.0.0.1:0 "$WORK/prog" <"$WORK/hold" 2>"$WORK/err" &
pid=$!
exec 9>"$WORK/hold"
trap 'kill $pid 2>/dev/null || true' EXIT
until grep -q 'token=' "$WORK/err"; do sleep 0.05; done
base=$(sed -n 's/^gort: live page on \(http:[^ ]*\)$/\1/p' "$WORK/err")
curl -s -S -m 590 --noproxy '*' \
    "${base}trace?seconds=600&$(sed -n 's/.*?\(token=.*\)$/\1/p' "$WORK/err")" >"$WORK/trace.json"
tail -c 500 "$WORK/trace.json" | grep -q otherData || { echo "the trace has no end"; exit 1; }
echo "$(wc -c <"$WORK/trace.json") bytes"
rm "$WORK/trace.json"
exec 9>&-
