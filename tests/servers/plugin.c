/* A C program that opens a plugin in C++ before its runtime starts. */
#include "../lib/test.h"
#include <dlfcn.h>

static int (*wrong)(int, void (*)(void)), (*ran)(long);
static void (*once)(long);
static gort_wg wg;

static void catches(void *arg) { CHECK_EQ(wrong((int)(intptr_t)arg, gort_yield), 0); }
static void calls_once(void *arg) { once((long)(intptr_t)arg); }

static int run(int argc, char **argv) {
    bool hooked = strcmp(argv[2], "hook") == 0;
    for (intptr_t i = 1; i <= 8; i++) gort_wg_go(&wg, hooked ? calls_once : catches, (void *)i);
    gort_wg_wait(&wg);
    for (long i = 1; i <= 8 && hooked; i++) CHECK_EQ(ran(i), 1);
    return 0;
}

int main(int argc, char **argv) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECKF(plugin != NULL, "%s", dlerror());
    *(void **)&wrong = dlsym(plugin, "plugin_wrong");
    *(void **)&ran = dlsym(plugin, "plugin_ran");
    *(void **)&once = dlsym(plugin, "plugin_once");
    return gort_main(run, argc, argv);
}
