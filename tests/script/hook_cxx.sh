# The hook under the C++ library: tests/servers/cxx.cc.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
command -v g++ >/dev/null || { echo 'skipped: no g++'; exit 77; }
g++ -std=c++17 -O1 -g -Wall -Iinclude tests/servers/cxx.cc -o "$WORK/cxx" -L"$OUT" \
    -Wl,-rpath,"$(cd "$OUT" && pwd)" \
    -Wl,--no-as-needed -lgort-hook -lgort -lpthread
for procs in 1 2 16; do
    GORT_MAXPROCS=$procs "$WORK/cxx" || { echo "at $procs Ps: status $?"; exit 1; }
done
