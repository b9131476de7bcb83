# A million lives of threads leave nothing behind (tests/programs/lives.c); a tenth natively,
# and some where each switch is to another thread and every P is taken again and again.
set -u
. tests/lib/threads.sh
begin
SECONDS_EACH=600
$CC -O2 -g -Wall -pthread tests/programs/lives.c -o "$WORK/lives" || fail 'it does not compile'
lives() { # way lives
    under "$1" "$WORK/lives" "$2" >"$WORK/out" 2>&1 || { cat "$WORK/out"; fail "$1: status $?"; }
    echo "$1:"
    cat "$WORK/out"
}
lives native 100000
for way in 1 2 16; do lives $way 1000000; done
export GORT_DEBUG=retake=hammer,migrate=1
lives 2 300000
