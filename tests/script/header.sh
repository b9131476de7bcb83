# gort.h is clean in every standard a program may use, with every warning on, alone and first.
set -eu
cat >"$WORK/c.c" <<'END'
#include "gort.h"
#include "gort.h"
GORT_CHAN_TYPE(ints, int)
int use(ints *c);
int use(ints *c) {
    gort_stats s;
    void (*read)(gort_stats *) = gort_stats_read;
    read(&s);
    return gort_select_of(gort_on_recv(ints_chan(c), 0)) + errno;
}
#if GORT_VERSION_NUM < 100
#error "GORT_VERSION_NUM"
#endif
END
cat >"$WORK/cxx.cc" <<'END'
#include "gort.h"
#include <string>
GORT_CHAN_TYPE(ints, int)
int use(ints *c);
int use(ints *c) {
    gort_stats s;
    gort_stats_read(&s);
    gort_case cases[1] = {{GORT_RECV, ints_chan(c), nullptr, 0}};
    return gort_select(cases, 1) + ints_send(c, 1) + errno + gort_version();
}
END
strict='-Wall -Wextra -Werror -Wshadow -pedantic -Iinclude -fsyntax-only'
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
