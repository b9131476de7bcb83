# What comments and documents name is there: files by their name (wake.c), functions by name()
# in the essays and comments of src, laws and documents. A reference that has gone stale fails.
set -u
bad=0
complain() { echo "$*"; bad=1; }
export LC_ALL=C

# Every file name in a comment of src or in a document is that of a file here, or of the system's.
find . -name build -prune -o -name .git -prune -o -type f -print | sed 's|.*/||' |
    sort -u >"$WORK/files"
comments() { # file...: "file text" of the comments
    awk '{ line = $0
        while (line != "") {
            if (!inside) {
                i = index(line, "/*"); if (!i) break
                line = substr(line, i + 2); inside = 1
            }
            i = index(line, "*/")
            if (!i) { print FILENAME, line; break }
            print FILENAME, substr(line, 1, i - 1); line = substr(line, i + 2); inside = 0
        } }' "$@"
}
comments $(find src include -name '*.[chS]') >"$WORK/comments"
for f in README.md docs/*.md src/README.md src/*/README.md; do
    sed "s|^|$f |" "$f"
done >"$WORK/docs"
cat "$WORK/comments" "$WORK/docs" | grep -oE '^[^ ]+ |[A-Za-z_0-9]+\.(c|h|S|md|sh|awk)\b' |
    awk '/ $/ { file = $1; next } { print $1, file }' | sort -u >"$WORK/named"
# Not ours: examples of a user's files, other people's headers.
known=' app.c FROM.md gc.h gc_mark.h fenv.h netdb.h sdt.h stdio.h threads.h '
while read -r name file; do
    case $known in *" $name "*) continue ;; esac
    grep -qxF "$name" "$WORK/files" || complain "$file names $name, which there is not"
done <"$WORK/named"

# name() in a comment of src is a word of the code, or of libc.
find src include -name '*.[chS]' -exec sed -e 's|/\*.*\*/||' -e '/^ \*/d' -e 's|/\*.*||' {} + |
    grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$WORK/words"
grep -oE '^[^ ]+ |\b[a-z_][a-z0-9_]*\(\)' "$WORK/comments" |
    awk '/ $/ { file = $1; next } { sub(/\(\)/, ""); print $1, file }' | sort -u >"$WORK/called"
libc=' msync setenv '
while read -r name file; do
    grep -qxF "$name" "$WORK/words" && continue
    case $libc in *" $name "*) continue ;; esac
    complain "$file names $name(), which there is not"
done <"$WORK/called"

# Documents that this project does not have, and laws by number without a document.
gone='PREEMPTION\.md|API\.md|COMPACT\.md|THREADS\.md|[Ll]aw [0-9]'
grep -nE "$gone" -r src include docs man tests --include='*.[chS]' --include='*.md' \
    --include='*.[1357]' | grep -v 'DESIGN\.md' >"$WORK/gone" || true
[ ! -s "$WORK/gone" ] || { cat "$WORK/gone"; bad=1; }
exit $bad
