# Every link in the documents leads somewhere: to a file, and to a heading of it where the link
# names one; a path in backquotes exists; a manual page that another one names is there.
set -eu
bad=0 seen=0
complain() { echo "$*"; bad=1; }

# The anchors of a document as its readers make them: lower case, no punctuation, dashes for blanks.
anchors() {
    sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
check_link() { # document link
    local file=${2%%#*} to anchor=
    case $2 in *'#'*) anchor=${2#*#} ;; esac
    to=$(dirname "$1")/$file
    [ -n "$file" ] || to=$1
    [ -e "$to" ] || { complain "$1: $2 does not exist"; return; }
    [ -z "$anchor" ] || anchors "$to" | grep -qx -- "$anchor" ||
        complain "$1: $to has no heading #$anchor"
}
documents=$(find . -name build -prune -o -name .git -prune -o -name '*.md' -print)
folders='src|tests|tools|examples|bench|docs|man|include|packaging|web'
for f in $documents; do
    for link in $(sed '/^```/,/^```/d' "$f" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//'); do
        case $link in http:* | https:* | mailto:*) continue ;; esac
        seen=$((seen + 1))
        check_link "$f" "$link"
    done
    for path in $(grep -oE "\`($folders)/[A-Za-z0-9_./-]*\`" "$f" | tr -d '`'); do
        seen=$((seen + 1))
        [ -e "$path" ] || complain "$f: there is no $path"
    done
done
grep -h '^\.Xr gort' man/* | sort -u | while read -r _ name section _; do
    [ -e "man/$name.$section" ] ||
        echo "man/$name.$section is named by: $(grep -l "^\.Xr $name $section" man/* | tr '\n' ' ')"
done >"$WORK/missing"
if [ -s "$WORK/missing" ]; then cat "$WORK/missing"; bad=1; fi
[ $seen -gt 100 ] || complain "only $seen links were found"
exit $bad
