#!/bin/sh
# USDT probes: readelf sees their notes in the shared library and in a program. (That gdb stops at
# one and reads its arguments: tests/long/gdb.sh.)
set -eu
out=${OUT:-build}
case "${ARCH:-$(uname -m)}" in x86_64 | aarch64) ;; *) echo "no probes here"; exit 77 ;; esac
command -v readelf >/dev/null || { echo "no readelf"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
static void nothing(void *arg) {}
static int program(int argc, char **argv) {
    gort_wg wg = {0};
    for (int i = 0; i < 5; i++) gort_wg_go(&wg, nothing, NULL);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
# shellcheck disable=SC2086
${CC:-cc} -g $san -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
for file in "$out/libgort.so" "$dir/prog"; do
    readelf -n "$file" >"$dir/notes" 2>/dev/null
    for probe in create start block ready yield end preempt syscall_enter syscall_exit handoff \
        steal poll stop_world; do
        grep -A1 'Provider: gort$' "$dir/notes" | grep -q "Name: $probe\$" ||
            fail "$file: no probe $probe"
    done
done
