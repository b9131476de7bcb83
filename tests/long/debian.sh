# debian/ builds libgort0, libgort-dev and gort-tools; unpacked side by side, a project made by the
# packaged gort-new builds, runs and passes its test with them.
set -eu
[ -z "$SAN" ] || { echo 'skipped: the plain build is what gets packaged'; exit 77; }
for tool in dpkg-buildpackage dpkg-deb dh pkg-config; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
fail() {
    echo "$*"
    exit 1
}
unset MAKEFLAGS CFLAGS LDFLAGS PKG_CONFIG_PATH OUT CC AR OBJCOPY V T DEBUG # the package decides
mkdir "$WORK/src" "$WORK/root"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$WORK/src"
(cd "$WORK/src" && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc >"$WORK/log" 2>&1) ||
    { tail -40 "$WORK/log"; fail 'dpkg-buildpackage failed'; }
for p in libgort0 libgort-dev gort-tools; do
    deb=$(ls "$WORK/$p"_*.deb) || fail "no package $p"
    dpkg-deb -x "$deb" "$WORK/root"
done
lib=$(dirname "$(find "$WORK/root/usr/lib" -name libgort.so.0)")
[ -e "$lib/libgort.so" ] && [ -e "$lib/libgort.a" ] || fail 'a library is missing'
dpkg-deb -f "$WORK"/libgort-dev_*.deb Depends | grep -q 'libgort0 (=' ||
    fail 'libgort-dev does not depend on its libgort0'
dpkg-deb -c "$WORK"/libgort0_*.deb | grep -q '/usr/share/gdb/auto-load/usr/lib/.*-gdb.py' ||
    fail 'no script for gdb'

export PKG_CONFIG_LIBDIR="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$WORK/root" LD_LIBRARY_PATH="$lib"
unset GORT
"$WORK/root/usr/bin/gort-new" "$WORK/project"
"$MAKE" -C "$WORK/project" run test >"$WORK/log" 2>&1 ||
    { cat "$WORK/log"; fail 'the project does not build'; }
grep -q 'add up to 333833500' "$WORK/log"
grep -q '^ok ' "$WORK/log"
ldd "$WORK/project/build/bin/project" | grep -q "libgort.so.0 => $lib" ||
    fail 'it is not linked with the package'
