# Lines in backtraces (src/unwind/line.c): of programs and libraries built by each compiler with
# each version of DWARF, linked in every way; where there are no tables, all else is as before.
set -u
[ -z "${SAN:-}" ] || { echo 'skipped: once is enough'; exit 77; }
cat >"$WORK/part.c" <<'C'
#include <gort.h>
#define NO_TAIL __asm__ volatile("") /* keeps the frame of the function it ends */
void part(int depth);
__attribute__((noinline)) void part(int depth) {

    if (depth > 0) part(depth - 1); /* 6 */
    else gort_dump(1);              /* 7 */
    NO_TAIL;
}
C
cat >"$WORK/main.c" <<'C'
#include <gort.h>
#include "inc/twice.h"
void part(int depth);
void never_called(void); /* the linker may leave it out: then its lines stand at address 0 */
void never_called(void) { part(7); }
static int app(int argc, char **argv) {
    twice();

    part(1); /* 9 */
    return 0;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
mkdir "$WORK/inc"
cat >"$WORK/inc/twice.h" <<'C'
__attribute__((noinline)) static void twice(void) {
    gort_dump(1); /* 2 */
    __asm__ volatile("");
}
C
status=0 tried=0
fail() { echo "$*"; cat "$WORK/out"; status=1; }
# shows WHAT WORD...: the program's dump has these words
shows() {
    what=$1
    shift
    tried=$((tried + 1))
    "$WORK/p" >"$WORK/out" 2>&1 || { fail "$what: status $?"; return; }
    for word; do
        grep -q -- "$word" "$WORK/out" || { fail "$what: no $word"; return; }
    done
}
all=' twice+0x[0-9a-f]* twice\.h:2 (p)$
 part+0x[0-9a-f]* part\.c:7 (MODULE)$
 part+0x[0-9a-f]* part\.c:6 (MODULE)$
 app+0x[0-9a-f]* main\.c:9 (p)$'
lines() { # what module
    IFS='
'
    set -- "$1" $(echo "$all" | sed "s/MODULE/$2/")
    unset IFS
    shows "$@"
}
build() { # compiler flags: false, if it cannot
    (cd "$WORK" && $1 -Iinc -I"$root/include" -pthread $2 main.c part.c "$lib" -o p) \
        2>"$WORK/err"
}
built() { build "$1" "$2" || { fail "$1 $2 does not build"; cat "$WORK/err"; false; }; }
root=$PWD
lib=$(realpath "$OUT/libgort.a")
for cc in "$CC" gcc clang; do
    command -v "$cc" >/dev/null || continue
    [ "$cc" = gcc ] && [ "$(gcc --version)" = "$($CC --version | sed 's/^cc /gcc /')" ] && continue
    for g in -gdwarf-2 -gdwarf-3 -gdwarf-4 -gdwarf-5 -g1; do
        built "$cc" "-O1 $g" && lines "$cc $g" p
    done
done
for flags in -no-pie -pie '-O0 -no-pie' '-ffunction-sections -Wl,--gc-sections'; do
    built "$CC" "-O1 -g $flags" && lines "$flags" p
done
for flags in '-static -Wl,--eh-frame-hdr' -static-pie -fuse-ld=lld \
    '-fuse-ld=lld -ffunction-sections -Wl,--gc-sections' -fuse-ld=gold; do
    ! build "$CC" "-O1 -g $flags" || lines "$flags" p
done
# a shared object, and the library as one
(cd "$WORK" && $CC -O1 -g -fPIC -shared -I"$root/include" part.c -o libpart.so &&
    $CC -O1 -g -I"$root/include" -pthread main.c libpart.so -L"${lib%/*}" -lgort \
        -Wl,-rpath,"$PWD" -Wl,-rpath,"${lib%/*}" -o p) || fail 'shared objects do not build'
lines 'a shared object' 'libpart\.so'
# a function that was never linked has no line, and takes none from others
! grep -q 'never_called' "$WORK/out" || fail 'never_called was called'

# Without tables: names, and no lines.
without() {
    shows "$1" ' part+0x[0-9a-f]* (p)$' ' app+0x[0-9a-f]* (p)$'
    ! grep -q '\.c:[0-9]' "$WORK/out" || fail "$1: there is a line"
}
built "$CC" '-O1 -g0' && (cd "$WORK" && strip -g p) && without 'without -g'

# Compressed.
! build "$CC" '-O1 -g -gz=zlib' || lines 'compressed' p
! build "$CC" '-O1 -g -gz=zstd' || without 'compressed with zstd'

# In a separate file, by the build ID.
lib=$(realpath "$OUT/libgort-white.a")
sed 's|^int main.*|extern const char *line_debug_dir;\
    int main(int c, char **v) { line_debug_dir = "debug"; return gort_main(app, c, v); }|' \
    "$WORK/main.c" >"$WORK/m.c" && mv "$WORK/m.c" "$WORK/main.c"
if command -v objcopy >/dev/null && build "$CC" '-O1 -g -Wl,--build-id=sha1'; then
    id=$(readelf -n "$WORK/p" | sed -n 's/.*Build ID: *//p')
    dir=$WORK/debug/.build-id/$(echo "$id" | cut -c1-2)
    mkdir -p "$dir"
    file=$dir/$(echo "$id" | cut -c3-).debug
    objcopy --only-keep-debug "$WORK/p" "$file"
    strip -g "$WORK/p"
    cd "$WORK" && lines 'a separate file' p
    objcopy --compress-debug-sections=zlib "$file"
    readelf -SW "$file" | grep -q 'debug_line .* C ' || fail 'objcopy compresses nothing'
    lines 'a separate file, compressed' p
else
    echo 'no objcopy: no separate file'
fi
[ "$tried" -ge 12 ] || { echo "only $tried ways were tried"; status=1; }
echo "$tried ways"
exit $status
