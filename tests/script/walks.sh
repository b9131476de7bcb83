# The walks of docs/TOUR.md are as the code is. A name before *(room)* stands in that room; where an
# arrow leads from one function to another, the first calls the second.
set -u
awk '/^## /{ on = /Four walks/ } { print on ? $0 : "" }' docs/TOUR.md >"$WORK/walks"
file='[a-z_/0-9]+\.[ch]'
grep -noE "\`[a-z_]+\`|→|\*\($file\)\*|, \*$file\*\)|[^ \`*]+" "$WORK/walks" | awk '
    { token = $0; line = $0; sub(/^[0-9]+:/, "", token); sub(/:.*/, "", line) }
    token ~ /^`/ {
        name = token
        gsub(/`/, "", name)
        if (arrow) print line, "call", from, name
    }
    token == "→" { arrow = 1; from = name; next }
    token ~ /^(\*\(|, \*)/ { gsub(/[*(), ]/, "", token); print line, "room", name, "src/" token }
    { arrow = 0 }' >"$WORK/steps"
[ "$(wc -l <"$WORK/steps")" -gt 60 ] || { echo 'the walks were not found'; exit 1; }
body() { # function: its text. The name stands once in the house (names.sh).
    awk -v name="$1" '
        FNR == 1 { on = 0 }
        /^[A-Za-z].*\(.*[{},]$/ && $0 ~ "[ *]" name "\\(" { on = 1 }
        on { print }
        on && /}$/ && (/^}/ || /^[A-Za-z]/) { exit }' $(grep -lw "$1" -r src --include='*.[ch]')
}
status=0
while read -r line what name other; do
    case $what in
        room) grep -qw "$name" "$other" || wrong="$name is not in $other" ;;
        call) body "$name" | grep -qw "$other" || wrong="$name does not call $other" ;;
    esac
    [ -z "${wrong:-}" ] || { echo "docs/TOUR.md:$line: $wrong"; status=1; }
    wrong=
done <"$WORK/steps"
exit $status
