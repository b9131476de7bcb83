# A child that a goroutine forks, in a program with AddressSanitizer and the plain library, ends
# without a warning: the library tells on which stack the child is.
set -eu
[ -z "$SAN" ] || { echo 'skipped: it brings its own sanitizer'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
cat >"$WORK/forks.c" <<'C'
#include <gort.h>
#include <sys/wait.h>
#include <unistd.h>
static gort_wg wg;
static void forks(void *arg) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
}
static int app(int argc, char **argv) {
    for (int i = 0; i < 4; i++) gort_wg_go(&wg, forks, NULL);
    gort_wg_wait(&wg);
    return 0;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
$CC -fsanitize=address -g -Iinclude "$WORK/forks.c" "$OUT/libgort.a" -lpthread -o "$WORK/forks" \
    2>/dev/null || { echo 'skipped: no AddressSanitizer'; exit 77; }
"$WORK/forks" 2>"$WORK/err" || { cat "$WORK/err"; exit 1; }
[ ! -s "$WORK/err" ] || { cat "$WORK/err"; exit 1; }
