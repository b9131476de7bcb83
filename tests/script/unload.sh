# A plugin that runs goroutines is unloaded at once. gort_main() has returned, and its threads are
# on their way out, in the library's code: so that stays (-z nodelete), while the plugin goes and
# comes again. So does the hook, which a plugin may bring: the runtime of the program has its
# functions and tables from then on.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has to be there first'; exit 77; }
"$MAKE" --no-print-directory CC="$CC" ${DEBUG:+DEBUG=$DEBUG} lib hook >/dev/null
cat >"$WORK/plugin.c" <<'END'
#include <gort.h>
static gort_wg wg;
static void count(void *arg) {
    gort_yield();
    ++*(int *)arg;
    gort_wg_done(&wg);
}
static int run(int argc, char **argv) {
    static int counts[100];
    (void)argc, (void)argv;
    gort_wg_add(&wg, 100);
    for (int i = 0; i < 100; i++) gort_go(count, &counts[i]);
    gort_wg_wait(&wg);
    for (int i = 0; i < 100; i++)
        if (counts[i] != 1) return 1; /* the plugin's memory is new each time */
    return 7;
}
int plugin(void) { return gort_main(run, 0, 0); }
END
cat >"$WORK/host.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    for (int i = 0; i < 100; i++) {
        void *h = dlopen(argv[argc - 1], RTLD_NOW);
        int (*plugin)(void) = h ? (int (*)(void))dlsym(h, "plugin") : NULL;
        if (plugin == NULL || plugin() != 7)
            return printf("round %d: %s\n", i, h ? "wrong" : dlerror()), 1;
        dlclose(h);
        if (dlopen("libgort.so.0", RTLD_NOW | RTLD_NOLOAD) == NULL)
            return printf("the library went as well\n"), 1;
    }
    return 0;
}
END
lib=$(cd "$OUT" && pwd)
"$CC" -O2 -fPIC -shared -Iinclude "$WORK/plugin.c" -o "$WORK/plugin.so" -L"$lib" -lgort \
    -Wl,-rpath,"$lib"
"$CC" -O2 "$WORK/host.c" -o "$WORK/host" -ldl
for p in 1 2 16; do
    GORT_MAXPROCS=$p "$WORK/host" "$WORK/plugin.so" || { echo "with $p Ps: status $?"; exit 1; }
done

cat >"$WORK/sleeps.c" <<'END'
#include <pthread.h>
#include <unistd.h>
int sleeps(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    usleep(1000);
    return pthread_mutex_unlock(&mutex);
}
END
cat >"$WORK/brings.c" <<'END'
#include <dlfcn.h>
#include <gort.h>
#include <stdio.h>
#include <unistd.h>
static int (*sleeps)(void);
static gort_wg wg;
static void uses(void *arg) {
    (void)arg;
    if (sleeps() != 0) puts("wrong");
    gort_wg_done(&wg);
}
static int run(int argc, char **argv) {
    for (int i = 0; i < 10; i++) {
        void *h = dlopen(argv[argc - 1], RTLD_NOW);
        sleeps = h ? (int (*)(void))dlsym(h, "sleeps") : NULL;
        if (sleeps == NULL) return puts(dlerror()), 1;
        gort_wg_add(&wg, 10);
        for (int k = 0; k < 10; k++) gort_go(uses, NULL);
        gort_wg_wait(&wg);
        dlclose(h);
        if (dlopen("libgort-hook.so", RTLD_NOW | RTLD_NOLOAD) == NULL)
            return puts("the hook went as well"), 1;
    }
    return 7;
}
static int after(int argc, char **argv) {
    int fds[2];
    char c;
    (void)argc, (void)argv;
    if (pipe(fds) != 0 || gort_write(fds[1], "x", 1) != 1 || gort_read(fds[0], &c, 1) != 1)
        return 1;
    gort_close(fds[0]);
    gort_close(fds[1]);
    gort_sleep(GORT_MS);
    return 7;
}
int main(int argc, char **argv) {
    return gort_main(run, argc, argv) == 7 && gort_main(after, argc, argv) == 7 ? 0 : 1;
}
END
"$CC" -O2 -fPIC -shared "$WORK/sleeps.c" -o "$WORK/sleeps.so" -L"$lib" -Wl,--no-as-needed \
    -lgort-hook -Wl,-rpath,"$lib"
"$CC" -O2 -Iinclude "$WORK/brings.c" -o "$WORK/brings" -L"$lib" -lgort -Wl,-rpath,"$lib" -ldl
"$WORK/brings" "$WORK/sleeps.so" || { echo "the hook: status $?"; exit 1; }
