# Whole programs by seed (tests/whole): some seconds of scenes with native threads, then
# WHOLE_SECONDS under gort-run. A seed of the day; what is found comes with the text of its scene.
set -u
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
[ "$ARCH" = x86_64 ] || { echo 'skipped: threads stay threads here'; exit 77; }
flags="-std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-result -g -O1"
# shellcheck disable=SC2086
$CC $flags -fasynchronous-unwind-tables -pthread tests/whole/*.c -lm -lanl \
    -o "$WORK/whole" || exit 1
if [ -n "${WHOLE_MONKEYS:-}" ]; then # some scenes with single threads held
    $CC -O2 tests/long/monkey.c -o "$WORK/monkey" || exit 1
    export WHOLE_MONKEY="$WORK/monkey"
fi
seed=${WHOLE_SEED:-$(date +%j)} seconds=${WHOLE_SECONDS:-6}
"$WORK/whole" "$seed" $(((seconds + 2) / 3)) || { echo 'with native threads'; exit 1; }
# what does not work yet: docs/threads.md
not=act=flockfile,stop
WHOLE_NOT=$not WHOLE_RUN=$PWD/tools/gort-run "$WORK/whole" "$seed" "$seconds"
