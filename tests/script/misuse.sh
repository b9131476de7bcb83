# The generator of misuse (tests/misuse/misuse.cc): every state that forbids something × every call
# of the header, every state × every way out, and 200 of the whole product by a seed of the day,
# against libgort.a; the ways out against libgort.so too. MISUSE=all (tests/long/misuse.sh): the
# whole product.
set -u
command -v "${CXX:-g++}" >/dev/null || { echo "skipped: no ${CXX:-g++}"; exit 77; }
[ -z "$SAN" ] || { echo 'skipped: a sanitizer reports what ends here by abort'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
printf '#include "gort.h"\n' | "$CC" -E -Iinclude -x c - | grep -o '\bgort_[a-z_]*(' | tr -d '(' |
    grep -vxE 'gort_fn|.*_' | sort -u |
    sed 's/.*/CALL(&)/' >"$WORK/calls.h"
[ "$(wc -l <"$WORK/calls.h")" -gt 100 ] ||
    { echo 'the calls of the header were not found'; exit 1; }
build() { # name library...
    "${CXX:-g++}" -std=c++17 -g -O1 -Wall -Wextra -Werror -pthread -Iinclude \
        -DCALLS="\"$WORK/calls.h\"" \
        tests/misuse/misuse.cc -o "$WORK/$1" "${@:2}" || exit 1
}
build static "$OUT/libgort.a"
build shared -L"$OUT" -lgort -Wl,-rpath,"$PWD/$OUT"
status=0
if [ -n "${MISUSE:-}" ]; then
    "$WORK/static" all || status=1
    "$WORK/shared" all || status=1
else
    "$WORK/static" || status=1
    "$WORK/static" all "$(date +%j)" 200 || status=1
    "$WORK/shared" outs || status=1
fi
exit $status
