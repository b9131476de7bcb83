# A C program with a plugin in C++ (tests/servers/plugin.c): what its goroutines catch, and
# call_once under the hook.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
command -v g++ >/dev/null || { echo 'skipped: no g++'; exit 77; }
g++ -std=c++17 -O1 -g -Wall -fPIC -shared tests/servers/plugin.cc -o "$WORK/plugin.so"
link="-L$OUT -Wl,-rpath,$(cd "$OUT" && pwd) -Wl,--no-as-needed"
# shellcheck disable=SC2086
"$CC" -O1 -g -Wall -Iinclude tests/servers/plugin.c -o "$WORK/hook" \
    $link -lgort-hook -lgort -lpthread
"$CC" -O1 -g -Wall -Iinclude tests/servers/plugin.c -o "$WORK/plain" "$OUT/libgort.a" -lpthread
for procs in 1 2 16; do
    GORT_MAXPROCS=$procs "$WORK/hook" "$WORK/plugin.so" hook
    GORT_MAXPROCS=$procs "$WORK/plain" "$WORK/plugin.so" plain
done
