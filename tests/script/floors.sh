# The order of floors (docs/TOUR.md): a room calls, and includes, its own floor and those below it.
# The calls come from the objects.
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
hook'
# A room that has to call upwards: "from to reason". None has.
exceptions=''

echo "$floors" | awk '{ for (i = 1; i <= NF; i++) print $i, NR }' >"$WORK/floors"
rooms=$(cd "$OUT/obj" && find src -name '*.o' | sort | while read -r o; do
    # else of a file that is gone
    for s in "${o%.o}.c" "${o%.o}.S"; do [ ! -e "$OLDPWD/$s" ] || echo "$o"; done
done)
[ "$(echo "$rooms" | wc -l)" -gt 100 ] ||
    { echo "the objects of the library are not in $OUT/obj"; exit 1; }
for o in $rooms; do
    nm "$OUT/obj/$o" | awk -v room="${o%.o}" '$(NF - 1) == "U" { print "uses", $NF, room; next }
        $(NF - 1) ~ /^[TDBRCVW]$/ { print "has", $NF, room }'
done >"$WORK/names"
awk '$1 == "has" { home[$2] = $3; next } { use[$2 " " $3] = 1 }
     END { for (u in use) {
         split(u, p, " ")
         if (p[1] in home && home[p[1]] != p[2]) print "calls", p[2], home[p[1]], p[1]
     } }' "$WORK/names" >"$WORK/edges"
for f in $(find src -name '*.[ch]'); do
    sed -n 's|^ *# *include "\(.*\)".*|\1|p' "$f" | while read -r h; do
        [ ! -e "src/$h" ] || echo "includes ${f%.[ch]} src/${h%.h} $h"
    done
done >>"$WORK/edges"
calls=$(grep -c '^calls' "$WORK/edges")
[ "$calls" -gt 1000 ] || { echo "only $calls calls were found"; exit 1; }
awk -v exceptions="$exceptions" '
    NR == FNR { floor[$1] = $2; next }
    function of(room,    p) {
        return split(room, p, "/") == 2 ? 1 : p[2] in floor ? floor[p[2]] : -1
    }
    { from = of($2); to = of($3)
      if (from < 0 || to < 0) { print "no floor: " (from < 0 ? $2 : $3); bad = 1 }
      else if (to > from && !index(exceptions, $2 " " $3 " ")) {
          print $2 " " $1 " " $4 (($1 == "calls") ? " of " $3 : "") ", upstairs"; bad = 1 } }
    END { exit bad }' "$WORK/floors" "$WORK/edges" | sort -u >"$WORK/wrong"
[ ! -s "$WORK/wrong" ] || { cat "$WORK/wrong"; exit 1; }
