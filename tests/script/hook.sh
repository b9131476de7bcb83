# Every name that the hook interposes is described in docs/hook_calls.md and used by one of its
# tests, and it interposes what that page describes.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
command -v nm >/dev/null || { echo 'skipped: no nm'; exit 77; }
bad=0
nm -D --defined-only "$OUT/libgort-hook.so" | awk '{print $NF}' | sed 's/@.*//' |
    sort -u >"$WORK/names"
[ "$(wc -l <"$WORK/names")" -gt 60 ]
while read -r name; do
    grep -q "\`$name\`" docs/hook_calls.md || { echo "$name is not in docs/hook_calls.md"; bad=1; }
    [ "$name" = __libc_start_main ] || # every program under gort-run (tests/threads)
        grep -qw "$name" tests/hook/*.c tests/threads/*.c || { echo "$name is in no test"; bad=1; }
done <"$WORK/names"
sed -n '/^## Every/,/^## At the edges/p' docs/hook_calls.md | grep '^| `' | cut -d'|' -f2 |
    grep -o '`[a-z_0-9]*`' | tr -d '`' | sort -u >"$WORK/described"
if comm -13 "$WORK/names" "$WORK/described" | grep .; then
    echo '^ described and not interposed'; bad=1
fi
if comm -23 "$WORK/names" "$WORK/described" | grep .; then
    echo '^ in no table of docs/hook_calls.md'; bad=1
fi
exit $bad
