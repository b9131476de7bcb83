/* The live page (page.c), and what it serves. */
#ifndef PAGE_H
#define PAGE_H

#include "inspect/http.h"
#include "runtime.h"

/* At the start of gort_main: GORT_HTTP. At its end, when no goroutine runs: closes everything. */
void page_begin_run(void);
void page_end_run(void);

/* Ordinary goroutines; o grows. */
void page_snapshot(Out *o, bool with_goroutines);        /* JSON (page_state.c) */
void page_goroutines_json(Out *o, const HttpRequest *r); /* JSON list (page_state.c) */
void page_metrics(Out *o);                               /* Prometheus' text (metrics.c) */

/* To the connection at place conn, if its descriptor is still ours: n, -errno. */
ssize_t page_write(int conn, const void *bytes, size_t n, int64_t deadline);

extern const char page_html[], page_html_end[]; /* web/page.html (page_html.c) */

#endif
