# GORT_NOPREEMPT holds in a program with libgort.a, in one with libgort.so, and in a library that is
# opened while it runs.
set -u
cat >"$WORK/loop.h" <<'END'
/* Long enough for many ticks of the monitor; no call, since that would be a way out of here. */
#define LOOP for (volatile long i = 0; i < 60000000; i++) continue
END
cat >"$WORK/plugin.c" <<'END'
#include <gort.h>
#include "loop.h"
GORT_NOPREEMPT void plugin(void);
GORT_NOPREEMPT void plugin(void) { LOOP; }
void yields_to_signals(void);
void yields_to_signals(void) { LOOP; }
END
cat >"$WORK/main.c" <<'END'
#include <dlfcn.h>
#include <gort.h>
#include <stdio.h>
#include "loop.h"
static volatile int ran;
static void other(void *arg) { (void)arg; ran = 1; }
GORT_NOPREEMPT static void here(void) { LOOP; }
static void preemptible(void) { LOOP; }
/* The other goroutine runs while fn does: preempted, in one of three. */
static int preempted(void (*fn)(void)) {
    int times = 0;
    for (int i = 0; i < 3; i++) {
        gort_yield(); /* a new slice */
        ran = 0;
        gort_go(other, 0);
        fn();
        times += ran;
        while (!ran) gort_yield();
    }
    return times;
}
static int body(int argc, char **argv) {
    int wrong = 0;
    if (preempted(here) == 3) wrong = 1, puts("preempted in the program");
    if (preempted(preemptible) == 0)
        wrong = 1, puts("nothing is preempted: the test shows nothing");
    for (int i = 0; i < 2; i++) { /* opened again, perhaps elsewhere */
        void *lib = dlopen(argv[1], RTLD_NOW);
        if (lib == 0) return puts(dlerror()), 1;
        if (preempted((void (*)(void))dlsym(lib, "plugin")) == 3)
            wrong = 1, puts("preempted in the plugin");
        if (preempted((void (*)(void))dlsym(lib, "yields_to_signals")) == 0)
            wrong = 1, puts("the plugin is never preempted");
        dlclose(lib);
    }
    (void)argc;
    return wrong;
}
int main(int argc, char **argv) { return gort_main(body, argc, argv); }
END
flags="-O1 -Wall -Wextra -Werror -pthread -Iinclude ${SAN:+-fsanitize=$SAN}"
"$CC" $flags -fPIC -shared "$WORK/plugin.c" -o "$WORK/plugin.so" || exit 1
"$CC" $flags -rdynamic "$WORK/main.c" "$OUT/libgort.a" -ldl -o "$WORK/static" || exit 1
"$CC" $flags "$WORK/main.c" -L"$OUT" -lgort -Wl,-rpath,"$PWD/$OUT" -ldl -o "$WORK/shared" || exit 1
status=0
for kind in static shared; do
    GORT_MAXPROCS=1 "$WORK/$kind" "$WORK/plugin.so" || { echo "with the $kind library"; status=1; }
done
exit $status
