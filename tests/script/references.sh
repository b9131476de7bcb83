# What comments and documents name is there: files by their name (wake.c), functions and variables
# by name() or a name_with_underscores, `words` of the documents, laws. A reference that has gone
# stale fails.
set -u
bad=0
complain() { echo "$*"; bad=1; }
export LC_ALL=C

# Every file name in a comment or in a document is that of a file here, or of the system's.
find . -name build -prune -o -name .git -prune -o -type f -print | sed 's|.*/||' |
    sort -u >"$WORK/files"
comments() { # file...: "file:line text" of the comments
    awk '{ line = $0
        while (line != "") {
            if (!inside) {
                i = index(line, "/*"); if (!i) break
                line = substr(line, i + 2); inside = 1
            }
            i = index(line, "*/")
            if (!i) { print FILENAME ":" FNR, line; break }
            print FILENAME ":" FNR, substr(line, 1, i - 1); line = substr(line, i + 2); inside = 0
        } }' "$@"
}
sources=$(find src include -name '*.[chS]' -o -name '*.hpp')
comments $sources >"$WORK/comments"
awk '{ print FILENAME ":" FNR, $0 }' README.md docs/*.md src/README.md src/*/README.md >"$WORK/docs"
unknown() { # regexp of a name, file of known names: what stdin ("file:line text") has beyond them
    grep -oE "^[^ ]+ |$1" | awk '/ $/ { at = $1; next } { gsub(/[`()]/, ""); print $1, at }' |
        sort -u | join -v 1 - "$2" >"$WORK/stale"
    while read -r name at; do complain "$at: $name, which there is not"; done <"$WORK/stale"
}
# Not ours: examples of a user's files, other people's headers.
known='app.c race.c signal.h part.c FROM.md gc.h gc_mark.h fenv.h go.h netdb.h sdt.h stdio.h
    threads.h'
printf '%s\n' $known | sort -u - "$WORK/files" >"$WORK/known"
comments $(find tests tools bench examples -name '*.[chS]' -o -name '*.cc') |
    cat - "$WORK/comments" "$WORK/docs" >"$WORK/all"
unknown '[A-Za-z_0-9]+\.(c|h|S|md|sh|awk)\b' "$WORK/known" <"$WORK/all"

# name() in a comment of src is a word of the code, or of libc.
sed -e 's|/\*.*\*/||' -e '/^ \*/d' -e 's|/\*.*||' $sources |
    grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$WORK/words"
printf '%s\n' msync setenv | sort -u - "$WORK/words" >"$WORK/known"
unknown '\b[a-z_][a-z0-9_]*\(\)' "$WORK/known" <"$WORK/comments"

# A name_with_underscores in a comment of src is a word of the code, a room, or one of these, which
# are others' (the system's, DWARF's, pprof's) or examples.
others='CLONE_CHILD_CLEARTID GC_malloc GNU_args_size MAKE_MEM_DEFINED MAKE_MEM_UNDEFINED O_ASYNC
    PIPE_BUF RUNNING_ON_VALGRIND SO_RCVLOWAT STACK_REGISTER SYS_futex_requeue SYS_futex_wait
    SYS_futex_waitv WAIT_BITSET backtrace_symbols debug_abbrev debug_aranges debug_info
    duration_nanos eh_frame eh_frame_hdr gnu_debuglink gort_debug hook_cost ints_chan ints_new
    ints_on_recv ints_on_send ints_recv ints_send libgort_split lock_guard period_type
    posix_spawn pthread_mutex_destroy recv_loop remember_state rt_sigreturn sample_type
    scoped_lock seq_cst start_all string_table time_nanos x86_64'
sed 's|\.[^.]*$||' "$WORK/files" | sort -u - "$WORK/words" >"$WORK/names"
printf '%s\n' $others | sort -u - "$WORK/names" >"$WORK/known"
unknown '\b[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]*[A-Za-z0-9]\b' "$WORK/known" <"$WORK/comments"

# A `word` of a document is a word of some file here. These two documents speak of others, too.
find src include tests tools bench examples man packaging Makefile -type f -exec cat {} + |
    tr -c 'A-Za-z0-9_' '\n' | sort -u >"$WORK/known"
grep -vE '^docs/(COMING-FROM|DIFFERENCES)\.md:' "$WORK/docs" >"$WORK/ours"
unknown '`[A-Za-z_][A-Za-z0-9_]*(\(\))?`' "$WORK/known" <"$WORK/ours"

# Each folder's README is short and names every room: the file, or `name.[ch]`.
for readme in src/*/README.md; do
    [ "$(wc -l <"$readme")" -le 20 ] || complain "$readme:21: more than twenty lines"
    tr -c 'A-Za-z0-9_.[]' '\n' <"$readme" |
        sed -n 's/\.$//; s/^\(.*\)\.\[ch]$/\1.c\n\1.h/p; t; /\./p' | sort -u >"$WORK/rooms"
    for f in $(find "${readme%/*}" -type f ! -name README.md ! -path '*/split/program/*'); do
        grep -qxF "${f##*/}" "$WORK/rooms" || complain "$readme:1: $f is not named"
    done
done

# Documents that this project does not have, and laws by number without a document.
gone='PREEMPTION\.md|API\.md|COMPACT\.md|THREADS\.md|[Ll]aw [0-9]'
grep -nE "$gone" -r src include docs man tests --include='*.[chS]' --include='*.md' \
    --include='*.[1357]' | grep -v 'DESIGN\.md' >"$WORK/gone" || true
[ ! -s "$WORK/gone" ] || { cat "$WORK/gone"; bad=1; }
exit $bad
