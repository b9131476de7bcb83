# gort.h is clean in every standard a program may use, with every warning on, alone and first; so is
# gort.hpp, with and without exceptions.
set -eu
cat >"$WORK/c.c" <<'END'
#include "gort.h"
#include "gort.h"
GORT_CHAN_TYPE(ints, int)
GORT_CHAN_TYPE(names, const char *)
GORT_CHAN_TYPE(buffers, char *)
gort_case name_case(names *c, const char **v);
gort_case name_case(names *c, const char **v) { return names_on_send(c, v); }
gort_case buffer_case(buffers *c, char **v);
gort_case buffer_case(buffers *c, char **v) { return buffers_on_send(c, v); }
int use(ints *c);
int use(ints *c) {
    int v = 0, r = 0;
    gort_stats s;
    void (*read)(gort_stats *) = gort_stats_read;
    read(&s);
    return gort_select_of(gort_on_recv(ints_chan(c), 0), ints_on_send(c, &v)) + errno +
           gort_try_select_of(ints_on_recv(c, &v)) +
           gort_select_until_of(gort_now(), ints_on_recv(c, &v)) +
           gort_select_result_of(&r, ints_on_recv(c, &v)) +
           gort_try_select_result_of(&r, ints_on_recv(c, 0)) +
           gort_select_until_result_of(GORT_FOREVER, &r, ints_on_recv(c, &v), ints_on_send(c, &v));
}
#if GORT_VERSION_NUM < 200
#error "GORT_VERSION_NUM"
#endif
END
cat >"$WORK/cxx.cc" <<'END'
#include "gort.h"
#include <string>
GORT_CHAN_TYPE(ints, int)
GORT_CHAN_TYPE(names, const char *)
gort_case name_case(names *c, const char **v);
gort_case name_case(names *c, const char **v) { return names_on_send(c, v); }
int use(ints *c);
int use(ints *c) {
    const int v = 1;
    gort_stats s;
    gort_stats_read(&s);
    gort_case cases[3] = {{GORT_RECV, ints_chan(c), nullptr, 0}, ints_on_recv(c, nullptr),
                          ints_on_send(c, &v)};
    return gort_select(cases, 3) + ints_send(c, 1) + errno + gort_version();
}
END
cat >"$WORK/hpp.cc" <<'END'
#include "gort.hpp"
#include "gort.hpp"
#include <shared_mutex>
#include <vector>
using namespace std::chrono_literals;
struct thing {
    std::string name;
    int n = 0;
};
int use(gort::chan<thing> things, gort::chan<std::unique_ptr<thing>> owned, gort::chan<void> sig);
int use(gort::chan<thing> things, gort::chan<std::unique_ptr<thing>> owned, gort::chan<void> sig) {
    gort::context root, ctx = root.with_timeout(1s);
    gort::wait_group wg;
    gort::group members(ctx, 3);
    gort::mutex m;
    gort::shared_mutex rw;
    gort::condition_variable cond;
    gort::semaphore permits(2);
    gort::once first;
    gort::go([things](int n) { things.send(thing{"x", n}); }, 3);
    gort::go([] {});
    gort::go_with({"name"}, [p = std::make_unique<int>(1)] { return *p; });
    wg.go([&] { first.call([&] { permits.release(); }); });
    members.go([](gort::context_ref c) { return c.err(); });
    members.go([] { return 0; });
    std::scoped_lock both(m, rw);
    std::unique_lock<gort::mutex> lock(m, std::defer_lock);
    cond.wait_for(lock, 1ms, [] { return true; });
    for (thing &t : things) static_cast<void>(t.n);
    thing t;
    int ran = gort::select(gort::on_recv(owned, [](std::optional<std::unique_ptr<thing>>) {}),
                           gort::on_send(things, std::move(t), [](gort::error) {}),
                           gort::on_send(sig), gort::on_recv(sig, [](bool) {}),
                           gort::on_done(ctx, [] {}), gort::within(1ms, [] {}));
    return ran + gort::blocking([] { return 1; }) + members.wait().value() +
           (owned.try_send(nullptr) == std::errc::broken_pipe);
}
END
strict='-Wall -Wextra -Werror -Wshadow -Wcast-qual -pedantic -Iinclude -fsyntax-only'
checked=0
for std in c11 c17 gnu11 gnu17 c2x; do
    echo 'int x;' >"$WORK/x.c"
    "$CC" -std=$std -fsyntax-only "$WORK/x.c" 2>/dev/null || continue
    echo "$CC -std=$std"
    "$CC" -std=$std -Wstrict-prototypes -Wmissing-prototypes $strict "$WORK/c.c"
    checked=$((checked + 1))
done
[ $checked -ge 2 ]
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "no $cxx: its check is left out"; continue; }
    for std in c++11 c++17 c++20; do
        echo "$cxx -std=$std"
        $cxx -std=$std $strict "$WORK/cxx.cc"
    done
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    for std in c++17 c++20 'c++17 -fno-exceptions'; do
        echo "$cxx -std=$std, gort.hpp"
        # shellcheck disable=SC2086
        $cxx -std=$std $strict -Wconversion -Wsign-conversion -fno-rtti "$WORK/hpp.cc"
    done
done
# A case of another type than its channel does not compile, and the message names its line.
mistyped() { # compiler, suffix, code of line 7
    printf '%s\n' '#include "gort.h"' 'GORT_CHAN_TYPE(ints, int)' 'GORT_CHAN_TYPE(longs, long)' \
        'int use(ints *a, longs *b, int *i, long *l);' \
        'int use(ints *a, longs *b, int *i, long *l) {' \
        'gort_case cases[] = { ints_on_recv(a, i),' "$3" '};' \
        'return longs_recv(b, l) + gort_select(cases, 2); }' >"$WORK/mistyped.$2"
    if "$1" -Iinclude -fsyntax-only "$WORK/mistyped.$2" 2>"$WORK/said"; then
        echo "$1 compiles: $3"
        return 1
    fi
    grep -q "mistyped.$2:7:.*error" "$WORK/said" || { cat "$WORK/said"; return 1; }
}
for compiler in "$CC c" 'clang c' 'g++ cc' 'clang++ cc'; do
    # shellcheck disable=SC2086
    set -- $compiler
    command -v "$1" >/dev/null || continue
    for wrong in 'ints_on_recv(a, l)' 'ints_on_recv(b, i)' 'ints_on_send(a, l)' \
        'longs_on_send(a, l)'; do
        mistyped "$1" "$2" "$wrong"
    done
    # The same with the right types.
    if mistyped "$1" "$2" 'longs_on_send(b, l)' >/dev/null; then exit 1; fi
    "$1" -Iinclude -fsyntax-only "$WORK/mistyped.$2"
done
# The papers are of the header's version.
version=$(sed -n 's/^#define GORT_VERSION "\(.*\)"/\1/p' include/gort.h)
for place in "CHANGELOG.md ## $version" "README.md **Status:** $version" \
    "debian/changelog gort ($version)"; do
    grep -qF "${place#* }" "${place%% *}" ||
        { echo "${place%% *} does not say: ${place#* }"; exit 1; }
done
# A program without a GORT_NOPREEMPT function: neither end of that section is there.
if [ -z "$SAN" ] && [ -z "${TEST_RUNNER:-}" ]; then
    echo '#include "gort.h"
int main(void) { return 0; }' >"$WORK/ub.c"
    if clang -fsanitize=undefined -fno-sanitize-recover=all -Iinclude "$WORK/ub.c" \
        "$OUT/libgort.a" -lpthread -o "$WORK/ub" 2>/dev/null; then "$WORK/ub"; fi
fi
