# The form of the sources (`make lint`): clang-format's check over C and C++, lines of at most 100
# columns in code, scripts and makefiles, and of at most 110 in Markdown.
#
# A tab counts to the next eighth column, a character outside of ASCII as one. Every violation is
# told as file:line. Left out, since breaking their lines would only hide what they say:
#
#   tests/model/mutants_*.sh, tests/fair/mutants.sh   a mutant is a sed script on one line
#   docs/INVARIANTS.md                                the rows of its tables
#   a link or a picture in Markdown that fills a line of its own
set -u
export LC_ALL=C
. tests/lib/deps.sh
use_deps
work=${WORK:-$(mktemp -d)} status=0
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT

# The files of the checkout, new ones included; of a tarball, all but what was built.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
else
    find . -name build -prune -o -name .git -prune -o -type f -print | sed 's|^\./||'
fi | grep -v '^build/' | sort -u | while read -r f; do [ ! -f "$f" ] || echo "$f"; done >"$work/all"

# Scripts without a name that says so begin with #!.
is_code() {
    case $1 in
        tests/model/mutants_*.sh | tests/fair/mutants.sh) return 1 ;;
        *.c | *.h | *.cc | *.cpp | *.hpp | *.S | *.sh | *.mk | *.py | *.awk | Makefile) return 0 ;;
        *.*) return 1 ;;
    esac
    [ "$(head -c 2 "$1" 2>/dev/null | tr -d '\0')" = '#!' ]
}
while read -r f; do
    if is_code "$f"; then echo "$f"; fi
done <"$work/all" >"$work/code"
grep '\.md$' "$work/all" >"$work/prose"
grep -E '\.(c|h|cc|cpp|hpp)$' "$work/code" >"$work/formatted"
[ "$(wc -l <"$work/code")" -gt 100 ] || { echo 'the sources were not found'; exit 1; }

# The columns of a line are its bytes without UTF-8's continuation bytes, tabs expanded.
columns() { # limit, files...
    most=$1
    shift
    awk -v most="$most" '
        function expand(s,    i) {
            while ((i = index(s, "\t")))
                s = substr(s, 1, i - 1) substr("        ", 1, 8 - (i - 1) % 8) substr(s, i + 1)
            return s
        }
        length <= most && !/\t/ { next }
        FILENAME == "docs/INVARIANTS.md" && /^[|]/ { next }
        FILENAME ~ /\.md$/ && /^ *[^ ]*[]][(][^ ]*[)][.,;:]?$/ { next }
        { gsub(/[\200-\277]/, ""); n = length(expand($0)) }
        n > most { print FILENAME ":" FNR ": " n " columns, more than " most }' "$@"
}
{
    columns 100 $(cat "$work/code")
    columns 110 $(cat "$work/prose")
} >"$work/long"
if [ -s "$work/long" ]; then cat "$work/long"; status=1; fi

# Another version of clang-format breaks some lines elsewhere. It is slow: a file that has not
# changed since the last good run is left out, and so is the check in other builds.
format=
for f in clang-format-14 clang-format; do
    case $($f --version 2>/dev/null) in *'version 14.'*) format=$f; break ;; esac
done
stamp=${OUT:-build}/lint.stamp
touch "$work/now"
if [ -e "$stamp" ] && [ -z "$(find .clang-format -newer "$stamp")" ]; then
    find $(cat "$work/formatted") -newer "$stamp" >"$work/changed"
else
    cp "$work/formatted" "$work/changed"
fi
if [ -z "$format" ]; then
    echo "the check of clang-format 14 is left out: $(lack format)"
elif [ -n "${SAN:-}${DEBUG:-}" ] || ! [ -s "$work/changed" ]; then
    :
elif xargs -n 20 -P "${JOBS:-2}" "$format" --dry-run -Werror <"$work/changed" 2>"$work/wrong"; then
    mkdir -p "${stamp%/*}" && cp -p "$work/now" "$stamp"
else
    grep -E '^[^ ]*:[0-9]+:[0-9]+: ' "$work/wrong" || cat "$work/wrong"
    status=1
fi
exit $status
