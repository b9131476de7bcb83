/*
 * Finding libc's own functions, and the core.
 *
 * Both are found when the library is loaded; a call that comes earlier, from another library's
 * constructor, finds them itself. Names that libc has in several versions (the condition variables
 * of x86-64) are asked for by version: dlsym(RTLD_NEXT) gives the oldest. A version that is not there is an error,
 * for which the loader calls malloc; an allocator of the program's may begin then, and make locks and keys: so those come
 * last, when everything else is found.
 */
#include "inside.h"

#include <dlfcn.h>

Real real;
const HookCore *core;
Known known = {.tls_m = NO_TLS};

static void *find(const char *name) {
    static const char *const versions[] = {"GLIBC_2.3.2", "GLIBC_2.34"};
    void *at = NULL;
    if (strncmp(name, "pthread_cond_", 13) == 0)
        for (size_t i = 0; i < count_of(versions) && at == NULL; i++) at = dlvsym(RTLD_NEXT, name, versions[i]);
    return at ? at : dlsym(RTLD_NEXT, name);
}

NOINLINE void real_find(void) {
#define FIND(name) *(void **)(void *)&real.name = find(#name);
    EVERY_FAMILY(FIND)
#undef FIND
}

static __attribute__((constructor(101))) void load(void) {
    real_find();
    const HookCore *c = gort_hook_core();
    if (c->size == sizeof(HookCore) && c->size_m == sizeof(M) && c->size_g == sizeof(G)) {
        core = c;
        known = (Known){c->tls_m, c->forked, c->taken, c->looks, c->descs};
    }
}

NOINLINE void set_errno(int e) { *__errno_location() = e; }
NOINLINE int get_errno(void) { return *__errno_location(); }
