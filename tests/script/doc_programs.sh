# Every complete program in the documents (a block of c or cpp with a main) compiles without a
# warning; those that come to an end by themselves (all but servers, which accept) end well. In the
# README every block is a complete program. One with the comment `the race` has one: compiled for
# ThreadSanitizer, where there is one, it is told so.
set -eu
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # what lives at the end is left
bad=0 n=0 races=0
tsan= # flags, where programs built with them run here
case ${SAN:-} in '' | thread)
    echo 'int main(void) { return 0; }' |
        $CC -fsanitize=thread -x c - -o "$WORK/probe" 2>/dev/null && "$WORK/probe" &&
        tsan='-g -fsanitize=thread' ;;
esac
race_is_told() { # program.c: ten times, since a race is met by chance
    $CC -std=c11 $tsan -Iinclude "$1" "$OUT/libgort.a" -lpthread -o "$WORK/program" || return
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        timeout -k 1 100 "$WORK/program" >"$WORK/out" 2>&1 </dev/null || :
        ! grep -q 'WARNING: ThreadSanitizer: data race' "$WORK/out" || return 0
    done
    return 1
}
for f in $(find . -name build -prune -o -name .git -prune -o -name '*.md' -print | sort); do
    rm -f "$WORK"/block.*
    awk -v to="$WORK/block." \
        '/^```c$/ { on = 1; name = to (k += 1) ".c"; next }
        /^```cpp$/ { on = 1; name = to (k += 1) ".cc"; next }
        /^```/ { on = 0 }
        on { print > name }' "$f"
    for c in "$WORK"/block.*.c*; do
        [ -e "$c" ] || continue
        if ! grep -q 'int main(' "$c"; then
            [ "$f" != ./README.md ] || { cat "$c"; echo "^ no program, in $f"; bad=1; }
            continue
        fi
        n=$((n + 1))
        case $c in
            *.cc) command -v "${CXX:-g++}" >/dev/null || continue
                compiler="${CXX:-g++} -std=c++17" ;;
            *) compiler="$CC -std=c11" ;;
        esac
        $compiler -Wall -Wextra -Werror -Wno-unused-parameter -Iinclude "$c" \
            ${SAN:+-fsanitize=$SAN} "$OUT/libgort.a" -lpthread -o "$WORK/program" ||
            { echo "^ a program in $f"; bad=1; continue; }
        grep -q 'gort_accept' "$c" && continue
        if grep -q '// the race' "$c"; then
            races=$((races + 1))
            [ -z "$tsan" ] || race_is_told "$c" || { echo "^ no race is told in $f"; bad=1; }
            [ -z "$tsan" ] || continue
        fi
        timeout -k 1 100 "$WORK/program" >"$WORK/out" 2>&1 </dev/null ||
            { cat "$WORK/out"; echo "^ a program in $f fails"; bad=1; }
    done
done
[ $races -ge 1 ] || { echo 'no program with a race was found'; bad=1; }
[ $n -ge 3 ] || { echo "only $n programs were found"; bad=1; }
exit $bad
