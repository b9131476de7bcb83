#!/bin/sh
# The walks over children leave nothing out: every name that the hook interposes is called by
# tests/hook/child_test.c, every public call by tests/lib/child_calls.h. And the first is run once
# more with the place of the hook's notes, which it can only compare where it is told.
set -eu
[ -z "${SAN:-}" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
command -v nm >/dev/null || { echo 'skipped: no nm'; exit 77; }
bad=0
nm -D --defined-only "$OUT/libgort-hook.so" | awk '{print $NF}' | sed 's/@.*//' |
    sort -u >"$WORK/all"
# Whole programs' threads have a walk of their own: tests/threads/child_test.c.
nm --defined-only "$OUT"/pic/src/threads/*.o | awk '$2 ~ /[TW]/ {print $NF}' |
    sort -u >"$WORK/theirs"
comm -23 "$WORK/all" "$WORK/theirs" >"$WORK/hooked"
[ "$(wc -l <"$WORK/hooked")" -gt 60 ]
while read -r name; do
    case $name in
    # they make the children; those that nobody signals
    vfork | clone | pthread_cond_wait | cnd_wait) continue ;;
    # libc's own lock, which a child has as the parent held it
    flockfile | ftrylockfile | funlockfile) continue ;;
    esac
    grep -q "X($name, " tests/hook/child_test.c ||
        { echo "tests/hook/child_test.c does not call $name"; bad=1; }
done <"$WORK/hooked"
nm -D --defined-only "$OUT/libgort.so" | awk '{print $NF}' | sed 's/@.*//' | grep '^gort_' |
    sort -u >"$WORK/public"
[ "$(wc -l <"$WORK/public")" -gt 120 ]
while read -r name; do
    case $name in
    gort_hook_core | gort_nopreempt_range | gort_split_*) continue ;; # not for programs
    esac
    grep -q "X($name, " tests/lib/child_calls.h ||
        { echo "tests/lib/child_calls.h does not call $name"; bad=1; }
done <"$WORK/public"
notes=$(nm -S "$OUT/libgort-hook.so" | awk '$4 == "fd_hints" {print $1 "," $2}')
[ -n "$notes" ] || { echo 'fd_hints is not where it was'; exit 1; }
# What a signal handler may call, of POSIX.1-2024's list and the system calls beside it, and the
# hook interposes: tests/hook/handler_test.c calls it from one.
for name in accept close connect dup dup2 fcntl fdatasync fsync nanosleep open pipe poll pselect \
    read recv recvfrom recvmsg select \
    sem_post send sendmsg sendto sleep socket socketpair syscall waitpid write accept4 \
    clock_nanosleep dup3 epoll_wait eventfd pipe2 ppoll \
    readv usleep vfork writev; do
    grep -qx "$name" "$WORK/hooked" || { echo "$name is not interposed any more"; bad=1; }
    grep -q "X($name, " tests/hook/handler_test.c ||
        { echo "tests/hook/handler_test.c does not call $name"; bad=1; }
done
HOOK_NOTES=$notes GORT_MAXPROCS=2 "$OUT/tests/hook/child_test" >"$WORK/out" 2>&1 ||
    { cat "$WORK/out"; bad=1; }
exit $bad
