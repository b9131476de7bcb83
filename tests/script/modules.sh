# Is libc recognised (src/unwind/modules.c)? Behind hundreds of modules, and an allocator that was
# found by a relative path: whoever is stopped there with a lock would keep the stopper of the world
# waiting. And a library whose file was replaced, as by an upgrade, has no names, not wrong ones.
set -u
[ -z "${SAN:-}" ] || { echo 'skipped: a sanitizer wants to be the first module'; exit 77; }
echo 'int in_this_module = 1;' | $CC -x c -fPIC -shared - -o "$WORK/one.so" || exit 1
mkdir -p "$WORK/many"
many=
for i in $(seq 300); do
    cp "$WORK/one.so" "$WORK/many/$i.so"
    many=$many:$WORK/many/$i.so
done
cp "$WORK/one.so" "$WORK/libjemalloc.so"
cat >"$WORK/which.c" <<'C'
#include "unwind/modules.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
/* which NAME SYMBOL...: each symbol stands in a module whose name begins so */
int main(int argc, char **argv) {
    int bad = 0;
    for (int i = 2; i < argc; i++) {
        Module *mod = module_of((uintptr_t)dlsym(RTLD_DEFAULT, argv[i]));
        const char *name = mod ? module_name(mod) : "no module";
        if (strncmp(name, argv[1], strlen(argv[1])) == 0) continue;
        printf("%s stands in %s, not in %s\n", argv[i], name, argv[1]);
        bad = 1;
    }
    return bad;
}
C
$CC -O1 -g -std=gnu11 -D_GNU_SOURCE -Isrc -Iinclude "$WORK/which.c" "$OUT/libgort-white.a" \
    -pthread -ldl -o "$WORK/which" || exit 1
failed=0
"$WORK/which" libc printf malloc || failed=1
LD_PRELOAD=${many#:} "$WORK/which" libc printf malloc || { echo 'behind 300 modules'; failed=1; }
(cd "$WORK" && LD_PRELOAD=./libjemalloc.so ./which libjemalloc in_this_module) ||
    { echo 'by a relative path'; failed=1; }

cat >"$WORK/replaced.c" <<'C'
#include "unwind/symbols.h"
#include <dlfcn.h>
#include <stdio.h>
/* replaced LIBRARY [OTHER]: OTHER takes its name; then the name of its function is asked for */
int main(int argc, char **argv) {
    void *at = dlsym(dlopen(argv[1], RTLD_NOW), "function");
    if (at == NULL || (argc > 2 && rename(argv[2], argv[1]) != 0)) return 1;
    Named n = symbol_of((uintptr_t)at + 1);
    puts(n.name ? n.name : "no name");
    return 0;
}
C
$CC -O1 -g -std=gnu11 -D_GNU_SOURCE -Isrc -Iinclude "$WORK/replaced.c" "$OUT/libgort-white.a" \
    -pthread -ldl -o "$WORK/replaced" || exit 1
echo 'int function(int x) { return x + 1; }' | $CC -x c -fPIC -shared - -o "$WORK/lib.so" &&
    echo 'int another(int x) { return x + 2; }' | $CC -x c -fPIC -shared - -o "$WORK/new.so" ||
    exit 1
[ "$("$WORK/replaced" "$WORK/lib.so")" = function ] || { echo 'no name of a library'; failed=1; }
[ "$("$WORK/replaced" "$WORK/lib.so" "$WORK/new.so")" = 'no name' ] ||
    { echo 'a name from another file'; failed=1; }
exit $failed
