# C++20's threads (tests/programs/cxx20.cc).
set -u
. tests/lib/threads.sh
begin cxx
${CXX:-c++} -O2 -g -std=c++20 tests/programs/cxx20.cc -o "$WORK/cxx20" -pthread ||
    fail 'it does not compile'
alike cxx20 "$WORK/cxx20" 500
cat "$WORK/cxx20.2"
