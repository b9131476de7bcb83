#!/bin/sh
# tools/gort-gdb.py, live and on a core file, with 1,001 parked goroutines: loaded by gdb itself,
# since the program names it, and by hand; commands in a goroutine's frames. And a USDT probe, at
# which gdb stops and reads the arguments.
set -eu
out=${OUT:-build}
command -v gdb >/dev/null || { echo "no gdb"; exit 77; }
[ -z "${SAN:-}" ] || { echo "not under a sanitizer"; exit 77; }
[ "${ARCH:-$(uname -m)}" = x86_64 ] || { echo "x86-64 only"; exit 77; }
gdb -batch -nx -ex 'python print(6 * 7)' 2>/dev/null | grep -q 42 ||
    { echo "gdb without python"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$dir/prog.c" <<'END'
#include <gort.h>
#include <stdlib.h>
struct G { int mine; } one_g; /* names that the library has, too */
struct M { char mine; } one_m;
struct Stack { double mine; } one_stack;
int sched, gs;
static gort_chan *never;
static int waiting;
__attribute__((noinline)) static int inner(int n) {
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    return gort_chan_recv(never, NULL) + n;
}
static void parked(void *arg) {
    int own = 7;
    __asm__ volatile("" : "+r"(own));
    inner(3);
    __asm__ volatile("" : : "r"(own));
}
static int program(int argc, char **argv) {
    gort_attr attr = {.name = "the one"};
    gort_stats s;
    never = gort_chan_new(0, 0);
    for (int i = 0; i < 1000; i++) gort_go(parked, NULL);
    gort_go_with(&attr, parked, NULL);
    do {
        gort_sleep(GORT_MS);
        gort_stats_read(&s);
    } while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < 1001 || s.idle_procs < s.maxprocs - 1);
    abort();
}
int main(int argc, char **argv) { return gort_main(program, argc, argv); }
END
${CC:-cc} -g -O2 -Iinclude "$dir/prog.c" "$out/libgort.a" -lpthread -o "$dir/prog"
script=$PWD/tools/gort-gdb.py

check() {
    grep -q '^1 of 1002 goroutines$' "$1" || { cat "$1"; fail "$2: not 1 of 1002 goroutines"; }
    grep -q '^1002 .*chan receive  *parked "the one"$' "$1" ||
        { head -30 "$1"; fail "$2: no goroutine with a name"; }
    [ "$(grep -c '^goroutine [0-9]* \[chan receive\]' "$1")" = 1001 ] || fail "$2: not 1001 blocks"
    [ "$(grep -c '^#.* in inner ()' "$1")" -ge 1001 ] || fail "$2: not 1001 frames of inner"
    [ "$(grep -c '^#.* in parked ()' "$1")" -ge 1001 ] || fail "$2: not 1001 frames of parked"
    grep -q '^#.* in program ()' "$1" || fail "$2: no frame of program"
}

# Commands in the frames of the goroutine "the one", which is parked, and of the one that aborted.
check_commands() {
    grep -q '^own = 7$' "$1" || { cat "$1"; fail "$2: no locals of parked"; }
    grep -q '^\$1 = 42$' "$1" || { cat "$1"; fail "$2: print does not see inner's n"; }
    grep -q '^#.* in inner () at .*prog\.c' "$1" || fail "$2: not in the frame that called gort"
    grep -q "^attr = {name = " "$1" || { cat "$1"; fail "$2: no locals of program"; }
    grep -q '^goroutine 1002 has [0-9]* frames$' "$1" || fail "$2: frame 99 is there"
    grep -q '^no goroutine 5000$' "$1" || fail "$2: goroutine 5000 is there"
    grep -q '^usage: goroutine N bt' "$1" || fail "$2: no usage"
    # all that was selected is as it was
    [ "$(grep -c '^#0 .*kill' "$1")" -ge 2 ] || { cat "$1"; fail "$2: another thread is selected"; }
}
the_frame() { # of a function, as `goroutine N bt` counts them in this file
    sed -n "/^goroutine $2 /,/^\$/s/^#\([0-9]*\) .* in $1 ().*/\1/p" "$3" | head -1
}

export GORT_MAXPROCS=2
timeout 100 gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set startup-with-shell off' \
    -iex "set auto-load safe-path ${script%/*}" -ex run \
    -ex 'info goroutines the one' -ex 'goroutine all bt' "$dir/prog" >"$dir/live" 2>&1 \
    </dev/null || true
if grep -q 'SIGABRT' "$dir/live"; then check "$dir/live" live; else
    echo "gdb cannot run programs here: $(tail -1 "$dir/live")"; exit 77
fi
commands() { # the file with all backtraces, gdb's arguments
    frames=$1
    shift
    timeout 100 gdb -batch -nx -ex 'set debuginfod enabled off' \
        -ex 'set startup-with-shell off' "$@" -ex 'bt 1' -ex 'goroutine 1002 print n * 14' \
        -ex "goroutine 1002 frame $(the_frame parked 1002 "$frames") info locals" \
        -ex "goroutine 1 frame $(the_frame program 1 "$frames") info locals" \
        -ex 'goroutine 1002 frame 99' -ex 'goroutine 5000 bt' -ex 'goroutine 5' -ex 'bt 1' \
        >"$dir/commands" 2>&1 </dev/null || true
}
commands "$dir/live" -iex "set auto-load safe-path ${script%/*}" -ex run "$dir/prog"
check_commands "$dir/commands" live

# In C++ a command finds the program's frame behind those of gort.hpp and of the library's guards.
if command -v "${CXX:-g++}" >/dev/null; then
    cat >"$dir/cxx.cc" <<'END'
#include <gort.hpp>
static gort::mutex held;
static std::atomic<int> waiting;
static void locks(int own) {
    waiting++;
    std::lock_guard guard(held);
    waiting -= own;
}
int main() {
    return gort::main([] {
        held.lock();
        gort::go(locks, 4711);
        gort_stats s;
        do {
            gort::sleep_for(std::chrono::milliseconds(1));
            gort_stats_read(&s);
        } while (waiting == 0 || s.idle_procs < s.maxprocs - 1);
        abort();
    });
}
END
    "${CXX:-g++}" -g -O1 -std=c++17 -Iinclude "$dir/cxx.cc" "$out/libgort.a" -lpthread \
        -o "$dir/cxx"
    timeout 100 gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set startup-with-shell off' \
        -iex "set auto-load safe-path ${script%/*}" -ex run -ex 'goroutine 2 print own' \
        "$dir/cxx" >"$dir/cxx-said" 2>&1 </dev/null || true
    grep -q '^\$1 = 4711$' "$dir/cxx-said" &&
        grep -q '^#.* in locks () at .*cxx\.cc' "$dir/cxx-said" ||
        { cat "$dir/cxx-said"; fail "C++: not in the frame of the program"; }
fi

# Where the safe path does not allow it, gdb says what to add, and the script is loaded by hand.
timeout 100 gdb -batch -nx -ex 'info goroutines' "$dir/prog" >"$dir/declined" 2>&1 </dev/null ||
    true
grep -q "add-auto-load-safe-path $script" "$dir/declined" ||
    { cat "$dir/declined"; fail "gdb does not tell what to add"; }

timeout 100 gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set startup-with-shell off' \
    -ex 'handle SIGURG nostop noprint' \
    -ex 'break -probe-stap gort:create' -ex run -ex 'printf "argument %d\n", (int)$_probe_arg0' \
    -ex 'continue' \
    -ex 'printf "argument %d\n", (int)$_probe_arg0' "$dir/prog" >"$dir/probe" 2>&1 </dev/null ||
    true
grep -q '^argument 1$' "$dir/probe" && grep -q '^argument 2$' "$dir/probe" ||
    { cat "$dir/probe"; fail "gdb does not see a probe's arguments"; }

# A core file, where the kernel leaves one in the directory of the program.
case "$(cat /proc/sys/kernel/core_pattern)" in
    core | core.%p) ;;
    *) echo "no core files here: not tested"; exit 0 ;;
esac
(cd "$dir" && ulimit -c unlimited && ./prog >/dev/null 2>&1) 2>/dev/null || true
core=$(find "$dir" -name 'core*' | head -1)
[ -n "$core" ] || { echo "no core file was written: not tested"; exit 0; }
timeout 100 gdb -batch -nx -ex 'set debuginfod enabled off' -ex "source $script" \
    -ex 'info goroutines the one' \
    -ex 'goroutine all bt' "$dir/prog" "$core" >"$dir/dead" 2>&1 </dev/null || true
check "$dir/dead" core
commands "$dir/dead" -ex "source $script" "$dir/prog" "$core"
check_commands "$dir/commands" core
