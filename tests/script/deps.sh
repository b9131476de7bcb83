# tests/deps: what tests need comes into $DEPS and nowhere else, NODEPS=1 refuses, and where it
# cannot be had a test is skipped and says why. No network: apt-get is a script here that notes its
# calls and has one package.
set -eu
fail() { echo "$*"; [ ! -e "$WORK/said" ] || cat "$WORK/said"; exit 1; }
bin=$WORK/bin
mkdir "$bin"
unset T NODEPS LD_LIBRARY_PATH
for p in bash sh cat sed sort tr grep head tail mktemp rm mkdir ls dirname touch find cut env ln \
    timeout flock uname readlink realpath chmod du wc tar cp dpkg-deb; do
    if where=$(command -v $p); then ln -s "$where" "$bin/$p"; fi
done
with() { # VAR=value... command...: only with these programs, into a directory of its own
    env PATH="$bin" DEPS="$WORK/deps" "$@" >"$WORK/said" 2>&1
}
says() { grep -qF -- "$1" "$WORK/said" || fail "it does not say: $1"; }
skips() { # why: a script that needs curl
    local st=0
    with ${2:+"$2"} bash tests/script/page.sh || st=$?
    [ $st = 77 ] || fail "status $st, not 77"
    says "skipped: needs curl ($1)"
}
if with bash -c '. tests/lib/deps.sh; use_deps; has mandoc || has http'; then
    echo 'skipped: /usr/sbin is /usr/bin here, and nothing can be hidden'
    exit 77
fi

# No apt-get.
with tests/deps mandoc || fail 'it fails'
says 'there is no apt-get to bring them: tests that need mandoc are skipped'
skips 'there is no apt-get to bring them'

# Refused.
cat >"$bin/apt-get" <<END
#!/bin/sh
echo "\$*" >>"$WORK/calls"
echo 'E: No such thing'
exit 100
END
chmod +x "$bin/apt-get"
if [ ! -e "$bin/dpkg-deb" ]; then cp "$bin/apt-get" "$bin/dpkg-deb"; none=1; fi
with NODEPS=1 tests/deps test || fail 'it fails'
says 'NODEPS=1: tests that need '
skips 'NODEPS=1' NODEPS=1
[ ! -e "$WORK/calls" ] || fail "NODEPS=1, and apt-get was called: $(cat "$WORK/calls")"
[ ! -e "$WORK/deps" ] || fail 'NODEPS=1 left a directory'

[ -r /var/lib/dpkg/status ] && [ -z "${none:-}" ] || { echo 'no Debian: that is all'; exit 0; }

# Out of reach.
with tests/deps http || fail 'it fails'
says 'apt-get cannot fetch the list of packages: No such thing: tests that need curl are skipped'
skips 'apt-get cannot fetch the list of packages: No such thing'

# There: one package, with all that has to be mended.
tree=$WORK/tree lib=usr/lib/a-linux-gnu
mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/$lib/pkgconfig" "$tree/opt/it"
printf 'Package: mandoc\nVersion: 1:2\nArchitecture: all\nMaintainer: x\nDescription: x\n' \
    >"$tree/DEBIAN/control"
printf '#!/bin/sh\necho here\n' >"$tree/opt/it/mandoc"
chmod 4755 "$tree/opt/it/mandoc"
ln -s /opt/it/mandoc "$tree/usr/bin/mandoc"
ln -s "$(printf '../%.0s' 1 2 3)etc/passwd" "$tree/$lib/outside"
printf 'prefix=/usr\nlibdir=/usr/lib\n' >"$tree/$lib/pkgconfig/it.pc"
dpkg-deb -b "$tree" "$WORK/it.deb" >"$WORK/said" 2>&1 || fail 'no package could be made'
cat >"$bin/apt-get" <<END
#!/bin/sh
echo "\$*" >>"$WORK/calls"
conf=\$(echo "\$*" | sed 's/.*-c \([^ ]*\).*/\1/')
case \$* in
    *update) touch "\${conf%conf}state/lists/x_Packages" ;;
    *curl*) echo 'E: Unable to locate it'; exit 100 ;;
    *'-s '*install*mandoc*) echo 'Inst mandoc (1:2 Debian:12/stable [all])'
        echo 'Inst libc6 [2] (3 Debian:12/stable [all]) []' ;;
    *'download mandoc=1:2') cp "$WORK/it.deb" . ;;
esac
END
rm -f "$WORK/calls"
# Two at once: one of them brings it, the other one waits.
with tests/deps mandoc & other=$!
env PATH="$bin" DEPS="$WORK/deps" tests/deps mandoc >"$WORK/other" 2>&1 || fail 'it fails'
wait $other || fail 'it fails'
cat "$WORK/other" >>"$WORK/said"
says '(nothing is installed; NODEPS=1 refuses): mandoc'
says '1 packages unpacked'
calls=$(wc -l <"$WORK/calls")
[ "$calls" = 3 ] || fail "not three calls of apt-get: $(cat "$WORK/calls")"
deps=$WORK/deps
[ "$("$deps/usr/bin/mandoc")" = here ] || fail 'an absolute link was not mended'
[ -z "$(find "$deps" -perm /6000)" ] || fail 'a set-user-ID program was left'
[ "$deps/$lib/outside" -ef /etc/passwd ] || fail 'a link to the machine is broken'
grep -qxF 'prefix=${pcfiledir}/../../..' "$deps/$lib/pkgconfig/it.pc" &&
    grep -qxF 'libdir=${pcfiledir}/../../../lib' "$deps/$lib/pkgconfig/it.pc" || fail 'not mended'
for dir in Dir::State Dir::State::lists Dir::Cache Dir::Cache::archives Dir::Log; do
    grep -q "^$dir \"$deps/apt/" "$deps/apt/conf" || fail "$dir is the machine's"
done
grep -qF 'APT::Sandbox::User "root";' "$deps/apt/conf" || fail 'root downloads as somebody else'
# A second time there is nothing to do; one that does not exist takes nothing from the others.
with tests/deps mandoc
[ ! -s "$WORK/said" ] && [ "$(wc -l <"$WORK/calls")" = 3 ] || fail 'once more'
rm -r "$deps/usr/bin"
: >"$deps/apt/unpacked"
with tests/deps mandoc http
says '1 packages unpacked'
says 'apt-get does not find them: Unable to locate it: tests that need curl are skipped'
skips 'apt-get does not find them: Unable to locate it'
