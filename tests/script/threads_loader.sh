# gort-run: a library's constructor and destructor, which the loader calls with its lock held, wait
# for threads that begin and end meanwhile. By themselves and as goroutines.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ "$ARCH" = x86_64 ] || { echo 'skipped: threads stay threads here'; exit 77; }
cat >"$WORK/plugin.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
static void *ends(void *arg) { return arg; }
static void thread_in_loader(void) {
    pthread_t thread;
    void *value = NULL;
    if (pthread_create(&thread, NULL, ends, &thread) != 0) abort();
    if (pthread_join(thread, &value) != 0 || value != &thread) abort();
}
__attribute__((constructor)) static void begin(void) { thread_in_loader(); }
__attribute__((destructor)) static void end(void) { thread_in_loader(); }
END
cat >"$WORK/prog.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void *loads(void *file) {
    void *plugin = dlopen(file, RTLD_NOW);
    if (plugin == NULL) fputs(dlerror(), stderr);
    return plugin == NULL || dlclose(plugin) != 0 ? file : NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    void *bad = loads(argv[1]);
    if (bad || pthread_create(&thread, NULL, loads, argv[1]) != 0) return 1;
    pthread_join(thread, &bad);
    return bad != NULL;
}
END
$CC -shared -fPIC "$WORK/plugin.c" -o "$WORK/plugin.so" -pthread
$CC "$WORK/prog.c" -o "$WORK/prog" -pthread -ldl
timeout 20 "$WORK/prog" "$WORK/plugin.so"
for procs in 1 2; do
    timeout -k 1 20 env GORT_MAXPROCS=$procs GORT_THREADS=1 \
        LD_PRELOAD="$PWD/$OUT/libgort-hook.so" "$WORK/prog" "$WORK/plugin.so" ||
        { echo "as goroutines, GORT_MAXPROCS=$procs: $?"; exit 1; }
done
