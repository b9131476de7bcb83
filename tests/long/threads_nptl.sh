#!/bin/bash
# glibc's own tests of its threads, unmodified, under gort-run: the installed libc is asked by its
# authors' tests whether goroutines are threads.
#
# The source is Debian's package glibc-source (tests/deps glibc), or GLIBC=dir, an unpacked one of
# the installed version. Of it only tests are compiled: nptl/tst-*.c, sysdeps/pthread/tst-*.c and
# what they are linked with (support/), against the installed headers. Some look into glibc and do
# not compile so. A test runs natively first: one that does not pass here in 20 s is left out, as
# are static programs and 64-bit time on 32 bits. Then it runs under gort-run.
#
# tests/long/nptl.txt says which are expected not to pass, and why; a test that passes against it
# is told like one that fails against it. A line "-NAME: why" leaves one out.
#
#   PROCS='1 2 16'   numbers of Ps; a test passes if it does with all of them
#   ONLY='tst-key*'  only tests with such names, and nothing is said of the others
#   NPTL=dir         what is built stays there, and is used again
set -u
[ -z "${SAN:-}" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ "${ARCH:-$(uname -m)}" = x86_64 ] || { echo 'skipped: threads stay threads here'; exit 77; }
. tests/lib/deps.sh
OUT=$(realpath "${OUT:-build}")
work=${WORK:-$(mktemp -d)} HERE=$PWD
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
NPTL=${NPTL:-$work/nptl} CC=${CC:-cc} CXX=${CXX:-c++}
NATIVE_LIMIT=20 LIMIT=${NPTL_LIMIT:-40}
expected=tests/long/nptl.txt
mkdir -p "$NPTL"/{bin,obj,include}
export OUT NPTL CC CXX HERE NATIVE_LIMIT LIMIT GLIBC

# ---- the source --------------------------------------------------------------------------------

find_source() {
    local version
    [ -z "${GLIBC:-}" ] || return 0
    tests/deps glibc
    lack glibc >"$work/why" && { echo "skipped: $(cat "$work/why")"; exit 77; }
    mkdir -p "$work/source"
    tar -x -C "$work/source" -f "$(glibc_source)"
    GLIBC=$(echo "$work"/source/glibc-*)
    version=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
    case $GLIBC in *-"$version") ;; *) echo "skipped: not glibc $version's source"; exit 77 ;; esac
}

# ---- building ----------------------------------------------------------------------------------

# Beside the headers of support/: what tests include from elsewhere in the source and does not need
# the rest of it; and in place of glibc's inner headers, what tests want of them. config.h is empty:
# nothing was configured.
prepare_headers() {
    local h
    for h in support posix elf malloc sysdeps include/{array_length,libc-diag,intprops}.h \
        sysdeps/x86_64/{stackinfo,stackguard-macros}.h sysdeps/x86/tst-stack-align.h \
        nptl/tst-tls5.h test-skeleton.c; do
        ln -sfn "$GLIBC/$h" "$NPTL/include/${h##*/}"
    done
    : >"$NPTL/include/config.h"
    : >"$NPTL/include/tls.h"
    echo 'extern void *__dso_handle;' >"$NPTL/include/dso_handle.h"
    echo '#define TEST_COMPAT(library, from, to) 0' >"$NPTL/include/shlib-compat.h"
    cat >"$NPTL/include/pthreadP.h" <<'END'
#include <pthread.h>
#include <signal.h>
#define SIGCANCEL 32
#define SIGSETXID 33
#define TCB_ALIGNMENT 64
#define atomic_load_relaxed(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define atomic_store_relaxed(at, v) __atomic_store_n(at, v, __ATOMIC_RELAXED)
END
    echo '#define allocate_once(at, make, free, arg) (*(at) ? *(at) : (*(at) = (make)(arg)))' \
        >"$NPTL/include/allocate_once.h"
    for h in atomic internal-signals pthreaddef descr; do
        ln -sfn pthreadP.h "$NPTL/include/$h.h"
    done
}
makefiles() { cat "$GLIBC/nptl/Makefile" "$GLIBC/sysdeps/pthread/Makefile"; }
value_of() { makefiles | sed -n "s/^$1 *[+:]\{0,1\}= *//p" | grep -v '\$('; } # a makefile's line

compile() { # source object
    local name=${1##*/} compiler=$CC std=gnu11
    case $1 in *.cc) compiler=$CXX std=gnu++17 ;; esac
    # shellcheck disable=SC2046
    $compiler -std=$std -O2 -w -D_GNU_SOURCE -DMODULE_NAME=testsuite -Dattribute_hidden= \
        '-Dlibc_hidden_proto(x)=' -I"$NPTL/include" -I"$GLIBC/support" \
        -iquote "$GLIBC/nptl" -iquote "$GLIBC/sysdeps/pthread" \
        -iquote "$GLIBC/sysdeps/unix/sysv/linux" -idirafter "$GLIBC/sysdeps/generic" \
        $(value_of "CFLAGS-${name%.*}\.[co]") -c "$1" -o "$2" ${3:-} 2>"$2.why"
}
build_support() { # source
    local name=${1##*/}
    compile "$1" "$NPTL/obj/support-${name%.c}.o" "$(support_flags)"
}
support_flags() {
    local dir
    echo '-include limits.h -DTIMEOUTFACTOR=1'
    for dir in SRCDIR OBJDIR OBJDIR_ELF_LDSO INSTDIR LIBDIR BINDIR SBINDIR SLIBDIR ROOTSBINDIR \
        COMPLOCALEDIR; do
        echo "-D${dir}_PATH=\"/nonexistent\""
    done
}
build_module() { # source
    local name=${1##*/} to=$NPTL/obj/${1##*/}.o
    name=${name%.*}
    compile "$1" "$to" -fPIC && $CC -shared "$to" -o "$NPTL/bin/$name.so" -Wl,-soname,"$name.so"
}
needs_of() { # test: modules that it is linked with
    makefiles | sed -n "s/^\$(objpfx)$1: *//p" | grep -o 'tst-[^ ]*\.so' | sort -u |
        sed "s|^|$NPTL/bin/|"
}
build_test() { # source
    local name=${1##*/} to=$NPTL/obj/${1##*/}.o
    name=${name%.*}
    # shellcheck disable=SC2046
    compile "$1" "$to" && $CC "$to" -o "$NPTL/bin/$name" $(needs_of "$name") \
        "$NPTL/libsupport.a" $(value_of "LDFLAGS-$name") $(value_of "LDLIBS-$name") -lm \
        2>"$to.why" && rm -f "$to.why"
}
sources() {
    ls "$GLIBC"/nptl/tst-*.{c,cc} "$GLIBC"/sysdeps/pthread/tst-*.c |
        grep -vE '(aux|-common|-self-cleanup)\.c$|-(static|time64)\.cc?$'
}
is_module='mod[0-9a-f]?\.c$'
each() { xargs -P 2 -I{} bash -c "$1 {}"; }

build() {
    prepare_headers
    if [ ! -e "$NPTL/libsupport.a" ]; then
        ls "$GLIBC"/support/*.c | grep -vE '/(tst-|test-|.*-container|links-dso|README)' |
            each build_support
        ar rcs "$NPTL/libsupport.a" "$NPTL"/obj/support-*.o
    fi
    sources | grep -E "$is_module" | each build_module
    sources | grep -vE "$is_module" | wanted | each build_test
}
wanted() {
    local f name
    while read -r f; do
        name=${f##*/} name=${name%.*}
        # shellcheck disable=SC2254
        case $name in ${ONLY:-*}) [ -x "$NPTL/bin/$name" ] || echo "$f" ;; esac
    done
}

# ---- running -----------------------------------------------------------------------------------

args_of() { # test
    case $1 in
        tst-cancel7 | tst-cancelx7) echo "--command|exec $NPTL/bin/$1" ;;
        tst-stackguard1) echo "--command|$NPTL/bin/$1 --child" ;;
        tst-exec4) echo "$NPTL/bin/$1" ;;
        tst-umask1) echo umask1.temp ;;
    esac
}
env_of() { # test
    case $1 in
        tst-mutex10) echo GLIBC_TUNABLES=glibc.elision.enable=1 ;;
        tst-audit-threads) echo "LD_AUDIT=$NPTL/bin/tst-audit-threads-mod1.so" ;;
    esac
}
signal_number() { # what strsignal says
    case $1 in
        Aborted) echo 134 ;; Killed) echo 137 ;; 'Segmentation fault') echo 139 ;;
        Terminated) echo 143 ;; 'User defined signal 1') echo 138 ;; *) echo "$1" ;;
    esac
}
judge() { # status file-of-TEST_DIRECT file-of-output: a result
    local want=0 said
    [ ! -e "$2" ] || want=$(sed -n 's/^exit=//p' "$2")
    [ ! -e "$2" ] || said=$(sed -n 's/^signal=//p' "$2")
    [ -z "${said:-}" ] || want=$(signal_number "$said")
    said=$(grep -av '^$' "$3" | tail -n 1 | tr -d '\0' | cut -c1-150)
    case $1 in
        "${want:-0}") echo pass ;;
        77) echo "unsupported: $said" ;;
        124) echo 'took too long' ;;
        *) echo "exit status $1: $said" ;;
    esac
}
# The test's driver would run it in a forked child; with TEST_DIRECT it says what it expects, and
# runs it in the process itself. Whatever is left of its process group ends with it.
run() { # test limit file-of-result command...
    local name=$1 limit=$2 to=$3 dir pid st begun=$SECONDS
    shift 3
    dir=$(mktemp -d)
    (
        cd "$dir" && : >Makefile || exit # tests open it
        IFS='|' read -ra args < <(args_of "$name")
        exec timeout -s QUIT -k 3 "$limit" env --default-signal=INT,QUIT TMPDIR="$dir" \
            TEST_DIRECT="$dir/direct" LD_LIBRARY_PATH="$NPTL/bin" $(env_of "$name") \
            "$@" "$NPTL/bin/$name" ${args[@]+"${args[@]}"} </dev/null >"$to.out" 2>&1
    ) &
    pid=$!
    wait $pid 2>/dev/null
    st=$?
    kill -KILL -- -$pid 2>/dev/null
    [ $st != 137 ] || [ $((SECONDS - begun)) -lt "$limit" ] || st=124
    judge $st "$dir/direct" "$to.out" >"$to"
    rm -rf "$dir"
}
native() { run "$1" "$NATIVE_LIMIT" "$NPTL/obj/$1.native" env; } # test
threads() { # test procs
    run "$1" "$LIMIT" "$NPTL/obj/$1.threads$2" \
        env GORT_MAXPROCS="$2" GORT_THREADS=1 LD_PRELOAD="$OUT/libgort-hook.so"
}
export -f build_support build_module build_test compile support_flags value_of makefiles needs_of \
    run native threads judge args_of env_of signal_number

# ---- the table ---------------------------------------------------------------------------------

expectation_of() { sed -n "s/^$1: *//p" "$expected"; } # test, or -test
left_out() { grep -q "^-$1:" "$expected"; }
names() { # all that were to be had
    sources | grep -vE "$is_module" | while read -r f; do
        f=${f##*/} f=${f%.*}
        # shellcheck disable=SC2254
        case $f in ${ONLY:-*}) echo "$f" ;; esac
    done | sort -u
}
row() { printf '%-34s %s\n' "$1" "$2"; }
result_of() { # test: of all its runs
    local p r
    for p in $PROCS; do
        r=$(cat "$NPTL/obj/$1.threads$p")
        [ "$r" = pass ] || { echo "GORT_MAXPROCS=$p: $r"; return; }
    done
    echo pass
}

ulimit -c 0
PROCS=${PROCS:-2}
find_source
build
names | while read -r n; do
    if left_out "$n"; then row "$n" "left out: $(expectation_of "-$n")"
    elif [ ! -x "$NPTL/bin/$n" ]; then
        row "$n" "does not compile: $(grep -ahm 1 -E 'error|undefined' "$NPTL/obj/$n".c*.why)"
    else echo "$n" >&3
    fi
done >"$work/out" 3>"$work/built"
each native <"$work/built"
while read -r n; do
    r=$(cat "$NPTL/obj/$n.native")
    if [ "$r" = pass ]; then echo "$n" >&3; else row "$n" "left out, natively: $r"; fi
done <"$work/built" >>"$work/out" 3>"$work/holds"
for p in $PROCS; do sed "s/\$/ $p/" "$work/holds"; done | each threads
status=0 passed=0 failed=0
while read -r n; do
    r=$(result_of "$n") e=$(expectation_of "$n")
    if [ "$r" = pass ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    case $r,$e in
        pass,) row "$n" 'passed' ;;
        pass,*) row "$n" "PASSED, although: $e" >&4 ;;
        *,) row "$n" "FAILED: $r" >&4 ;;
        *) row "$n" "failed, as expected: $e ($r)" ;;
    esac
done <"$work/holds" >>"$work/out" 4>"$work/wrong"
cat "$work/out" "$work/wrong"
[ ! -s "$work/wrong" ] || status=1
echo "$(wc -l <"$work/built") compiled, $(wc -l <"$work/holds") pass natively," \
    "$passed under gort-run, $failed do not; $(wc -l <"$work/wrong") not as expected"
exit $status
