# The hook below ThreadSanitizer (clang's, whose own hooks stand in the program): a goroutine joins
# a thread, once as ThreadSanitizer counts.
set -eu
[ -z "$SAN" ] || { echo 'skipped: it brings its own sanitizer'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
cat >"$WORK/join.c" <<'C'
#include <gort.h>
#include <pthread.h>
static void *ends(void *arg) { return arg; }
static void *naps(void *arg) {
    gort_sleep(20 * GORT_MS);
    return arg;
}
static int joins(void *(*fn)(void *)) {
    pthread_t thread;
    void *value = NULL;
    if (pthread_create(&thread, NULL, fn, &thread) != 0) return 2;
    if (fn == ends) gort_sleep(20 * GORT_MS);
    return pthread_join(thread, &value) == 0 && value == &thread ? 0 : 1;
}
static int app(int argc, char **argv) { return joins(ends) + joins(naps); }
int main(int argc, char **argv) { return gort_main(app, argc, argv); }
C
clang -fsanitize=thread -O1 -g -Iinclude "$WORK/join.c" -o "$WORK/join" -L"$OUT" \
    -Wl,-rpath,"$(cd "$OUT" && pwd)" -Wl,--no-as-needed -lgort-hook -lgort -lpthread 2>/dev/null ||
    { echo 'skipped: no clang with ThreadSanitizer'; exit 77; }
"$WORK/join" || { echo "status $?"; exit 1; }
