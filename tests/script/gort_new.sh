# gort-new makes a project that builds without a warning, runs and tests itself: against the tree
# (GORT=), against what pkg-config knows, and, with neither, it says what is missing.
set -eu
. tests/lib/deps.sh
use_deps
[ -z "$SAN" ] || { echo 'skipped: a project is linked with the plain build'; exit 77; }
unset MAKEFLAGS GORT CPPFLAGS CFLAGS LDFLAGS
new=$PWD/tools/gort-new tree=$PWD lib=$(cd "$OUT" && pwd)
mkdir -p "$WORK/none" "$WORK/prefix/lib/pkgconfig" "$WORK/prefix/include"
export PKG_CONFIG_LIBDIR="$WORK/none" # what is installed on this machine is not what is tested
unset PKG_CONFIG_PATH
fail() {
    echo "$*"
    exit 1
}
try() { # directory [make's arguments]: it builds in silence, runs, passes its test
    local dir=$1
    shift
    for f in Makefile main.c work.c work.h work_test.c; do
        [ -s "$dir/$f" ] || fail "$dir has no $f"
    done
    "$MAKE" -C "$dir" CC="$CC" CFLAGS='-O1 -g -Werror' "$@" all >"$WORK/log" 2>&1 ||
        { cat "$WORK/log"; exit 1; }
    "$dir/build/bin/$(basename "$dir")" 10 >"$WORK/said"
    echo 'the squares of 1 to 10 add up to 385' | cmp - "$WORK/said"
    "$MAKE" -C "$dir" CC="$CC" "$@" run test >"$WORK/log" 2>&1 || { cat "$WORK/log"; exit 1; }
    grep -q '^the squares of 1 to 1000 add up to 333833500$' "$WORK/log" ||
        fail 'make run said something else'
    grep -q '^ok    build/tests/work_test$' "$WORK/log" || fail 'make test said nothing of its test'
}

# A prefix as make install leaves it, and the script in its bin: found with no tool and no variable.
mkdir -p "$WORK/prefix/bin"
cp include/gort.h "$WORK/prefix/include/"
cp "$lib/libgort.a" "$WORK/prefix/lib/"
cp "$new" "$WORK/prefix/bin/gort-new"
(cd "$WORK" && prefix/bin/gort-new by-prefix) || fail 'gort-new failed'
try "$WORK/by-prefix"

# The test notices a wrong answer.
sed -i 's/n \* n/n/' "$WORK/by-prefix/work.c"
if "$MAKE" -C "$WORK/by-prefix" CC="$CC" test >"$WORK/log" 2>&1; then
    fail 'the test does not notice a wrong sum'
fi

# GORT= when it is made, and when it is built.
GORT="$WORK/prefix" "$new" "$WORK/by-variable" >/dev/null
grep -q "^GORT   ?= $WORK/prefix\$" "$WORK/by-variable/Makefile" ||
    fail 'GORT is not in the Makefile'
"$new" "$WORK/from-tree" >/dev/null
grep -q "^GORT   ?= $tree\$" "$WORK/from-tree/Makefile" || fail 'the tree is not in the Makefile'
try "$WORK/from-tree" GORT="$WORK/prefix"

# pkg-config, with the shared library: found at run time too.
if command -v pkg-config >/dev/null; then
    cp "$lib/libgort.so" "$WORK/prefix/lib/libgort.so.0"
    ln -s libgort.so.0 "$WORK/prefix/lib/libgort.so"
    printf '%s\n' "libdir=$WORK/prefix/lib" 'Name: gort' 'Description: x' 'Version: 0' \
        "Cflags: -I$WORK/prefix/include" "Libs: -L$WORK/prefix/lib -lgort" \
        >"$WORK/prefix/lib/pkgconfig/gort.pc"
    export PKG_CONFIG_LIBDIR="$WORK/prefix/lib/pkgconfig"
    "$new" "$WORK/by-pkg-config" >/dev/null
    grep -q '^GORT   ?= $' "$WORK/by-pkg-config/Makefile" || fail 'pkg-config was not asked'
    try "$WORK/by-pkg-config"
    export PKG_CONFIG_LIBDIR="$WORK/none"
    if "$MAKE" -C "$WORK/by-pkg-config" clean >"$WORK/log" 2>&1; then
        fail 'it builds without gort'
    fi
    grep -q 'say make GORT=path' "$WORK/log" || fail 'no word about GORT=path'
else
    echo 'no pkg-config: its check is left out'
fi

# What it refuses.
refuses() { # status arguments...
    local want=$1 st=0
    shift
    "$new" "$@" >"$WORK/log" 2>&1 || st=$?
    [ $st = "$want" ] || fail "gort-new $*: status $st, not $want"
}
refuses 2
refuses 2 --nonsense
refuses 2 a b
refuses 1 "$WORK/from-tree"
refuses 1 "$WORK/log"
refuses 1 "$WORK/two words"
[ ! -e "$WORK/two words" ] || fail 'it made a directory that it refused'
GORT="$WORK/none" refuses 1 "$WORK/other"
mkdir -p "$WORK/a space/include" "$WORK/a space/lib"
touch "$WORK/a space/include/gort.h" "$WORK/a space/lib/libgort.a"
GORT="$WORK/a space" refuses 1 "$WORK/other"
for odd in 'a#b' 'a$b' 'a%b' 'a:b' "a'b" 'a;b' 'a(b'; do
    cp -r "$WORK/a space" "$WORK/$odd"
    GORT="$WORK/$odd" refuses 1 "$WORK/other"
done
[ ! -e "$WORK/other" ] || fail 'it made a project that make cannot build'
"$new" --help | grep -q '^usage: gort-new DIR'
