# make install into a directory of its own; projects outside of the tree that use what was installed
# through pkg-config and through CMake; uninstall leaves nothing.
set -eu
[ -z "$SAN" ] || { echo 'skipped: the plain build is what gets installed'; exit 77; }
. tests/lib/deps.sh
use_deps
unset OUT CFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH
tree=$PWD root=$WORK/root/usr
fail() {
    echo "$*"
    exit 1
}
loud() { # a command whose output matters only if it fails
    "$@" >"$WORK/log" 2>&1 || { cat "$WORK/log"; fail "failed: $*"; }
}
if words=$(lack pkgconfig cmake); then echo "some checks are left out: $words"; fi
loud "$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} install PREFIX=/usr \
    DESTDIR="$WORK/root"
version=$(sed -n 's/^.define GORT_VERSION "\(.*\)"/\1/p' include/gort.h)
for f in include/gort.h include/gort.hpp \
    lib/libgort.a lib/libgort-lean.a lib/libgort.so lib/libgort.so.0 \
    "lib/libgort.so.$version" lib/pkgconfig/gort.pc \
    lib/cmake/gort/gort-config.cmake lib/cmake/gort/gort-config-version.cmake \
    share/man/man7/gort.7 \
    bin/gort-trace bin/gort-new share/gort/gort-gdb.py \
    "share/gdb/auto-load/usr/lib/libgort.so.$version-gdb.py"; do
    [ -e "$root/$f" ] || fail "$f was not installed"
done
for lib in libgort libgort-lean; do
    grep -qa "/usr/share/gdb/auto-load/usr/lib/libgort.so.$version-gdb.py" "$root/lib/$lib.a" ||
        fail "$lib.a does not name the installed script of gdb"
    ! grep -qaF "$PWD/tools/gort-gdb.py" "$root/lib/$lib.a" || fail "$lib.a names the sources"
done
if grep -r '@[A-Z_]*@' "$root/lib/pkgconfig" "$root/lib/cmake"; then fail '^ not filled in'; fi

# Where the loader does not look into that directory, a line says so, and its words work. The
# machine's own ldconfig is not run: it would write into /etc.
mkdir "$WORK/bin"
own=$WORK/own
known() { # what the loader's cache has
    printf '#!/bin/sh\n[ "$1" != -p ] || echo " libgort.so.0 (libc6,x86-64) => %s"\n' "$1" \
        >"$WORK/bin/ldconfig"
    chmod +x "$WORK/bin/ldconfig"
    PATH="$WORK/bin:$PATH" loud "$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} \
        install PREFIX="$own"
}
known /lib/libgort.so.0
grep -qxF "The loader does not look into $own/lib: link programs with -Wl,-rpath,$own/lib," \
    "$WORK/log" || fail 'install does not say that the loader will not find it'
"$CC" examples/hello.c -I"$own/include" -L"$own/lib" -lgort "-Wl,-rpath,$own/lib" -o "$WORK/found"
"$WORK/found" | cmp - examples/expected/hello
ln -s own "$WORK/other"
known "$WORK/other/lib/libgort.so.0"
if grep 'The loader' "$WORK/log"; then fail 'install says so where the loader finds it'; fi
loud "$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} uninstall PREFIX="$own"

# A project outside of the tree: nothing but the installed files.
mkdir "$WORK/project"
cp examples/hello.c "$WORK/project/"
cd "$WORK/project"
says_hello() { # program
    LD_LIBRARY_PATH="$root/lib" "$1" >"$WORK/said"
    cmp "$WORK/said" "$tree/examples/expected/hello"
}
"$CC" hello.c -I"$root/include" "$root/lib/libgort.a" -lpthread -o static
says_hello ./static

if has pkgconfig; then
    export PKG_CONFIG_LIBDIR="$root/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$WORK/root"
    # shellcheck disable=SC2046
    "$CC" hello.c $(pkg-config --cflags --libs gort) -o shared
    says_hello ./shared
    if command -v "${CXX:-g++}" >/dev/null; then
        # shellcheck disable=SC2046
        "${CXX:-g++}" -std=c++17 "$tree/examples/words.cc" $(pkg-config --cflags --libs gort) \
            -o words
        LD_LIBRARY_PATH="$root/lib" ./words | cmp - "$tree/examples/expected/words"
    fi
    [ "$(pkg-config --modversion gort)" = "$version" ] || fail 'gort.pc has another version'
else
    echo 'no pkg-config: its check is left out'
fi

if has cmake; then
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(outside C)
find_package(gort $version REQUIRED)
add_executable(with_shared hello.c)
target_link_libraries(with_shared gort::gort)
add_executable(with_static hello.c)
target_link_libraries(with_static gort::static)
END
    loud cmake -S . -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$root" \
        -DCMAKE_BUILD_TYPE=Release
    loud cmake --build build
    says_hello build/with_shared
    says_hello build/with_static
    sed -i "s/find_package(gort .*/find_package(gort 99 REQUIRED)/" CMakeLists.txt
    if cmake -S . -B build2 -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$root" >"$WORK/log" \
        2>&1; then
        fail 'CMake takes this for version 99'
    fi
else
    echo 'no cmake: its check is left out'
fi

cd "$tree"
loud "$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} uninstall PREFIX=/usr \
    DESTDIR="$WORK/root"
left=$(find "$WORK/root" -type f -o -type l)
[ -z "$left" ] || fail "uninstall left: $left"
