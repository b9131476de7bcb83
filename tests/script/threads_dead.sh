# Under gort-run a program whose threads wait for each other, for ever, is told so, with the names
# of the threads and where they wait; one that waits for anything else is left alone.
# tests/threads/scenes/waits.c.
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ "$ARCH" = x86_64 ] || { echo 'skipped: threads stay threads here'; exit 77; }
set -u
fail() {
    echo "$1"
    cat "$WORK/said"
    exit 1
}
"$CC" -O1 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -pthread \
    tests/threads/scenes/waits.c -o "$WORK/waits" || exit 1
play() { # scene [setting...]
    played=$1
    shift
    env "$@" timeout -k 1 60 tools/gort-run "$WORK/waits" "$played" >"$WORK/said" 2>&1
}

for scene in order recursive alone ended cond sem rwlock barrier join without_main ignored; do
    for procs in 1 4; do
        play "dead_$scene" GORT_MAXPROCS=$procs
        [ $? = 2 ] || fail "dead_$scene: not status 2"
        grep -q '^gort: fatal: all threads are asleep - deadlock!' "$WORK/said" ||
            fail "dead_$scene: not a word"
        grep -q '"spare thread"' "$WORK/said" && fail "dead_$scene: tells of a spare one"
    done
done
play dead_ended
grep -q '^goroutine 1 "main" waits for mutex 0x[0-9a-f]*, whose holder has ended$' "$WORK/said" ||
    fail 'dead_ended: not a word of the holder'
play dead_order
for line in '"goes there" waits for mutex 0x.*, which is held by goroutine [0-9]* "comes back"' \
    '"comes back" waits for mutex 0x.*, which is held by goroutine [0-9]* "goes there"' \
    '^goroutine [0-9]* "goes there" \[sync.Mutex.Lock' \
    ' pthread_mutex_lock+0x.* (libgort-hook.so)' ' there+0x[0-9a-f]* waits.c:[0-9]*' \
    'created by start+0x.* in goroutine 1 with back'; do
    grep -q -- "$line" "$WORK/said" || fail "dead_order: not a line with $line"
done

for scene in handler_posts waits_for_signal suspends reads timed sleeps other_process timer_thread \
    child_ends timer_number real_thread; do
    play "$scene" || fail "$scene: status $?"
done
play pauses
[ $? = 143 ] || fail 'pauses: not ended by SIGTERM'
exit 0
