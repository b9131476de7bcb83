/* The functions that this floor enters into base/upstairs.h for the floors below. */
#include "base/upstairs.h"
#include "debug/dump.h"
#include "debug/leak.h"
#include "debug/schedtrace.h"
#include "debug/stall.h"

static void last_words(uintptr_t from) {
    dump_all_from(2, from);
    if (upstairs.inspection) upstairs.inspection->fatal();
}

static const MonitorClient leaks = {leak_begin, leak_look, leak_due};
static const MonitorClient schedtrace = {schedtrace_begin, schedtrace_look, schedtrace_due};

__attribute__((constructor(101))) static void debug_floor(void) {
    upstairs.last_words = last_words;
    upstairs.overrun = stall_look;
    monitor_serves(&schedtrace);
    monitor_serves(&leaks);
}
