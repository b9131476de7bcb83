# Every complete program in the documents (a block of c or cpp with a main) compiles without a
# warning; those that come to an end by themselves (all but servers, which accept) end well.
set -eu
bad=0 n=0
for f in $(find . -name build -prune -o -name .git -prune -o -name '*.md' -print | sort); do
    rm -f "$WORK"/block.*
    awk -v to="$WORK/block." \
        '/^```c$/ { on = 1; name = to (k += 1) ".c"; next }
        /^```cpp$/ { on = 1; name = to (k += 1) ".cc"; next }
        /^```/ { on = 0 }
        on { print > name }' "$f"
    for c in "$WORK"/block.*.c*; do
        grep -qs 'int main(' "$c" || continue
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
        timeout -k 1 100 "$WORK/program" >"$WORK/out" 2>&1 </dev/null ||
            { cat "$WORK/out"; echo "^ a program in $f fails"; bad=1; }
    done
done
[ $n -ge 3 ] || { echo "only $n programs were found"; bad=1; }
exit $bad
