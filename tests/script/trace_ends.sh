#!/bin/sh
# Whatever signal ends a program, and however it comes, the program ends as it does without a trace
# or the flight recorder, and their file is whole (tests/lib/trace_ends.c).
set -eu
[ -z "${SAN:-}" ] || { echo 'skipped: sanitizers have handlers of their own'; exit 77; }
out=${OUT:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ulimit -c 0
${CC:-cc} -g -Iinclude tests/lib/trace_ends.c "$out/libgort.a" -lpthread -o "$dir/ends"
"$dir/ends" "$out/bin/gort-trace" "$dir" "$@"
