# Every planted bug has its place in the code: the patches of tests/mutants apply, and the mutants
# of tests/model change what they name. That each is found takes long: make test-mutants,
# tests/long/model_mutants.sh. A change that moves the code moves its mutants along.
set -u
command -v patch >/dev/null || { echo 'skipped: patch is not installed'; exit 77; }
status=0 n=0
stale() { # what
    echo "$1: has the code moved on?"
    status=1
}
for p in tests/mutants/*.patch; do
    n=$((n + 1))
    patch --dry-run -p1 -s -F2 -r - <"$p" >"$WORK/log" 2>&1 || stale "$p does not apply"
    checker=$(sed -n 's/^found by: *//p' "$p")
    case $checker in
        *seeds/*) checker=tests/api/${checker##*/} ;;
        *) checker=tests/$(printf '%s\n' $checker | grep -m1 /) ;;
    esac
    [ -f "$checker.c" ] || stale "$p names $checker, which there is not"
done

cp -r src "$WORK/src"
holds() { :; }
compile() { [ -f "tests/model/$1.c" ] || stale "the model $1 is not there"; }
fails() { n=$((n + 1)); }
mutant() { # model name file sed-script flags...
    compile "$1"
    n=$((n + 1))
    sed "$4" "$WORK/src/$3" >"$WORK/changed"
    cmp -s "src/$3" "$WORK/changed" && stale "$1: the mutant \"$2\" changes nothing"
}
for list in tests/model/mutants_*.sh; do . "$list"; done
# Those that the scripts of the models plant themselves.
sed -n '/^mutant /{:more; /\\$/{N; b more}; p}' tests/script/model*.sh >"$WORK/planted"
. "$WORK/planted"
echo "$n planted"
exit $status
