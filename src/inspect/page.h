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

/* The figures of gort_stats that are shown (metrics.c). */
typedef struct Figure {
    const char *field;
    size_t index;                     /* all are of 64 bits */
    const char *metric, *type, *help; /* Prometheus' name and type */
} Figure;
extern const Figure figures[]; /* a field of NULL ends them */
uint64_t figure_of(const gort_stats *s, const Figure *f);

/* To the connection at place conn, if its descriptor is still ours: as much as it takes, -errno. */
ssize_t page_write(int conn, const void *bytes, size_t n, int64_t deadline);

extern const char page_html[], page_html_end[]; /* web/page.html (page_html.c) */

#endif
