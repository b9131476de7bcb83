#!/bin/sh
# What a crash says (src/debug/crash.c): each signal, on a goroutine, a plain thread and the
# scheduler's stack; with a handler of the program's; two at once; in a child; linked in every way.
# The program ends by the signal. A crash on the scheduler's stack is made by a program that is
# linked with the library's own names.
set -u
[ -z "${SAN:-}" ] || { echo 'skipped: sanitizers have reports of their own'; exit 77; }
ulimit -c 0
cat >"$WORK/prog.c" <<'C'
#define _GNU_SOURCE
#include <gort.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *what, *where, *handler;
static volatile int zero, sink;
static char *page;
static sigjmp_buf back;
static int mapped_beyond(void) {
    int fd = memfd_create("short", 0);
    char *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    return at[100];
}
__attribute__((noinline)) static void crash(void) {
    if (!strcmp(what, "null")) *(volatile int *)(8 + (uintptr_t)zero) = 1;
    if (!strcmp(what, "page")) *(volatile char *)page = 1;
    if (!strcmp(what, "call")) ((void (*)(void))(uintptr_t)zero)();
    if (!strcmp(what, "far")) sink = *(volatile int *)((uintptr_t)zero + (UINT64_MAX / 3));
#ifdef __x86_64__
    if (!strcmp(what, "farstack"))
        __asm__ volatile("push %%rbp; mov %0, %%rbp; mov (%%rbp), %%rax; pop %%rbp"
                         :: "r"(UINT64_MAX / 3) : "rax", "memory");
#endif
    if (!strcmp(what, "bus")) sink = mapped_beyond();
    if (!strcmp(what, "ill")) __builtin_trap();
    if (!strcmp(what, "fpe")) sink = 7 / zero;
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "sent")) raise(SIGSEGV);
    __asm__ volatile("");
}
static void worker(void *arg) {
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0) crash(); /* LINE */
    puts("went on");
    exit(0);
}
static void *thread(void *arg) { return crash(), arg; }
static int met;
static long meet(void *arg) {
    __atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&met, __ATOMIC_SEQ_CST) < 4) {}
    return 0;
}
static void together(void *arg) {
    gort_blocking(meet, NULL);
    crash();
}
static void *thread_together(void *arg) { return meet(arg), crash(), arg; }
static void in_child(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) crash();
    waitpid(pid, &status, 0);
    _exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : 99);
}
static void on_signal(int signo) {
    if (write(2, "own handler\n", 12) != 12) _exit(8);
    if (!strcmp(handler, "mend")) mprotect(page, 4096, PROT_READ | PROT_WRITE);
    if (!strcmp(handler, "jump")) siglongjmp(back, 1);
    if (!strcmp(handler, "crash")) crash();
    if (!strcmp(handler, "default")) signal(signo, SIG_DFL);
    if (!strcmp(handler, "exit")) _exit(7);
}
#ifdef WHITE
long arch_call_on(void *top, long (*fn)(void *), void *arg);
void *g0(void);
static long on_g0(void *arg) { return crash(), 0; }
#endif
static int app(int argc, char **argv) {
    pthread_t t;
    gort_attr attr = {.name = "the worker"};
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(where, "goroutine")) gort_go_with(&attr, worker, NULL);
    if (!strcmp(where, "child")) in_child();
    if (!strcmp(where, "main")) crash();
    if (!strcmp(where, "thread")) pthread_create(&t, NULL, thread, NULL);
    if (!strcmp(where, "together"))
        for (int i = 0; i < 2; i++) {
            gort_go(together, NULL);
            pthread_create(&t, NULL, thread_together, NULL);
        }
#ifdef WHITE
    if (!strcmp(where, "g0")) arch_call_on(g0(), on_g0, NULL);
#endif
    gort_chan_recv(NULL, NULL);
    return 0;
}
int main(int argc, char **argv) {
    what = argv[1], where = argv[2], handler = argc > 3 ? argv[3] : "";
    struct sigaction sa = {.sa_handler = on_signal};
    for (int s = SIGILL; *handler && s <= SIGSEGV; s++)
        if (s != SIGKILL && (s != SIGABRT || strcmp(what, "abort"))) sigaction(s, &sa, NULL);
    return gort_main(app, argc, argv);
}
C
lib=$(realpath "$OUT")
line=$(sed -n '/LINE/=' "$WORK/prog.c" | head -1)
build() { # name, the rest: how it is linked
    name=$1
    shift
    ${CC:-cc} -O1 -g -w -pthread -Iinclude "$WORK/prog.c" "$@" -o "$WORK/$name"
}
bad=0
fail() { echo "$*"; cat "$WORK/err"; bad=1; }
count() { grep -cE -- "$1" "$WORK/err" || true; }

# dies STATUS PROGRAM WHAT WHERE [HANDLER]: how it ends, and one report, or with 'silent' none
dies() {
    want=$1 prog=$2 name="$2 $3 $4 ${5:-}" code=0
    shift 2
    { (cd "$WORK" && exec timeout -s KILL 60 "./$prog" "$@") >"$WORK/out" 2>"$WORK/err"; } \
        2>/dev/null || code=$?
    [ "$code" = "$want" ] || fail "$name: status $code, not $want"
    [ "$(count '^gort: ')" = 1 ] || fail "$name: not one report"
}
says() { # LINE: a line of the report
    grep -qE -- "$1" "$WORK/err" || fail "$name: nothing like: $1"
}
not() {
    ! grep -qE -- "$1" "$WORK/err" || fail "$name: there is: $1"
}

in='in goroutine 2 "the worker"'
machine=$(${CC:-cc} -dumpmachine)
signals() { # program: each signal, on a goroutine
    dies 139 "$1" null goroutine
    says "^gort: fatal: SIGSEGV $in: nothing is mapped at address 0x8 \(a null pointer\)$"
    says '^goroutine 2 "the worker" \[running, [0-9]+ms\]:$'
    says '^  0x[0-9a-f]{16} crash\+0x[0-9a-f]+ prog\.c:[0-9]+ \('
    says "^  0x[0-9a-f]{16} worker\+0x[0-9a-f]+ prog\.c:$line \("
    says '^  created by app\+0x[0-9a-f]+ prog\.c:[0-9]+ \(.*\) in goroutine 1 with worker$'
    not '^goroutine 1 '
    dies 139 "$1" page goroutine
    says "^gort: fatal: SIGSEGV $in: the memory at address 0x[0-9a-f]+000 does not allow it$"
    dies 139 "$1" call goroutine
    says "^gort: fatal: SIGSEGV $in: a call or jump to address 0x0, where there is no code"
    says '^  0x0{16} \?$'
    says '^  0x[0-9a-f]{16} crash\+'
    says '^  0x[0-9a-f]{16} worker\+'
    dies 135 "$1" bus goroutine
    says "^gort: fatal: SIGBUS $in: address 0x[0-9a-f]+ is mapped, but its file ends before it"
    dies 134 "$1" abort goroutine
    says "^gort: fatal: SIGABRT $in: the program has called abort$"
    says '^  0x[0-9a-f]{16} crash\+'
    dies 139 "$1" sent goroutine
    says "^gort: fatal: SIGSEGV $in: sent by the program$"
}
build static "$lib/libgort.a" || exit 1
signals static
case $machine in x86_64*)
    dies 139 static far goroutine
    says "^gort: fatal: SIGSEGV $in: an address that no memory can have$"
    dies 135 static farstack goroutine
    says "^gort: fatal: SIGBUS $in: an address that no memory can have$"
    dies 132 static ill goroutine
    says "^gort: fatal: SIGILL $in: no instruction, or a trap of the compiler's, at 0x"
    dies 136 static fpe goroutine
    says "^gort: fatal: SIGFPE $in: an integer division by zero, or of the least integer by -1" ;;
esac
build shared -L"$lib" -Wl,-rpath,"$lib" -lgort && signals shared
if build whole -static -Wl,--eh-frame-hdr "$lib/libgort.a" 2>/dev/null; then signals whole; fi
# with the hook preloaded
if [ -e "$lib/libgort-hook.so" ]; then
    printf '#!/bin/sh\nLD_PRELOAD=%s exec ./shared "$@"\n' "$lib/libgort-hook.so" >"$WORK/hooked"
    chmod +x "$WORK/hooked"
    signals hooked
    dies 7 hooked null goroutine exit
fi

# Elsewhere.
dies 139 static null main
says '^gort: fatal: SIGSEGV in goroutine 1: nothing'
dies 139 static null thread
says '^gort: fatal: SIGSEGV in thread [0-9]+ "static", which is no goroutine: nothing'
says '^thread [0-9]+ "static", which is no goroutine:$'
says '^  0x[0-9a-f]{16} thread\+.* prog\.c:'
cat >"$WORK/white.c" <<'C'
#include "runtime.h"
void *g0(void);
void *g0(void) { return getm()->g0sp; }
C
if ${CC:-cc} -O1 -g -c -std=gnu11 -Iinclude -iquote src -iquote "src/arch/${machine%%-*}" \
    "$WORK/white.c" -o "$WORK/white.o" && build white -DWHITE "$WORK/white.o" "$lib/libgort-white.a"
then
    dies 139 white null g0
    says '^gort: fatal: SIGSEGV in thread [0-9]+ "white", in the scheduler: nothing'
    says '^  0x[0-9a-f]{16} on_g0\+.* prog\.c:'
else
    fail 'the white program does not build'
fi

# Handlers that the program had before: told once, and all goes on as without a runtime.
dies 7 static null goroutine exit
says "^gort: SIGSEGV $in: nothing .*; the program's handler is called$"
dies 0 static page goroutine mend
[ "$(count '^own handler')" = 1 ] || fail "$name: the handler"
dies 0 static null goroutine jump
[ "$(count '^own handler')" = 3 ] || fail "$name: the handler"
dies 139 static null goroutine default
dies 139 static null goroutine crash
[ "$(count '^own handler')" = 1 ] || fail "$name: the handler that crashes has run again"

# Two goroutines and two threads at once: one report, and it is whole.
for i in 1 2 3 4 5; do
    dies 139 static null together
    [ "$(count '^(goroutine|thread) ')" = 1 ] || fail "$name: not one block"
    [ "$(count '^  0x.* crash\+')" = 1 ] || fail "$name: not the frames of one"
done

# Nothing is told in a child, nor where it is not wanted.
silent() { # STATUS WHAT WHERE
    want=$1 name="$2 $3, silent" code=0
    shift
    { (cd "$WORK" && exec timeout -s KILL 60 ./static "$@") >"$WORK/out" 2>"$WORK/err"; } \
        2>/dev/null || code=$?
    [ "$code" = "$want" ] || fail "$name: status $code, not $want"
    [ ! -s "$WORK/err" ] || fail "$name: it speaks"
}
silent 111 null child
silent 106 abort child
GORT_DEBUG=crash=0
export GORT_DEBUG
silent 139 null goroutine
silent 134 abort goroutine
exit $bad
