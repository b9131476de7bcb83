/* The live page (page.c), and what it serves. */
#ifndef PAGE_H
#define PAGE_H

#include "debug/leak.h"
#include "inspect/http.h"
#include "os/ownfd.h"
#include "runtime.h"

/* At the start of gort_main: GORT_HTTP. At its end, when no goroutine runs: closes everything. */
void page_begin_run(void);
void page_end_run(void);

/* Ordinary goroutines; o grows. */
typedef struct Snapshot {
    bool who;        /* with what never changes: the program, since when it is up */
    bool goroutines; /* with groups of them, and those that have waited longest */
    bool own;        /* the page's own are counted, too */
} Snapshot;
void page_snapshot(Out *o, const Snapshot *s);                    /* JSON (page_state.c) */
void page_goroutines_json(Out *o, const HttpRequest *r);          /* JSON list (page_state.c) */
void page_leaks_json(Out *o, Leaks *l, int64_t now, int64_t age); /* JSON (page_state.c) */
void page_metrics(Out *o);                                        /* Prometheus' text (metrics.c) */

uint64_t page_own_count(void); /* goroutines that serve the page */
/* One of them? They are left out of what is told about the program, unless they are asked for. */
INLINE bool page_own(const G *gp) { return (gp->flags & GF_SYSTEM) != 0; }

typedef struct Program {
    const char *name;
    char host[65];
    int pid;
    int64_t began; /* ms since 1970 */
} Program;
extern Program page_program; /* this one (page.c) */

/* The figures of gort_stats that are shown (metrics.c). */
typedef struct Figure {
    const char *field;
    size_t index;                     /* all are of 64 bits */
    const char *metric, *type, *help; /* Prometheus' name and type */
} Figure;
extern const Figure figures[]; /* a field of NULL ends them */
uint64_t figure_of(const gort_stats *s, const Figure *f);

/* Connections have places, conn. A call of one whose descriptor the program has closed: -EBADF. */
#define CONNECTIONS 64
ssize_t page_read(int conn, void *buf, size_t n, int64_t deadline);
ssize_t page_write(int conn, const void *bytes, size_t n, int64_t deadline);
void page_close(OwnFd *entry); /* of a table, if it is still the page's */
/* 0, or the status to refuse with. costs: the request takes time and memory. */
int page_refuse(int conn, const HttpRequest *r, bool costs);

/* page_routes.c: */
void page_route(int conn, const HttpRequest *r); /* answers */
void page_answer_text(int conn, const HttpRequest *r, int status, const char *text);
void page_end_recordings(void); /* at the end, when the connections are closed */

extern const char page_html[], page_html_end[]; /* web/page.html (page_html.c) */

#endif
