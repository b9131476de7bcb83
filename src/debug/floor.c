/*
 * What the floors below call up here (base/upstairs.h): the last words of a process, the clients of
 * the monitor, the profile of waits.
 */
#include "base/upstairs.h"
#include "debug/blockprof.h"
#include "debug/dump.h"
#include "debug/leak.h"
#include "debug/schedtrace.h"
#include "debug/stall.h"
#include "debug/top_page.h"
#include "sched/trace.h"

static void last_words(uintptr_t from) {
    dump_all_from(2, from);
    tracing_fatal();
}

static void look_for_leaks(M *m, int64_t now) { leak_look(now); }
static int64_t leaks_due(int64_t now) { return leak_due(); }
static const MonitorClient leaks = {leak_begin, look_for_leaks, leaks_due};

static void look_for_top(M *m, int64_t now) { top_look(now); }
static int64_t top_sleeps(int64_t now) {
    int64_t due = top_due(now);
    top_idle(now);
    return due;
}
static const MonitorClient top_client = {NULL, look_for_top, top_sleeps};

static const MonitorClient schedtrace = {schedtrace_begin, schedtrace_look, schedtrace_due};

__attribute__((constructor(101))) static void debug_floor(void) {
    upstairs.last_words = last_words;
    upstairs.waited = blockprof_ready;
    upstairs.overrun = stall_look;
    monitor_serves(&schedtrace);
    monitor_serves(&leaks);
    monitor_serves(&top_client);
}
