# What comments and documents name is there: files by their name (wake.c), functions and variables
# by name() or a name_with_underscores, `words` of the documents, laws. A reference that has gone
# stale fails.
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
known=' app.c race.c signal.h part.c FROM.md gc.h gc_mark.h fenv.h netdb.h sdt.h stdio.h threads.h '
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

# A name_with_underscores in a comment of src is a word of the code, a room, or one of these, which
# are others' (the system's, DWARF's, pprof's) or examples.
others=' CLONE_CHILD_CLEARTID GC_malloc GNU_args_size MAKE_MEM_DEFINED MAKE_MEM_UNDEFINED O_ASYNC
    PIPE_BUF RUNNING_ON_VALGRIND SO_RCVLOWAT STACK_REGISTER SYS_futex_requeue SYS_futex_wait
    SYS_futex_waitv WAIT_BITSET backtrace_symbols debug_abbrev debug_aranges debug_info
    duration_nanos eh_frame eh_frame_hdr gnu_debuglink hook_cost
    gort_debug ints_chan ints_new ints_on_recv ints_on_send ints_recv ints_send libgort_split
    period_type posix_spawn pthread_mutex_destroy recv_loop remember_state rt_sigreturn sample_type
    seq_cst start_all string_table time_nanos x86_64 '
sed 's|\.[^.]*$||' "$WORK/files" | sort -u - "$WORK/words" >"$WORK/names"
for w in $others; do echo "$w"; done | sort -u - "$WORK/names" >"$WORK/known"
grep -oE '^[^ ]+ |\b[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]*[A-Za-z0-9]\b' "$WORK/comments" |
    awk '/ $/ { file = $1; next } { print $1, file }' | sort -u |
    join -v 1 - "$WORK/known" >"$WORK/stale"
while read -r name file; do complain "$file names $name, which there is not"; done <"$WORK/stale"

# A `word` of a document is a word of some file here. These two documents speak of others, too.
find src include tests tools bench examples man packaging Makefile -type f -exec cat {} + |
    tr -c 'A-Za-z0-9_' '\n' | sort -u >"$WORK/anywhere"
grep -vE '^docs/(COMING-FROM|DIFFERENCES)\.md ' "$WORK/docs" |
    grep -oE '^[^ ]+ |`[A-Za-z_][A-Za-z0-9_]*(\(\))?`' |
    awk '/ $/ { file = $1; next } { gsub(/[`()]/, ""); print $1, file }' | sort -u |
    join -v 1 - "$WORK/anywhere" >"$WORK/stale"
while read -r name file; do complain "$file names $name, which there is not"; done <"$WORK/stale"

# Documents that this project does not have, and laws by number without a document.
gone='PREEMPTION\.md|API\.md|COMPACT\.md|THREADS\.md|[Ll]aw [0-9]'
grep -nE "$gone" -r src include docs man tests --include='*.[chS]' --include='*.md' \
    --include='*.[1357]' | grep -v 'DESIGN\.md' >"$WORK/gone" || true
[ ! -s "$WORK/gone" ] || { cat "$WORK/gone"; bad=1; }
exit $bad
