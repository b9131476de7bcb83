# Whole programs by seed (tests/whole), WHOLE_SECONDS of scenes as they are, under gort-run, and
# with single threads held (tests/long/monkey.c): tests/script/whole.sh.
set -u
export WHOLE_SECONDS=${WHOLE_SECONDS:-120} WHOLE_SEED=${WHOLE_SEED:-$(date +%s)}
failed=0
bash tests/script/whole.sh || failed=1
WHOLE_MONKEYS=1 bash tests/script/whole.sh || failed=1
exit $failed
