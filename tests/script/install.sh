# make install into a directory of its own, a program built against what was installed, uninstall.
set -eu
[ -z "$SAN" ] || { echo 'skipped: the plain build is what gets installed'; exit 77; }
unset OUT
"$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} install PREFIX=/usr DESTDIR="$WORK/root" >"$WORK/log" 2>&1 ||
    { cat "$WORK/log"; exit 1; }
root=$WORK/root/usr
for f in include/gort.h lib/libgort.a lib/libgort.so lib/libgort.so.0 lib/pkgconfig/gort.pc share/man/man7/gort.7; do
    [ -e "$root/$f" ] || { echo "$f was not installed"; exit 1; }
done
"$CC" examples/hello.c -I"$root/include" "$root/lib/libgort.a" -lpthread -o "$WORK/static"
"$WORK/static"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_LIBDIR="$root/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$WORK/root"
    # shellcheck disable=SC2046
    "$CC" examples/hello.c $(pkg-config --cflags --libs gort) -o "$WORK/shared"
    LD_LIBRARY_PATH="$root/lib" "$WORK/shared" >"$WORK/said"
    cmp "$WORK/said" examples/expected/hello
else
    echo 'no pkg-config: its check is left out'
fi
"$MAKE" --no-print-directory CC="$CC" uninstall PREFIX=/usr DESTDIR="$WORK/root" >"$WORK/log" 2>&1
left=$(find "$WORK/root" -type f -o -type l)
[ -z "$left" ] || { echo "uninstall left: $left"; exit 1; }
