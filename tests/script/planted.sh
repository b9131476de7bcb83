# The tests of the house find what they are for: each violation is planted alone in a copy of the
# sources, and floors, names, references, walks or lint has to fail with its file and line.
set -u
[ -z "$SAN" ] || { echo 'skipped: the scripts do not look at the code of a sanitizer'; exit 77; }
command -v nm >/dev/null || { echo 'skipped: no nm'; exit 77; }
objects=$(realpath "$OUT/obj")
house=$WORK/house
mkdir "$house" "$WORK/out" && cp -rp src include docs tests tools bench examples man packaging \
    *.md Makefile .clang-format "$house" && cp -rs "$objects" "$WORK/out/obj" || exit 1
. tests/lib/deps.sh
use_deps
touch "$WORK/out/lint.stamp" # clang-format looks at what is newer
cd "$house" || exit 1
status=0 n=0

# Runs a script over the copy; what is said of the house as it is passes.
check() { # script
    rm -rf "$WORK/work"
    mkdir "$WORK/work"
    env GIT_DIR=none WORK="$WORK/work" OUT="$WORK/out" DEBUG= bash "tests/script/$1.sh" \
        >"$WORK/said" 2>&1
}
# Plants lines at the end of a file, sees the script fail with the place of the last of them and the
# words, and takes them out.
planted() { # script file words line...
    local script=$1 file=$2 words=$3 line before=$WORK/before at
    shift 3
    n=$((n + 1))
    rm -f "$before"
    [ ! -e "$file" ] || cp -p "$file" "$before"
    for line; do printf '%s\n' "$line"; done >>"$file"
    at=$(wc -l <"$file")
    if check "$script"; then
        echo "$script does not find: $1"
        status=1
    elif ! grep -F "$file:$at:" "$WORK/said" | grep -qF -- "$words"; then
        echo "$script does not say \"$words\" at $file:$at, but:"
        head -n 5 "$WORK/said"
        status=1
    fi
    rm "$file"
    [ ! -e "$before" ] || cp -p "$before" "$file"
}
for script in floors names references walks; do
    check $script || { echo "$script fails with nothing planted:"; cat "$WORK/said"; exit 1; }
done

# A call upwards is in the object, wherever the text hides it.
calls() { # room callee words
    local object=$WORK/out/obj/src/base/$1.o
    echo "void $2(void); void planted(void); void planted(void) { $2(); }" |
        "$CC" -x c -c -o "$object" - || exit 1
    planted floors "src/base/$1.c" "$3" "void $2(void);"
    rm "$object"
}
calls below schedule_loop 'calls schedule_loop of src/sched/sched, upstairs'
calls below gort_chan_close 'calls gort_chan_close of src/sync/chan, upstairs'
planted floors src/base/warn.c 'includes sched/sched.h, upstairs' '#include "sched/sched.h"'
planted floors src/sync/sem.c 'includes ../io/fdcall.h, upstairs' '#include "../io/fdcall.h"'
planted floors src/arch/x86_64/switch.S 'includes mem/stack.h, upstairs' '#include "mem/stack.h"'

planted floors src/sync/wg.c 'touches a P: int n = m->p->id' 'int n = m->p->id;'

line=$(sed -n '/^static void add_up/=' src/debug/stats.c)
planted names src/sync/cond.c "add_up is defined at src/debug/stats.c:$line, too" \
    'static int add_up(int a) { return a; }'
planted names src/sync/time.c 'Sleeper is defined at src/sync/sema.h' 'typedef int Sleeper;'
planted names src/sync/time.c 'Sleeper is defined at src/sync/sema.h' 'struct Sleeper { int a; };'
planted names src/sync/time.c 'timer_fn is defined at src/sched/timer.h' \
    'typedef int timer_fn(int);'
planted names src/hook/c11.c 'event_fn is defined at src/gc/boehm.c' \
    'typedef int (*event_fn)(int);'

none=no""where_at_all # in pieces: a word of this script would be a word of the house
planted references src/io/net.c $none.c "/* As in $none.c. */"
planted references tests/api/mutex_test.c $none.c "/* As in $none.c. */"
planted references src/io/net.c $none "/* See $none(). */"
planted references src/io/net.c $none "/* Then $none goes on. */"
planted references include/gort.hpp $none "/* Then $none goes on. */"
planted references src/sched/README.md $none.h "- \`$none.h\`: a room that went."
planted references docs/TOUR.md $none "Then \`$none\` goes on."
planted references src/io/net.c 'law 3' '/* By law 3. */' # a number without a document
planted references docs/hook.md THREADS.md 'See [`THREADS.md`](THREADS.md).'

# A README of 21 lines, and a room that none names.
seq 9 >>src/gc/README.md
seq 7 >>src/gc/README.md
touch "src/sched/$none.c"
check references && status=1
for words in 'src/gc/README.md:21: more than twenty' "src/sched/README.md:1: src/sched/$none.c"; do
    grep -qF "$words" "$WORK/said" || { echo "references does not say: $words"; status=1; }
done
rm "src/sched/$none.c"

walk='## Four walks'
planted walks docs/TOUR.md 'park does not call gort_main' "$walk" '`park` → `gort_main`'
planted walks docs/TOUR.md 'park is not in src/io/net.c' "$walk" '`park` *(io/net.c)*'

wide() { printf '%*s' "$1" '' | tr ' ' x; }
planted lint src/io/net.c '101 columns, more than 100' "/* $(wide 95) */"
planted lint tests/run '101 columns, more than 100' "# $(wide 99)"
planted lint Makefile '101 columns, more than 100' "$(printf '\t')@$(wide 92)"
planted lint docs/SEEING.md '111 columns, more than 110' "$(wide 111)"
if { clang-format-14 --version || clang-format --version; } 2>&1 | grep -q 'version 14\.'; then
    planted lint src/io/net.c clang-format 'int  planted ;'
    planted lint include/gort.hpp clang-format 'int  planted ;'
    planted lint tests/api/mutex_test.c clang-format 'int  planted ;'
else
    echo "badly formatted lines are left out: $(lack format)"
fi

# What is as wide as it may be passes.
printf '%s\n' "/* $(wide 94) */" >>src/io/net.c
printf '%s\n' "$(wide 110)" "$(wide 110 | sed 's/x/ä/g')" >>docs/SEEING.md
check lint || { echo 'lint does not take lines of 100 and 110 columns:'; cat "$WORK/said"; exit 1; }
[ "$n" -ge 20 ] || exit 1
exit $status
