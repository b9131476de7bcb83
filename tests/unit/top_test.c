/* The monitor writes figures for gort-top before it sleeps, whether somebody looks or not. For
 * nobody it does not read the executable's symbols: they take a descriptor, which programs that
 * count theirs would see, and the monitor's time. */
#include "unwind/modules.h"
#include "os/os.h"
#include "inspect/top_page.h"
#include "../lib/test.h"

/* With one P, which this goroutine holds, the monitor does not write at the same time. */
static int run(int argc, char **argv) {
    Module *mod = module_of((uintptr_t)run);
    CHECK(mod != NULL);
    CHECK_EQ(mod->state, 0);
    top_client.due(os_now());
    CHECK_EQ(mod->state, 0);
    return 0;
}

int main(int argc, char **argv) {
    setenv("GORT_MAXPROCS", "1", 1);
    return gort_main(run, argc, argv);
}
