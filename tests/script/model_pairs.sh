# docs/INVARIANTS.md's Dekker pairs are the input of the models: each row names them, every full
# fence of the library stands in a row, and each of these fences, removed from the real source, is
# found by a model of its row. (That the models hold as the source stands: tests/script/model*.sh,
# tests/long/model_large.sh.)
#
# A fence is fence_full(), fence_after_rmw(), os_membarrier() or load_seq() in a function that the
# row names; in one that has none of these it is the lock.
set -u
. tests/model/lib.sh
doc=docs/INVARIANTS.md status=0
orders='(fence_full|fence_after_rmw|os_membarrier|load_seq)[(]'
complain() { echo "$*"; status=1; }

# file function: the numbers of its lines
lines_of() {
    awk -v name="$2" '
        $0 ~ "^[A-Za-z].*[ *]" name "\\(" && !/;$/ { on = 1 }
        on { print FNR }
        on && (/^}/ || /}$/ && /^[A-Za-z]/) { exit }' "src/$1"
}
# file function: "line kind nth" of each of its fences
fences_of() {
    local lines found
    lines=$(lines_of "$1" "$2" | tr '\n' ' ')
    found=$(awk -v lines=" $lines" -v orders="$orders" \
        'index(lines, " " FNR " ") { rest = $0; sub(/\/\*.*/, "", rest); n = 0
        while (match(rest, orders)) {
            n++; print FNR, substr(rest, RSTART, RLENGTH - 1), n
            rest = substr(rest, RSTART + RLENGTH) } }' "src/$1")
    if [ -n "$found" ]; then printf '%s\n' "$found"; return; fi
    awk -v lines=" $lines" 'index(lines, " " FNR " ") && /^ *lock\(/ { print FNR, "lock", 1 }' \
        "src/$1"
}

# The rows: "number side cell" for the sides, "number models cell".
sed -n '/^## Dekker pairs/,/^## Release/p' "$doc" | grep '^| ' | tail -n +2 |
    awk -F' [|] |^[|] | [|]$' '
    { print NR "|" $2 "|" $3 "|" $5 }' >"$WORK/rows"
[ "$(wc -l <"$WORK/rows")" -ge 15 ] || complain 'the table of Dekker pairs was not found'
: >"$WORK/jobs"
: >"$WORK/covered"
while IFS='|' read -r row one other models; do
    [ -n "$models" ] && printf '%s\n' "$models" | grep -q '`' ||
        complain "the pair in row $row has no model: $one"
    for model in $(printf '%s\n' "$models" | grep -o '`[a-z]*' | tr -d '`'); do
        [ -f "tests/model/$model.c" ] || complain "row $row: there is no model $model"
    done
    for side in "$one" "$other"; do
        places=$(printf '%s\n' "$side" | grep -oE '`[a-z_/]+\.[ch]:[a-z_0-9]+`' | tr -d '`')
        [ -n "$places" ] || printf '%s\n' "$side" | grep -q 'no fence' ||
            complain "row $row: where is the fence of \"$side\"?"
        for place in $places; do
            fences_of "${place%:*}" "${place#*:}" >"$WORK/fences"
            [ -s "$WORK/fences" ] || complain "row $row: ${place#*:} in ${place%:*} has no fence"
            while read -r line kind nth; do
                echo "${place%:*} $line $nth" >>"$WORK/covered"
                printf '%s|%s|%s|%s|%s|%s\n' "${place%:*}" "$line" "$kind" "$nth" "${place#*:}" \
                    "$models" >>"$WORK/jobs"
            done <"$WORK/fences"
        done
    done
done <"$WORK/rows"

# Every fence is in a row.
grep -rnE "$orders" src --include='*.c' --include='*.h' |
    grep -vE '^src/(base/atomic\.h|os/os\.h|os/linux/os_linux|arch/)|^[^:]*:[0-9]*: ?\*' |
    sed -E 's|^src/([^:]*):([0-9]*):.*|\1 \2|' |
    while read -r file line; do grep -q "^$file $line " "$WORK/covered" ||
    echo "$file:$line has a full fence and is in no row of the Dekker pairs"; done >"$WORK/wrong"
[ ! -s "$WORK/wrong" ] || { cat "$WORK/wrong"; status=1; }

sort -u "$WORK/jobs" >"$WORK/sorted"
removed() { # number file line kind nth function models: one mutant
    local number=$1 file=$2 line=$3 kind=$4 nth=$5 function=$6 models=$7 dir="$WORK/m$1" model
    cp -r src "$dir"
    case $kind in
        load_seq) sed -i "${line}s/load_seq(/load_rlx(/$nth" "$dir/$file" ;;
        os_membarrier) sed -i "${line}s/os_membarrier()/0/$nth" "$dir/$file" ;;
        lock) sed -i "${line}s/.*//; ${line},/unlock(/s/^ *unlock(.*//" "$dir/$file" ;;
        *) sed -i "${line}s/$kind()/((void)0)/$nth" "$dir/$file" ;;
    esac
    cmp -s "src/$file" "$dir/$file" &&
        { echo "$file:$line: nothing to remove" >"$WORK/found.$number"; return; }
    printf '%s\n' "$models" | grep -o '`[^`]*`' | tr -d '`' | while read -r model flags; do
        # shellcheck disable=SC2086
        compile "$model" "$dir" "$dir/model" $flags -O1 -w >"$dir/log" 2>&1 ||
            { echo "$file:$line: $model does not compile"; cat "$dir/log"; break; }
        limited "$dir/model" >"$dir/log"
        if [ $? = 1 ] && grep -q '^wrong: ' "$dir/log"; then
            echo "found: $file, $function without its $kind by $model $flags"; break
        fi
    done >"$WORK/found.$number"
    rm -rf "$dir"
    grep -q '^found: ' "$WORK/found.$number" ||
        echo "$file:$line: $function without its $kind is not found by $models" \
        >>"$WORK/found.$number"
}
number=0
while IFS='|' read -r file line kind nth function models; do
    number=$((number + 1))
    removed "$number" "$file" "$line" "$kind" "$nth" "$function" "$models" &
    [ $((number % 4)) != 0 ] || wait
done <"$WORK/sorted"
wait
cat "$WORK"/found.*
grep -qhv '^found: ' "$WORK"/found.* && status=1
exit $status
