# The runtime ends while a goroutine runs the constructor of a library that it opens: the loader
# holds its lock there, so the goroutine is let come out of the loader (sched/inlibc.c).
set -u
[ "${SAN:-}" != thread ] || { echo 'skipped: they stop where they stand'; exit 77; }
case $ARCH in x86_64) ;; *) echo 'skipped: no traps on this processor'; exit 77 ;; esac
cat >"$WORK/lib.c" <<'C'
#include <stdlib.h>
extern int inside;
__attribute__((constructor)) static void constructs(void) {
    for (int i = 0; i < 20000; i++) {
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        if (HOW) free(malloc(100));
        for (volatile int k = 0; k < 1000; k++) continue;
    }
}
C
# The loader calls _init before the constructors; it has no unwind table, and no frame pointer.
cat >"$WORK/init.c" <<'C'
extern int inside;
int *where = &inside, turns = 30000000;
__asm__(".section .init,\"ax\",@progbits\n\t"
        "mov where@GOTPCREL(%rip), %rax\n\tmov (%rax), %rax\n\tmovl $1, (%rax)\n\t"
        "mov turns@GOTPCREL(%rip), %rax\n\tmov (%rax), %eax\n\t"
        "push %rbp\n\txor %ebp, %ebp\n1:\tsub $1, %eax\n\tjnz 1b\n\tpop %rbp\n\t.text");
C
cat >"$WORK/p.c" <<'C'
#include <dlfcn.h>
#include <gort.h>
#include <unistd.h>
int inside;
static void opens(void *path) { dlopen(path, RTLD_NOW); }
static int app(int argc, char **argv) {
    gort_go(opens, argv[1]);
    while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) gort_yield();
    return 0;
}
int main(int argc, char **argv) {
    if (gort_main(app, argc, argv) != 0) return 1;
    alarm(20); /* a lock that nobody gives back */
    return dlopen(argv[2], RTLD_NOW) == NULL;
}
C
san=${SAN:+-fsanitize=$SAN}
# shellcheck disable=SC2086
$CC -g $san -Iinclude "$WORK/p.c" "$OUT/libgort.a" -rdynamic -ldl -lpthread -o "$WORK/p" || exit 1
status=0
for how in 0 1 init; do
    case $how in init) lib=init.c ;; *) lib=lib.c ;; esac
    $CC -g -shared -fPIC -DHOW=$how "$WORK/$lib" -o "$WORK/lib$how.so" || exit 1
    for procs in 1 2 4; do
        GORT_MAXPROCS=$procs "$WORK/p" "$WORK/lib$how.so" libm.so.6 ||
            { echo "constructor $how, GORT_MAXPROCS=$procs: status $?"; status=1; }
    done
done
exit $status
