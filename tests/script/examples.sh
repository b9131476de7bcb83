# Every example with an expected output says exactly that, at 1, 2 and 16 Ps; each is short.
set -eu
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # what lives at the end is left
bad=0 ran=0
for f in examples/expected/*; do
    name=$(basename "$f")
    if [ -e "examples/$name.cc" ] && ! command -v "${CXX:-g++}" >/dev/null; then
        echo "no ${CXX:-g++}: $name is left out"; continue
    fi
    [ -x "$OUT/examples/$name" ] || { echo "$name did not build"; bad=1; continue; }
    for procs in 1 2 16; do
        if ! GORT_MAXPROCS=$procs timeout -k 1 60 "$OUT/examples/$name" >"$WORK/out" 2>"$WORK/err" \
            </dev/null; then
            echo "$name (GORT_MAXPROCS=$procs) failed:"; cat "$WORK/err"; bad=1
        fi
        diff -u "$f" "$WORK/out" ||
            { echo "$name (GORT_MAXPROCS=$procs) says something else"; bad=1; }
        ran=$((ran + 1))
    done
done
for f in examples/*.h examples/*/*.c; do
    case $f in examples/httpd/*) continue ;; esac # a larger one
    [ "$(wc -l <"$f")" -lt 100 ] || { echo "$f is not under 100 lines"; bad=1; }
done
for f in examples/*.c examples/*.cc; do
    name=$(basename "${f%.*}")
    [ "$name" = demo ] && continue
    [ -e "examples/expected/$name" ] || [ -e "tests/script/$name.sh" ] ||
        grep -qs "examples/$name" tests/script/*.sh ||
        { echo "$f is run by no test"; bad=1; }
    [ "$(wc -l <"$f")" -lt 100 ] || { echo "$f is not under 100 lines"; bad=1; }
done
echo "$ran runs"
[ $ran -gt 0 ] && exit $bad
