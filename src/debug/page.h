/*
 * The live page and its neighbours.
 */
#ifndef PAGE_H
#define PAGE_H

#include "debug/http.h"
#include "runtime.h"

/* At the start and the end of gort_main: GORT_HTTP; closes what is open. */
void page_begin_run(void);
void page_end_run(void);

/* What is served; each writes into o, which grows. Ordinary goroutines. */
void page_snapshot(Out *o, bool with_goroutines);        /* JSON of the house (page_state.c) */
void page_goroutines_json(Out *o, const HttpRequest *r); /* JSON list (page_state.c) */
void page_metrics(Out *o);                               /* Prometheus' text (metrics.c) */

void out_json(Out *o, const char *s); /* a quoted string (page_state.c) */

extern const char page_html[], page_html_end[]; /* web/page.html (page_html.c) */

#endif
