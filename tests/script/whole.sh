# Whole programs by seed (tests/whole): WHOLE_SECONDS of scenes with native threads, then under
# gort-run. A seed of the day; what is found comes with the text of its scene.
set -u
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
flags="-std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-result -g -O1"
# shellcheck disable=SC2086
$CC $flags -fasynchronous-unwind-tables -pthread tests/whole/*.c -lm -lanl \
    -o "$WORK/whole" || exit 1
seed=${WHOLE_SEED:-$(date +%j)} seconds=${WHOLE_SECONDS:-6}
echo native:
"$WORK/whole" "$seed" $((seconds / 2)) || exit 1
[ -z "${WHOLE_MONKEYS:-}" ] || {
    $CC -O2 tests/long/monkey.c -o "$WORK/monkey" || exit 1
    export WHOLE_MONKEY="$WORK/monkey"
}
here=$(cd "$OUT" && pwd)
export LD_PRELOAD="$here/libgort-hook.so" # where the built tree is another one than the script's
echo gort-run:
LD_PRELOAD= WHOLE_RUN="$PWD/tools/gort-run" "$WORK/whole" "$seed" "$seconds"
