# A fresh Debian with only build-essential, in a chroot: the README's two commands as printed, a
# project made by gort-new; then the Debian packages, built there and installed there, used by
# projects outside of the tree through pkg-config and through CMake.
#
#   FRESH_ROOT=DIR    keep the chroot there, and use it again (its packages stay installed)
set -eu
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
[ -z "$SAN" ] || skip 'the plain build is what gets packaged'
[ "$(id -u)" = 0 ] || skip 'only root makes a chroot'
command -v debootstrap >/dev/null || tests/need debootstrap
command -v debootstrap >/dev/null || skip 'no debootstrap'
root=${FRESH_ROOT:-$WORK/root} mirror=${MIRROR:-http://deb.debian.org/debian}

# Only what is mounted below the chroot is unmounted, before anything is removed.
leave() { for m in dev sys proc; do mountpoint -q "$root/$m" && umount "$root/$m"; done; return 0; }
trap leave EXIT
trap 'exit 1' INT TERM
inside() { # command: in the chroot, with nothing of this environment
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
        LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive chroot "$root" /bin/sh -ec "$1" </dev/null
}
loud() { # what command: its output matters if it fails
    inside "$2" >"$WORK/log" 2>&1 || { tail -60 "$WORK/log"; fail "$1"; }
}

if [ ! -x "$root/usr/bin/make" ]; then
    debootstrap --variant=minbase --include=build-essential bookworm "$root" "$mirror" \
        >"$WORK/log" 2>&1 ||
        { tail -3 "$WORK/log"; skip "no Debian from $mirror"; }
fi
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /sys "$root/sys"
if [ -e /etc/resolv.conf ]; then cp -L /etc/resolv.conf "$root/etc/resolv.conf"; fi

rm -rf "$root/root/gort" "$root/root/first" "$root/root/outside" "$root"/root/*.deb
mkdir -p "$root/root/gort"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$root/root/gort"

echo 'make demo'
loud 'make demo' 'cd /root/gort && make demo'
grep -q '^7/7' "$WORK/log" || fail 'the tour did not come to its end'
echo 'make test'
inside 'dpkg -l' >"$WORK/installed"
loud 'make test' 'cd /root/gort && make test'
grep -q '^[0-9]* passed, 0 failed' "$WORK/log" || fail 'a test failed'
grep '^[0-9]* passed' "$WORK/log"
inside 'dpkg -l' | diff "$WORK/installed" - || fail '^ make test changed what is installed'
# The servers once more for somebody who is not root.
mkdir -p "$root/home/gort" && cp -r "$root/root/gort" "$root/home/gort/"
chown -R 65534:65534 "$root/home/gort"
loud 'make test as nobody' 'cd /home/gort/gort &&
    setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/home/gort make test T=server_'
grep -q '^4 passed, 0 failed, 0 skipped' "$WORK/log" ||
    { grep '^skip' "$WORK/log" || true; fail 'a server is missing for nobody'; }
rm -rf "$root/home/gort"
loud 'hello as the README prints it' \
    'cd /root/gort && make && cc examples/hello.c -Iinclude build/libgort.a -lpthread -o hello &&
    ./hello | grep "hello from main"'
echo 'gort-new'
loud 'gort-new' 'cd /root && gort/tools/gort-new first && make -C first run test'
grep -q 'add up to 333833500' "$WORK/log" || fail 'the project said something else'

echo 'dpkg-buildpackage'
loud 'debhelper' 'apt-get update && apt-get install -y --no-install-recommends debhelper'
loud 'dpkg-buildpackage' \
    'cd /root/gort && make clean && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc'
loud 'the tree is gone' 'rm -rf /root/gort /root/first'
loud 'installing the packages' \
    'cd /root && apt-get install -y --no-install-recommends ./libgort0_*.deb ./libgort-dev_*.deb \
    ./gort-tools_*.deb pkg-config cmake'

mkdir "$root/root/outside"
cp examples/hello.c "$root/root/outside/"
cat >"$root/root/outside/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(outside C)
find_package(gort REQUIRED)
add_executable(with_shared hello.c)
target_link_libraries(with_shared gort::gort)
add_executable(with_static hello.c)
target_link_libraries(with_static gort::static)
END
echo 'pkg-config, CMake'
loud 'pkg-config' \
    'cd /root/outside && cc hello.c $(pkg-config --cflags --libs gort) -o by_pkg_config &&
    ./by_pkg_config'
loud 'CMake' \
    'cd /root/outside && cmake -S . -B build && cmake --build build &&
    build/with_shared && build/with_static'
loud 'the packaged gort-new' \
    'cd /root && rm -rf first && gort-new first && make -C first run test &&
    ldd first/build/bin/first | grep libgort.so.0'
loud 'removing the packages' \
    'apt-get purge -y libgort0 libgort-dev gort-tools && ! find /usr -name "*gort*" | grep .'
