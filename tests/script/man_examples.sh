# The manual: each page has an example that compiles as it stands; mandoc, where there, has no
# complaint.
set -eu
. tests/lib/deps.sh
use_deps
bad=0
for page in gort.7 gort_go.3 gort_chan.3 gort_select.3 gort_sync.3 gort_time.3 gort_ctx.3 \
    gort_io.3 gort_debug.3 gort.hpp.3 \
    gort-hook.7 gort-explore.1 gort-trace.1 gort-top.1 gort-new.1 gort-run.1; do
    [ -e "man/$page" ] || { echo "there is no man/$page"; bad=1; }
done
for page in man/*.[1-9]; do
    name=$(basename "$page")
    awk '/^\.\\" example:/ {next_one = 1}
        /^\.Bd/ && next_one {on = 1; next_one = 0; next}
        /^\.Ed/ {on = 0}
        on' "$page" | sed 's/\\e/\\/g; s/\\&//g' >"$WORK/$name.c"
    libs=
    if [ "$name" = gort-gc.7 ]; then
        libs=-lgc
        [ -z "$SAN" ] && echo '#include <gc.h>' | "$CC" -x c -fsyntax-only - 2>/dev/null || continue
    fi
    case $name in *.[37])
        if ! [ -s "$WORK/$name.c" ]; then echo "$page has no example"; bad=1; continue; fi
        compiler="$CC -std=c11 -x c"
        if [ "$name" = gort.hpp.3 ]; then
            command -v "${CXX:-g++}" >/dev/null || continue
            compiler="${CXX:-g++} -std=c++17 -x c++"
        fi
        $compiler -Wall -Wextra -Werror -Iinclude "$WORK/$name.c" -x none ${SAN:+-fsanitize=$SAN} \
            "$OUT/libgort.a" $libs -lpthread -o "$WORK/program" ||
            { echo "^ the example of $page"; bad=1; continue; }
        timeout -k 1 30 "$WORK/program" >"$WORK/out" 2>&1 </dev/null ||
            { echo "the example of $page fails:"; cat "$WORK/out"; bad=1; } ;;
    esac
done
# Every public function is described somewhere.
printf '#include "gort.h"\n' | "$CC" -E -Iinclude -x c - | grep -o '\bgort_[a-z_]*(' | tr -d '(' |
    grep -vxE 'gort_fn|.*_' | sort -u |
    while read -r f; do grep -qs "^\.\(Fo\|Fn\|Nm\) $f\b\|^\.Fn \"[^\"]*\b$f\b" man/*.3 ||
    echo "$f"; done >"$WORK/missing"
if [ -s "$WORK/missing" ]; then cat "$WORK/missing"; echo '^ in no page of the manual'; bad=1; fi
# A quotation or a heading that begins with a word of mdoc's loses it: .Dq No such file.
ours='Dq|Sq|Qq|Pq|Bq|Em|Sy|Li|Ql|Sh|Ss|It|D1|Dl'
if grep -nE "^\.($ours) (Ad|At|Do|Em|En|In|No|Po|So|Ta) " man/*; then
    echo '^ the first word is a macro: \&No'; bad=1
fi
if words=$(lack mandoc); then echo "mandoc's check is left out: $words"
else mandoc -T lint -W warning man/*.[1-9] || bad=1
fi
exit $bad
