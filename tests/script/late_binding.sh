# A function that is bound when it is first called, and throws, while others stop the world: whoever
# is stopped in the loader must not leave a return address behind that no exception can pass
# (src/sched/inlibc.c). LD_BIND_NOT: every call is the first.
set -u
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # what lives at the end is left
command -v "${CXX:-g++}" >/dev/null || { echo "skipped: no ${CXX:-g++}"; exit 77; }
[ "${SAN:-}" != thread ] || { echo 'skipped: nobody is trapped there'; exit 77; }
cat >"$WORK/throws.cc" <<'CC'
extern "C" void spins_and_throws(volatile long *n) {
    for (int i = 0; i < 20000; i++) *n = *n + 1;
    throw 1;
}
CC
cat >"$WORK/catches.cc" <<'CC'
#include <gort.h>
extern "C" void spins_and_throws(volatile long *n);
static int caught, quit;
static void worker(void *) {
    volatile long n = 0;
    while (!__atomic_load_n(&quit, __ATOMIC_SEQ_CST)) {
        try {
            spins_and_throws(&n);
        } catch (int) {
            __atomic_add_fetch(&caught, 1, __ATOMIC_SEQ_CST);
        }
    }
}
static int body(int, char **) {
    for (int i = 0; i < 3; i++) gort_go(worker, nullptr);
    for (int i = 0; i < 60; i++) {
        gort_stop_world();
        gort_start_world();
        gort_sleep(50 * GORT_US);
    }
    while (__atomic_load_n(&caught, __ATOMIC_SEQ_CST) < 10) gort_yield();
    __atomic_store_n(&quit, 1, __ATOMIC_SEQ_CST);
    return 0;
}
int main(int argc, char **argv) { return gort_main(body, argc, argv); }
CC
san=${SAN:+-fsanitize=$SAN}
${CXX:-g++} -O1 $san -fPIC -shared "$WORK/throws.cc" -o "$WORK/libthrows.so" || exit 1
failed=0
for lib in "$OUT/libgort.a" "-L$OUT -lgort -Wl,-rpath,$PWD/$OUT"; do
    ${CXX:-g++} -O1 $san -fplt -Wl,-z,lazy -Iinclude "$WORK/catches.cc" -L"$WORK" -lthrows \
        -Wl,-rpath,"$WORK" $lib -lpthread \
        -o "$WORK/catches" || exit 1
    GORT_MAXPROCS=3 LD_BIND_NOT=1 "$WORK/catches" || { echo "with $lib: exit status $?"; failed=1; }
done
exit $failed
