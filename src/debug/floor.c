/* The functions that this floor enters into base/upstairs.h for the floors below. */
#include "debug/dump.h"
#include "debug/reports.h"

static void last_words(uintptr_t from) {
    dump_all_from(2, from);
    if (upstairs.inspection) upstairs.inspection->fatal();
}

__attribute__((constructor(101))) static void debug_floor(void) {
    upstairs.last_words = last_words;
    upstairs.overrun = stall_look;
    monitor_serves(&schedtrace_client);
    monitor_serves(&leak_client);
}
