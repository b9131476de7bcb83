# An exception out of a function that libc called (qsort, pthread_once) passes the place where the
# goroutine was to stop behind libc (src/sched/inlibc.c, trap.S), beside a world that stops and at
# the end of a runtime; and a backtrace from there is whole.
set -u
command -v "${CXX:-g++}" >/dev/null || { echo "skipped: no ${CXX:-g++}"; exit 77; }
[ "${SAN:-}" != thread ] || { echo 'skipped: nobody is trapped there'; exit 77; }
cat >"$WORK/throws.cc" <<'CC'
#include <cstdio>
#include <cstdlib>
#include <gort.h>
#include <mutex>
#include <unwind.h>
static int running, quit, caught[2];
static int get(int *p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
static void add(int *p) { __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST); }
static void spin() { for (volatile int i = 0; i < 200000; i = i + 1) continue; }
static void thrower(void *);

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *found) {
    if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(c)) != (void *)thrower)
        return _URC_NO_REASON;
    *(bool *)found = true;
    return _URC_END_OF_STACK;
}
static void whole_backtrace() {
    bool found = false;
    _Unwind_Backtrace(frame, &found);
    if (!found) fprintf(stderr, "a backtrace ends inside libc\n"), _Exit(1);
}
struct Cleanup { /* a landing pad between the one who throws and libc */
    int *n;
    ~Cleanup() { __atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST); }
};
static int cleaned;
static void throws() {
    Cleanup c{&cleaned};
    add(&running);
    spin();
    whole_backtrace();
    throw 42;
}
static int compares(const void *, const void *) { throws(); return 0; }
static void out_of_qsort() {
    int a[4] = {4, 3, 2, 1};
    qsort(a, 4, sizeof a[0], compares);
}
static void out_of_once() {
    std::once_flag f;
    std::call_once(f, throws);
}
static void thrower(void *arg) {
    int which = arg != nullptr;
    while (!get(&quit)) {
        try {
            if (which) out_of_qsort();
            else out_of_once();
        } catch (int e) {
            if (e == 42) add(&caught[which]);
        }
        for (int i = 0; i < 3; i++) spin(); /* outside: it can be stopped */
    }
    add(&quit);
}
static void start() {
    gort_go(thrower, nullptr);
    gort_go(thrower, &quit);
    for (int n = get(&running); get(&running) < n + 2;) gort_sleep(100 * GORT_US);
}
static int beside_world(int, char **) {
    start();
    for (int i = 0; i < 15; i++) {
        gort_stop_world();
        gort_start_world();
        gort_sleep(100 * GORT_US);
    }
    while (get(&caught[0]) < 5 || get(&caught[1]) < 5) gort_sleep(GORT_MS);
    add(&quit);
    while (get(&quit) < 3) gort_sleep(GORT_MS);
    return get(&cleaned) != get(&caught[0]) + get(&caught[1]);
}
static int at_end(int, char **) {
    start();
    return 0;
}
int main(int argc, char **argv) {
    if (gort_main(beside_world, argc, argv) != 0) return 1;
    quit = 0;
    for (int i = 0; i < 5; i++)
        if (gort_main(at_end, argc, argv) != 0) return 1;
    return 0;
}
CC
san=${SAN:+-fsanitize=$SAN} failed=0
for lib in "$OUT/libgort.a" "-L$OUT -lgort -Wl,-rpath,$PWD/$OUT"; do
    ${CXX:-g++} -O1 $san -Iinclude "$WORK/throws.cc" $lib -lpthread -o "$WORK/throws" || exit 1
    for procs in 1 3; do
        GORT_MAXPROCS=$procs "$WORK/throws" ||
            { echo "with $lib, $procs Ps: exit status $?"; failed=1; }
    done
done
exit $failed
