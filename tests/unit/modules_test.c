/*
 * A library that was opened this moment is found by who has to know of it (sched/inlibc.c), however
 * short ago the list of modules was walked.
 */
#include "../lib/test.h"
#include "unwind/modules.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
    CHECK(module_of((uintptr_t)main) != NULL);
    CHECK(module_of(4096) == NULL); /* walks the list, or has just done so */
    static const char *const names[] = {"libutil.so.1", "libanl.so.1", "libresolv.so.2"};
    for (int i = 0; i < 3; i++) {
        void *lib = dlopen(names[i], RTLD_NOW);
        void *at = lib ? dlsym(lib, i == 0   ? "openpty"
                                    : i == 1 ? "getaddrinfo_a"
                                             : "ns_sprintrr")
                       : NULL;
        if (at == NULL) continue;
        const Module *mod = module_of_newest((uintptr_t)at);
        CHECKF(mod != NULL, "%s is not found", names[i]);
    }
    return 0;
}
