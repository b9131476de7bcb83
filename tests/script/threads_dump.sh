# A dump of an unmodified program under gort-run has its threads by their names, each with the call
# that it waits in and the program's own frames: none of the library's, none of libc's below.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
cat >"$WORK/waits.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting;
static void waits_here(void) {
    pthread_mutex_lock(&mutex);
    waiting++;
    for (;;) pthread_cond_wait(&cond, &mutex);
}
static void *worker(void *arg) {
    pthread_setname_np(pthread_self(), arg);
    waits_here();
    return NULL;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, worker, "worker one");
    pthread_create(&two, NULL, worker, "worker two");
    for (int all = 0; all < 2;) {
        pthread_mutex_lock(&mutex);
        all = waiting;
        pthread_mutex_unlock(&mutex);
    }
    kill(getpid(), SIGQUIT);
    for (;;) pause();
}
END
$CC -g -O1 -fno-optimize-sibling-calls -fno-inline -Wall -Werror -pthread "$WORK/waits.c" \
    -o "$WORK/waits"
LD_PRELOAD="$(cd "$OUT" && pwd)/libgort-hook.so" GORT_THREADS=1 timeout 60 "$WORK/waits" \
    2>"$WORK/err" || :
for name in one two; do
    sed -n "/^goroutine [0-9]* \"worker $name\" /,/^$/p" "$WORK/err" | awk '{ print $2 }' |
        sed 's/+.*//' | tail -n +2 | sed '/^by$/d; /^$/d' >"$WORK/frames"
    printf '%s\n' pthread_cond_wait waits_here worker >"$WORK/wanted"
    cmp -s "$WORK/frames" "$WORK/wanted" || { echo "worker $name:"; cat "$WORK/err"; exit 1; }
done
sed -n '/^goroutine 1 "main" /,/^$/p' "$WORK/err" | grep ' main+' >/dev/null || cat "$WORK/err"
! sed -n '/^goroutine 1 "main" /,/^$/p' "$WORK/err" | grep -E 'thread_first|libc_start' ||
    { echo 'main begins with frames that are not its own'; exit 1; }
