# A child that a goroutine forks ends under memcheck, which has nothing to say: its search for leaks
# goes through the guards of stacks as through other memory.
set -eu
[ -z "$SAN" ] || { echo 'skipped: not with a sanitizer'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
command -v valgrind >/dev/null || { echo 'skipped: no valgrind'; exit 77; }
cat >"$WORK/forks.c" <<'C'
#include <gort.h>
#include <sys/wait.h>
#include <unistd.h>
static gort_wg wg;
static int result = 1;
static void forks(void *arg) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(4);
    waitpid(child, &status, 0);
    result = !(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}
static int app(int argc, char **argv) {
    gort_wg_go(&wg, forks, NULL);
    gort_wg_wait(&wg);
    return result;
}
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
$CC -g -Iinclude "$WORK/forks.c" "$OUT/libgort.a" -lpthread -o "$WORK/forks"
timeout 60 valgrind -q "$WORK/forks" 2>"$WORK/said" ||
    { echo "status $?"; cat "$WORK/said"; exit 1; }
# Without an error memcheck says nothing: no call and no table of the library is new to it.
[ ! -s "$WORK/said" ] || { echo 'it says:'; cat "$WORK/said"; exit 1; }
