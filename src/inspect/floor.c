/* What the floors below call up here (base/upstairs.h). */
#include "inspect/page.h"
#include "inspect/profile.h"
#include "inspect/top_page.h"
#include "inspect/trace_session.h"

static void stopped(void) {
    page_end_run();
    tracing_end_run();
}
static const Inspection inspection = {.begin = top_begin_run,
                                      .opened = tracing_begin_run,
                                      .started = page_begin_run,
                                      .stopped = stopped,
                                      .end = top_end_run,
                                      .fatal = tracing_fatal};

__attribute__((constructor(101))) static void inspect_floor(void) {
    upstairs.inspection = &inspection;
    upstairs.waited = blockprof_ready;
    monitor_serves(&top_client);
}
