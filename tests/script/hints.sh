# GORT_DEBUG=hints=1: each call that takes a deadline tells of a duration in its place, and calls
# that need a runtime tell that there is none yet.
set -u
cat >"$WORK/prog.c" <<'C'
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void never(void *arg) { abort(); }
static int member(gort_ctx *c, void *arg) { abort(); }
static const char *what;
#define IS(name) (strcmp(what, name) == 0)
static int app(int argc, char **argv) {
    int64_t soon = GORT_MS; /* after the machine booted */
    int fd[2];
    char b;
    gort_chan *c = gort_chan_new(0, 0);
    gort_mutex m = {0};
    gort_rwmutex rw = {0};
    gort_sem s = {0};
    gort_wg wg = {0};
    gort_cond cond = {0};
    if (pipe(fd) < 0) return 1;
    if (IS("recv")) gort_chan_recv_until(c, NULL, soon);
    if (IS("send")) gort_chan_send_until(c, NULL, soon);
    if (IS("select")) gort_select_until(&(gort_case){.op = GORT_RECV, .ch = c}, 1, soon);
    if (IS("mutex")) gort_mutex_lock(&m), gort_mutex_lock_until(&m, soon);
    if (IS("rwmutex")) gort_rwmutex_lock(&rw), gort_rwmutex_rlock_until(&rw, soon);
    if (IS("sem")) gort_sem_acquire_until(&s, 1, soon);
    if (IS("wg")) gort_wg_add(&wg, 1), gort_wg_wait_until(&wg, soon);
    if (IS("cond")) gort_mutex_lock(&m), gort_cond_wait_until(&cond, &m, soon);
    if (IS("sleep")) gort_sleep_until(soon);
    if (IS("ctx")) gort_ctx_with_deadline(NULL, soon);
    if (IS("read")) gort_read_until(fd[0], &b, 1, soon);
    if (IS("poll")) gort_poll_until(&(struct pollfd){.fd = fd[0], .events = POLLIN}, 1, soon);
    if (IS("dial")) gort_dial("localhost:1", soon);
    return 0;
}
int main(int argc, char **argv) {
    gort_wg wg = {0};
    what = argv[1];
    if (IS("go")) gort_go(never, NULL);
    if (IS("go_with")) gort_go_with(NULL, never, NULL);
    if (IS("go_copy")) gort_go_copy(never, argv, 4);
    if (IS("wg_go")) gort_wg_go(&wg, never, NULL);
    if (IS("group_go")) gort_group_go(gort_group_new(NULL, NULL), member, NULL);
    return gort_main(app, argc, argv);
}
C
# shellcheck disable=SC2086
case "${SAN:-}" in '') san= ;; *) san="-fsanitize=$SAN" ;; esac
${CC:-cc} -O1 -w $san -Iinclude "$WORK/prog.c" "$OUT/libgort.a" -lpthread -o "$WORK/prog" || exit 1
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
bad=0
told() { # WHAT WORDS
    GORT_DEBUG=hints=1 "$WORK/prog" "$1" 2>"$WORK/err" || { echo "$1: status $?"; bad=1; }
    [ "$(grep -c "^gort: warning: $2" "$WORK/err")" = 1 ] ||
        { echo "$1: not told:"; cat "$WORK/err"; bad=1; }
    GORT_DEBUG=hints=0 "$WORK/prog" "$1" 2>"$WORK/err" || { echo "$1: status $?"; bad=1; }
    [ ! -s "$WORK/err" ] || { echo "$1: told without being asked"; cat "$WORK/err"; bad=1; }
}
for what in recv send select mutex rwmutex sem wg cond sleep ctx read poll dial; do
    told $what 'a deadline of 1ms lies before this program began'
done
for what in go go_with go_copy; do told $what 'gort_go before gort_main returns -ENOTCONN'; done
told wg_go 'gort_wg_go before gort_main'
told group_go 'gort_group_go before gort_main'
exit $bad
