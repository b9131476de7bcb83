# 32-bit and big-endian machines, unknown ones and a missing compiler: make stops at once with a
# word that says why, and so does a program that includes the header. The compilers are this
# machine's, made to say something else about themselves, and real ones where they are installed.
set -eu
CC=${CC:-cc} MAKE=${MAKE:-make}
unset CFLAGS MAKEFLAGS
fail() { echo "FAILED: $*"; exit 1; }

make_says() { # words compiler
    if $MAKE BUILD="$WORK/build" CC="$2" lib >"$WORK/out" 2>&1; then fail "make CC='$2' builds"; fi
    grep -qF -- "$1" "$WORK/out" || { cat "$WORK/out"; fail "make CC='$2' does not say: $1"; }
    [ ! -e "$WORK/build" ] || fail "make CC='$2' began to build"
}
header_says() { # words compiler
    if echo '#include <gort.h>' | $2 -Iinclude -x c -fsyntax-only - >"$WORK/out" 2>&1; then
        fail "$2 takes the header"
    fi
    grep -qF -- "$1" "$WORK/out" || { cat "$WORK/out"; fail "$2: the header does not say: $1"; }
}
both() { make_says "$1" "$2"; header_says "$1" "$2"; }

small='needs a 64-bit machine' big='needs a little-endian machine'
both "$small" "$CC -U__SIZEOF_POINTER__ -D__SIZEOF_POINTER__=4"
both "$big" "$CC -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"
if echo | gcc -m32 -E -x c - >/dev/null 2>&1 && [ "$(uname -m)" = x86_64 ]; then
    both "$small" 'gcc -m32'
fi
for cc in arm-linux-gnueabihf-gcc i686-linux-gnu-gcc riscv32-linux-gnu-gcc; do
    if command -v $cc >/dev/null; then both "$small" $cc; fi
done
for cc in s390x-linux-gnu-gcc powerpc64-linux-gnu-gcc sparc64-linux-gnu-gcc; do
    if command -v $cc >/dev/null; then both "$big" $cc; fi
done
make_says 'does not work here' no-such-compiler

# A 64-bit little-endian machine without a port.
printf \
    '#!/bin/sh\ncase $1 in -dumpmachine) echo loongarch64-linux-gnu ;; *) exec %s "$@" ;; esac\n' \
    "$CC" >"$WORK/odd-cc"
chmod +x "$WORK/odd-cc"
make_says "no port to 'loongarch64'" "$WORK/odd-cc"
