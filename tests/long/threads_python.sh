# Python with a thousand threads (tests/programs/threads.py).
set -u
. tests/lib/threads.sh
begin python
alike python python3 tests/programs/threads.py 1000
cat "$WORK/python.2"
