# Every relative link in the documents leads somewhere.
set -eu
bad=0 seen=0
for f in *.md docs/*.md; do
    [ -e "$f" ] || continue
    for link in $(grep -o '](\([^)]*\))' "$f" | sed 's/^](//; s/)$//; s/#.*//'); do
        case $link in http*:*) continue ;; esac
        seen=$((seen + 1))
        [ -e "$(dirname "$f")/$link" ] || { echo "$f: $link does not exist"; bad=1; }
    done
done
[ $seen -gt 0 ] && exit $bad
