# docs/INVARIANTS.md against the code: every word that is written with release or read with acquire
# has its row, each row names the files where that is done and no others; every file with a full
# fence stands in the table of Dekker pairs; the lock ranks are those of src/base/lock.h, in their
# order. And docs/TOUR.md names every file of src.
set -eu
doc=docs/INVARIANTS.md bad=0
export LC_ALL=C
complain() { echo "$*"; bad=1; }

# The code: kind word file. A word is what stands last in the first argument, with its owner:
# d.state.
calls() { # kind functions
    grep -rnoE "\b($2)\(&?[A-Za-z_][A-Za-z0-9_.>-]*(\[[^]]*\]|[.>A-Za-z0-9_-])*" src \
        --include='*.c' --include='*.h' |
        grep -v '^src/base/atomic\.h:' |
        sed -E "s|^src/([^:]*):[0-9]*:[a-z_]*\(&?(.*)\$|\2 \1|; s/\[[^]]*\]//g; s/->/./g
            s/([A-Za-z0-9_]*\.)*([A-Za-z0-9_]*\.[A-Za-z0-9_]+) /\2 /; s/^/$1 /"
}
{
    calls rel 'store_rel|sub_own_rel|xchg_rel|cas_rel|cas_acq_rel'
    calls acq 'load_acq|xchg_acq|cas_acq|cas_acq_rel'
} | sort -u >"$WORK/code"

# The table: kind word file, for each word and file of a row.
section() { sed -n "/^## $1/,/^## /p" "$doc" | grep '^| '; }
section 'Release and acquire' | awk -F'|' '
    function ticks(cell, out,    n) {
        for (n = 0; match(cell, /`[^`]*`/); cell = substr(cell, RSTART + RLENGTH))
            out[++n] = substr(cell, RSTART + 1, RLENGTH - 2)
        return n
    }
    { w = ticks($2, word)
      for (k = 3; k <= 4; k++) { cell = $k; gsub(/\([^)]*\)/, "", cell); f = ticks(cell, file)
        for (i = 1; i <= w; i++) {
            print "row", word[i], "-"
            for (j = 1; j <= f; j++) print k == 3 ? "rel" : "acq", word[i], file[j] } } }' |
    sort -u >"$WORK/table"
[ "$(wc -l <"$WORK/table")" -gt 100 ] || complain 'the table was not found'

# A call belongs to the row of its word, with the owner or without.
awk 'NR == FNR { row[$1 " " $2 " " $3] = 1; next }
     { short = $2; sub(/.*\./, "", short)
       if (($1 " " $2 " " $3) in row) used[$1 " " $2 " " $3] = 1
       else if (($1 " " short " " $3) in row) used[$1 " " short " " $3] = 1
       else print "src: " $3 ": " did($1) " `" $2 "` has no place in the table" }
     function did(kind) { return kind == "rel" ? "released" : "acquired" }
     END { for (r in row) if (r !~ /^row / && !(r in used)) {
               split(r, p, " "); print "docs: `" p[2] "` is not " did(p[1]) " in " p[3] } }' \
    "$WORK/table" "$WORK/code" | sort >"$WORK/wrong"
if [ -s "$WORK/wrong" ]; then cat "$WORK/wrong"; bad=1; fi

for f in $(grep -rl 'fence_full()\|fence_after_rmw()\|os_membarrier()' src --include='*.c' \
    --include='*.h' | grep -v '^src/\(base/atomic\.h\|os/os\.h\|os/linux/os_linux\.c\)$'); do
    section 'Dekker pairs' | grep -q "\`${f#src/}[:\`]" ||
        complain "$f has a full fence, and no row among the Dekker pairs"
done
for f in $(section 'Dekker pairs' | grep -o '`[a-z_/]*\.[ch][:`]' | tr -d ':`' | sort -u); do
    [ -e "src/$f" ] || complain "the Dekker pairs name $f, which does not exist"
done

sed -n '/RANK_NONE/,/^};/s/^ *RANK_\([A-Z]*\).*/\1/p' src/base/lock.h | grep -vx NONE >"$WORK/ranks"
section 'Lock ranks' | sed -n 's/^| \([A-Z]*\) |.*/\1/p' >"$WORK/told"
diff -u "$WORK/ranks" "$WORK/told" ||
    complain 'the ranks of src/base/lock.h, and those of the table'

# the tour passes every room
# Each folder's README names its rooms.
for f in $(find src -name '*.[ch]' ! -path 'src/arch/*/*' ! -path '*/program/*'); do
    dir=$(dirname "$f") room=$(basename "$f")
    while [ ! -e "$dir/README.md" ]; do dir=$(dirname "$dir"); done
    grep -qE "\`(([a-z]+/)*)${room%.*}\.(\[ch\]|${room##*.})\`" "$dir/README.md" ||
        complain "$dir/README.md does not name $f"
done
long=$(wc -l src/*/README.md | awk '$2 != "total" && $1 > 20 { print $2 }')
[ -z "$long" ] || complain "longer than 20 lines: $long"
exit $bad
