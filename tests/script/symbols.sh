# Only gort_* names leave the libraries, so a program's own `lock` or `ready` never meets ours; and
# what the header declares is there.
set -eu
command -v nm >/dev/null || { echo 'skipped: no nm'; exit 77; }
[ -z "$SAN" ] || { echo 'skipped: a sanitizer adds names of its own'; exit 77; }
bad=0
nm -D --defined-only "$OUT/libgort.so" | awk '{print $NF}' | sed 's/@.*//' | sort -u >"$WORK/so"
nm -g --defined-only "$OUT/libgort.a" | awk 'NF == 3 {print $3}' | sort -u >"$WORK/a"
for f in so a; do
    if grep -v '^gort_' "$WORK/$f" | grep -v '^GORT_[0-9.]*$'; then
        echo "^ these leave libgort.$f"; bad=1
    fi
done
# Every function the header declares.
printf '#include "gort.h"\n' | "$CC" -E -Iinclude -x c - | grep -o '\bgort_[a-z_]*(' | tr -d '(' |
    grep -vxE 'gort_fn|.*_' | sort -u >"$WORK/declared"
[ "$(wc -l <"$WORK/declared")" -gt 100 ]
for f in so a; do
    if comm -23 "$WORK/declared" "$WORK/$f" | grep .; then
        echo "^ these are missing in libgort.$f"; bad=1
    fi
done
# Each of them has a version, so that a later library can keep programs that know an older one.
if nm -D --defined-only "$OUT/libgort.so" | awk '{print $NF}' | grep '^gort_' |
    grep -v '@@GORT_[0-9]'; then
    echo '^ without a version in libgort.so'; bad=1
fi
# The core needs libc only.
if command -v readelf >/dev/null; then
    readelf -d "$OUT/libgort.so" | grep NEEDED |
        grep -vE 'libc\.so|libpthread|ld-linux|libgcc_s' &&
        { echo '^ needed by libgort.so'; bad=1; }
fi
exit $bad
