#!/bin/sh
# The page's HTTP parser and the reader of line tables under libFuzzer, each for FUZZ_SECONDS, ten
# minutes by default.
set -eu
[ -z "${SAN:-}" ] || { echo "once is enough"; exit 77; }
[ "${ARCH:-$(uname -m)}" = "$(uname -m)" ] || { echo "not under emulation"; exit 77; }
${MAKE:-make} --no-print-directory fuzz FUZZ_SECONDS="${FUZZ_SECONDS:-600}" >"$WORK/log" 2>&1 ||
    { tail -60 "$WORK/log"; exit 1; }
if grep -q 'left out' "$WORK/log"; then cat "$WORK/log"; exit 77; fi
grep 'Done\|stat::' "$WORK/log"
[ "$(grep -c '^Done [1-9][0-9]* runs' "$WORK/log")" = 2 ]
