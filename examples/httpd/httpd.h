/*
 * An HTTP/1.1 file server and reverse proxy: a goroutine for each connection.
 *
 *     main.c      options, accepting, the shutdown
 *     request.c   heads and bodies: what is read from a peer, and refused
 *     file.c      files, ranges, directories
 *     proxy.c     the way to another server and back
 *     log.c       the access log and the figures
 *
 * A connection belongs to one goroutine, which closes it. All of them use the context of their
 * group: when the grace of a shutdown is over it is cancelled, and whatever they wait for ends.
 */
#include <gort.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LINE = 8192, MAX_HEAD = 32768, MAX_FIELDS = 100 };

typedef struct {
    const char *address, *root, *log;
    const char *prefix, *upstream; /* what begins with prefix goes to upstream */
    int root_fd, connections;
    int64_t idle, head, write, grace; /* patience, in nanoseconds */
    unsigned long long body;          /* the longest of a request */
} Options;
extern Options options;

/* ---- request.c: heads and bodies ------------------------------------------------------------ */

typedef struct {
    char *name, *value;
} Field;

/* The head of a request or of an answer. Its text lives in `text`. */
typedef struct {
    char text[MAX_HEAD];
    size_t used;
    char *method, *target, *reason; /* of a request, of a request, of an answer */
    int status, minor;              /* of an answer; HTTP/1.minor */
    int fields;
    Field field[MAX_FIELDS];
} Head;

/* How many bytes follow a head, and how many of them are still to come. */
typedef struct {
    enum { NO_BODY, LENGTH, CHUNKED, TO_THE_END } kind;
    bool over;
    unsigned long long left, total; /* of the body or the chunk; so far */
} Body;

/* 0, or a status to refuse it with; < 0: an error of the connection: -ENODATA at its end. */
int head_read(gort_reader *in, Head *h, bool answer);
/* The only value, NULL: there is none. *n: how often there is one. */
const char *head_field(const Head *h, const char *name, int *n);
bool list_has(const char *list, const char *word);
/* What the fields say of the body: 0 or a status. */
int body_begin(Body *b, const Head *h, bool answer);
/* The next bytes; 0: it is over; -EBADMSG: it is malformed, -EFBIG: longer than options.body. */
ssize_t body_read(Body *b, gort_reader *in, char *buf, size_t n, int64_t patience);

/* ---- main.c: a connection ------------------------------------------------------------------- */

typedef struct {
    int fd, status;
    bool keep, begun; /* it goes on after this request; the answer has begun */
    gort_ctx *ctx;
    gort_reader *in;
    gort_writer *out;
    unsigned long long sent;
    char peer[64];
    Body body;
    Head head; /* not zeroed: only what is used of it is touched */
} Conn;

/* The head of an answer but for its last lines; then the fields, "\r\n", and the body. */
int answer_begin(Conn *c, int status, const char *reason);
int answer_text(Conn *c, int status, const char *more_fields, const char *type, const char *text,
                size_t n);
int answer_error(Conn *c, int status); /* a page with the status; > 0: refused */
int conn_flush(Conn *c);
const char *reason_of(int status);
void tell_unreached(const char *address, int err); /* a line on stderr */

/* ---- the others: each answers a request. 0, or an error of the connection. ------------------ */

int file_answer(Conn *c);
int proxy_answer(Conn *c);
int metrics_answer(Conn *c);

typedef struct {
    unsigned long long requests, by_class[6], bytes, connections, open, refused, not_logged;
} Figures;
extern Figures figures; /* atomic, each for itself */
#define COUNT(what, n) __atomic_fetch_add(&figures.what, (n), __ATOMIC_RELAXED)

int log_open(const char *path);
void log_request(const Conn *c, int64_t began); /* never waits: what has no room is counted */
void log_close(void);
