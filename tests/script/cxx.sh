# Exceptions belong to the goroutine that throws or handles them, whatever it waits for in a catch
# block or in a destructor on the way to one, and on which thread it goes on.
set -u
command -v "${CXX:-g++}" >/dev/null || { echo "skipped: no ${CXX:-g++}"; exit 77; }
cat >"$WORK/catch.cc" <<'CC'
#include <gort.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

static gort_chan *token;
static int done, wrong;
#define MUST(x) (!(x) ? failed(__LINE__, #x) : (void)0)
static void failed(int line, const char *what) {
    __atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
    fprintf(stderr, "%d: %s\n", line, what);
}

static void wait_somehow(int i) {
    switch (i % 4) {
    case 0: gort_yield(); break;
    case 1: gort_sleep(50 * GORT_US); break;
    case 2: { int t; gort_chan_recv(token, &t); gort_chan_send(token, &t); break; }
    case 3: break;
    }
}
struct Waits { /* in its destructor, while an exception is under way */
    int i;
    ~Waits() {
        MUST(std::uncaught_exceptions() == 1);
        wait_somehow(i);
        MUST(std::uncaught_exceptions() == 1);
    }
};
static void throws(int i) {
    Waits w{i};
    throw std::runtime_error(std::to_string(i));
}
static void worker(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int k = 0; k < 40; k++) {
        int i = me * 1000 + k;
        MUST(std::uncaught_exceptions() == 0 && !std::current_exception());
        try {
            try {
                throws(i);
            } catch (std::exception &e) {
                wait_somehow(i + 1);
                MUST(e.what() == std::to_string(i));
                try {
                    throw i;
                } catch (int &n) {
                    wait_somehow(i + 2);
                    MUST(n == i);
                }
                wait_somehow(i + 3);
                throw; /* the first one again */
            }
        } catch (std::exception &e) {
            wait_somehow(i);
            MUST(e.what() == std::to_string(i));
        }
    }
    if (me % 2) {
        try {
            throw me;
        } catch (...) {
            __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
            gort_exit(); /* leaves nothing to whoever is next here */
        }
    }
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
}
int main(int argc, char **argv) {
    return gort_main([](int, char **) {
        int t = 1;
        token = gort_chan_new(sizeof t, 3);
        gort_chan_send(token, &t);
        gort_chan_send(token, &t);
        for (int i = 0; i < 100; i++) gort_go(worker, (void *)(intptr_t)i);
        while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 100) gort_sleep(GORT_MS);
        return (int)(wrong != 0);
    }, argc, argv);
}
CC
san=; [ -z "${SAN:-}" ] || san=-fsanitize=$SAN
# shellcheck disable=SC2086
"${CXX:-g++}" -O1 -std=c++17 $san -Iinclude "$WORK/catch.cc" "$OUT/libgort.a" -lpthread \
    -o "$WORK/catch" || exit 1
# an exception whose catch block gort_exit has left is nobody's
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
for procs in 1 2 16; do
    GORT_MAXPROCS=$procs timeout 100 "$WORK/catch" || { echo "fails at $procs Ps"; exit 1; }
done
