# The order of floors (docs/TOUR.md): a room calls, and includes, its own floor and those below it.
# The calls come from the objects. And the primitives leave the Ps to the scheduler.
set -u
command -v nm >/dev/null || { echo 'skipped: no nm'; exit 77; }
[ -z "$SAN" ] || { echo 'skipped: a sanitizer adds calls of its own'; exit 77; }

# Bottom to top; what shares a line shares a floor. src/*.[ch] belong to the lowest.
floors='base os arch unwind
mem
sched
sync
io
debug
inspect
api gc
hook threads'
# A room that has to call upwards: "from to reason". None has.
exceptions=''

echo "$floors" | awk '{ for (i = 1; i <= NF; i++) print $i, NR }' >"$WORK/floors"
rooms=$(cd "$OUT/obj" && find src -name '*.o' | sort | while read -r o; do
    # else of a file that is gone
    for s in "${o%.o}.c" "${o%.o}.S"; do [ ! -e "$OLDPWD/$s" ] || echo "$o"; done
done)
[ "$(echo "$rooms" | wc -l)" -gt 100 ] ||
    { echo "the objects of the library are not in $OUT/obj"; exit 1; }
# "calls room home name", "includes room:line room header"
(cd "$OUT/obj" && nm -A $rooms) | awk '
    { room = $1; sub(/\.o:.*/, "", room) }
    $(NF - 1) == "U" { use[$NF " " room] = 1 }
    $(NF - 1) ~ /^[TDBRCVW]$/ { home[$NF] = room }
    END { for (u in use) {
        split(u, p, " ")
        if (p[1] in home && home[p[1]] != p[2]) print "calls", p[2], home[p[1]], p[1]
    } }' >"$WORK/edges"
grep -nE '^ *# *include *"' $(find src -name '*.[chS]') | tr '"' ':' |
    while IFS=: read -r f line _ h _; do
        to=src/$h
        [ -e "$to" ] || to=$(realpath -m --relative-to=. "${f%/*}/$h")
        # else of the port, by -I, or gort.h
        [ ! -e "$to" ] || echo "includes ${f%.[chS]} ${to%.h} $h $f:$line"
    done >>"$WORK/edges"
calls=$(grep -c '^calls' "$WORK/edges")
[ "$calls" -gt 1000 ] || { echo "only $calls calls were found"; exit 1; }
awk -v exceptions="$exceptions" '
    NR == FNR { floor[$1] = $2; next }
    function of(room,    p) {
        return split(room, p, "/") == 2 ? 1 : p[2] in floor ? floor[p[2]] : -1
    }
    { from = of($2); to = of($3)
      if (from < 0 || to < 0) print "no floor: " (from < 0 ? $2 : $3)
      else if (to > from && !index(exceptions, $2 " " $3 " ")) {
          if ($1 == "includes") print $5 ": includes " $4 ", upstairs"
          else print "calls", $2, $4, $3
    } }' "$WORK/floors" "$WORK/edges" | sort -u >"$WORK/wrong"
# The primitives touch no P and no run queue: they ask sched.h.
grep -nE 'm->p\b|->runnext\b|->ring\b|\bsched\.ps\b|\brunq_[a-z]+\(' src/sync/*.[ch] src/io/*.[ch] |
    sed -E 's/^([^:]*:[0-9]+:) *(.*)/\1 touches a P: \2/' >>"$WORK/wrong"
[ -s "$WORK/wrong" ] || exit 0
grep -v '^calls ' "$WORK/wrong"
# The object does not tell the line: the first that has the name, in the room or a header of it.
sed -n 's/^calls //p' "$WORK/wrong" | while read -r room name home; do
    at=$(grep -nwF "$name" "$room".[cS] "$room".h /dev/null 2>"$WORK/none" | head -n 1)
    at=${at:-$(grep -rnwF --include='*.h' "$name" src | head -n 1)}
    echo "$(echo "$at" | cut -d: -f1,2): $room calls $name of $home, upstairs"
done
exit 1
