# Node with worker threads, its pool for files and hashes, HTTP (tests/programs/node.js).
set -u
. tests/lib/threads.sh
begin node
export TMPDIR="$WORK"
alike node node tests/programs/node.js
cat "$WORK/node.2" "$WORK/node.2.err"
