# gort.hpp: its tests (tests/cxx) at 1, 2 and 16 Ps against libgort.a, at 2 against libgort.so;
# programs that end by an exception; and mistakes that the compiler has to find, in words.
set -u
CXX=${CXX:-g++}
command -v "$CXX" >/dev/null || { echo "skipped: no $CXX"; exit 77; }
flags='-g -O1 -std=c++17 -Wall -Wextra -Wshadow -Wconversion -Werror -pthread -Iinclude'
# Under a sanitizer gcc takes an empty std::optional for one that is read.
san=${SAN:+-fsanitize=$SAN -Wno-maybe-uninitialized}
bad=0
complain() { echo "$*"; bad=1; }

for source in tests/cxx/*.cc; do
    name=$(basename "$source" .cc)
    # shellcheck disable=SC2086
    "$CXX" $flags $san -c "$source" -o "$WORK/$name.o" &&
        "$CXX" $san "$WORK/$name.o" "$OUT/libgort.a" -pthread -o "$WORK/$name" ||
        { complain "$source does not build"; continue; }
    case $name in *_test) ;; *) continue ;; esac
    for procs in 1 2 16; do
        GORT_MAXPROCS=$procs timeout -s QUIT -k 5 200 "$WORK/$name" ||
            complain "$source fails at $procs Ps"
    done
    [ -z "$SAN" ] || continue
    "$CXX" "$WORK/$name.o" -L"$OUT" -lgort -Wl,-rpath,"$PWD/$OUT" -pthread -o "$WORK/$name-so" &&
        GORT_MAXPROCS=2 timeout -s QUIT -k 5 200 "$WORK/$name-so" ||
        complain "$source fails with libgort.so"
done

# How each way of tests/cxx/ends.cc ends: status, and a line of what it says.
ends() { # which status line
    timeout -k 1 60 "$WORK/ends" "$1" >"$WORK/out" 2>&1
    status=$?
    [ $status = "$2" ] && grep -qxF -- "$3" "$WORK/out" && return
    cat "$WORK/out"
    complain "ends $1: status $status, expected $2 and: $3"
}
# By an exception: what() is told, whose goroutine it was, and where it was thrown, since nothing is
# unwound. A sanitizer reports in its own way.
thrown() { # which goroutine what
    ends "$1" 134 "$3"
    [ -z "$SAN" ] || return
    ends "$1" 134 "gort: fatal: SIGABRT in $2: the program has called abort"
    grep -q ' _ZL6throwsi+0x' "$WORK/out" && ! grep -qx unwound "$WORK/out" && return
    cat "$WORK/out"
    complain "ends $1: where it was thrown is not told"
}
fire='  what():  the disk is on fire'
thrown plain 'goroutine 2' "$fire"
thrown named 'goroutine 2 "fire brigade"' "$fire"
thrown owned 'goroutine 2' "$fire"
thrown int 'goroutine 2' "terminate called after throwing an instance of 'int'"
thrown long 'goroutine 2 "a name that is longer than 31 b"' "$fire"
thrown main 'goroutine 1' "$fire"
thrown wg 'goroutine 2' "$fire"
ends group 134 "$fire"
ends late 134 '  what():  gort::group: go() after wait(): Invalid argument'
ends handler 3 'handler: the disk is on fire'
ends noexcept 134 unwound
ends caught 0 unwound
# The creator is the function of the program, without optimisation too, and each call another place.
"$CXX" -g -O0 -std=c++17 $san -pthread -Iinclude tests/cxx/ends.cc "$OUT/libgort.a" \
    -o "$WORK/ends-O0" && "$WORK/ends-O0" creators >"$WORK/out" 2>&1
places=$(sed -n 's/.*created by \(_ZL8creators[^ ]*\) .*/\1/p' "$WORK/out" | sort -u | wc -l)
[ "$places" = 6 ] || { cat "$WORK/out"; complain "creators: $places places in place of 6"; }
# The live page writes names of C++ out.
"$WORK/ends-O0" page 2>"$WORK/err" | sed -n '/^HTTP/,$p' >"$WORK/out"
for words in 'created by creators(gort::chan<void> const&)+0x' '"created_by":"creators(gort::chan' \
    'creators(gort::chan<void>_const&)::{lambda()#1}' \
    '<title>creators(gort::chan&lt;void&gt; const&'; do
    grep -qF -- "$words" "$WORK/out" || { cat "$WORK/err" "$WORK/out"; complain "page: no $words"; }
done
! grep _Z "$WORK/out" || complain 'page: a name that is not written out'
# TSan and ASan do not get as far: their own pthread_exit knows no goroutines.
[ "$SAN" = thread ] || [ "$SAN" = address ] ||
    timeout -k 1 60 "$WORK/ends" pthread_exit 2>&1 | grep -q '^gort: fatal: pthread_exit' ||
    complain 'ends pthread_exit: not reported'

# A wrong use does not compile, and the message tells why.
[ -z "$SAN" ] || exit $bad
refused() { # words of the message, code
    {
        echo '#include <gort.hpp>'
        echo 'using namespace gort;'
        echo 'using namespace std::chrono_literals;'
        echo "void f(chan<int> c, context x) { $2; }"
    } >"$WORK/wrong.cc"
    if "$CXX" -std=c++17 -Iinclude -fsyntax-only "$WORK/wrong.cc" 2>"$WORK/said"; then
        complain "this compiles: $2"
    elif ! grep -q -- "$1" "$WORK/said"; then
        cat "$WORK/said"
        complain "this says nothing of '$1': $2"
    fi
}
refused 'does not take these arguments' 'go([](int) {}, "text")'
refused 'the function takes nothing' 'gort::main([](int) {})'
refused 'has to be an object that can be moved' 'chan<std::atomic<int>> d'
refused 'has to take a std::optional' 'gort::select(on_recv(c, [](std::string) {}))'
refused 'have to stand in the call' 'auto one = on_recv(c, [](auto) {}); gort::select(one)'
refused 'one default or one deadline' 'gort::select(on_default(), within(1ms))'
refused 'returns void, an int or a gort::error' 'group g; g.go([] { return "text"; })'
of_main='gort::main: the function returns void, an int or a gort::error'
refused "$of_main" 'gort::main([] { return 1L; })'
refused "$of_main" 'gort::main([](int, char **) { return std::string("lost"); })'
refused 'gort::main: the function takes' 'gort::main([](int) {})'
refused 'deleted' 'c.recv_until(1ms)'
refused 'deleted' 'context y = x'
refused 'deleted' 'use_context in(x.with_timeout(1ms))'
refused 'deleted' 'group g(x.with_timeout(1ms), 2)'
refused 'by std::move' 'chan<std::unique_ptr<int>> u; std::unique_ptr<int> p; u.send(p)'
refused 'a member takes a gort::context_ref' 'group g; g.go([](int) {})'
refused 'once: the function takes nothing' 'once o; o.call([](int) {})'
refused 'within: the function takes nothing' 'gort::select(within(1ms, [](int) {}))'
refused 'has to take a gort::error' 'gort::select(on_send(c, 1, [](int) {}))'
refused 'no matching\|cannot convert\|no known conversion' 'c.send("text")'
exit $bad
