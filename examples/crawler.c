/*
 * A crawler, and the site it crawls: page n links to 2n and 2n+1, and page 13 never comes. Each is
 * fetched once, at most PARALLEL at a time, each within PATIENCE, all of them within a minute.
 */
#include <gort.h>
#include <stdio.h>
#include <string.h>

enum { PAGES = 100, PARALLEL = 8, LINKS = 2 };
#define PATIENCE (3 * GORT_SEC)

static void serve(void *arg) {
    int fd = *(int *)arg, n = 0;
    char *line = NULL, text[100] = "HTTP/1.0 200 OK\r\n\r\n";
    gort_reader *in = gort_reader_new(fd, 1000);
    if (in && gort_reader_line(in, &line) > 0 && sscanf(line, "GET /%d ", &n) == 1) {
        while (n == 13 && gort_reader_line(in, &line) >= 0) {} /* until the client has gone */
        sprintf(strchr(text, 0), "<a href=\"/%d\">\n<a href=\"/%d\">\n", 2 * n, 2 * n + 1);
        gort_write_full(fd, text, strlen(text)); /* an error is the client's, who has gone */
    }
    gort_reader_free(in);
    gort_close(fd);
}

static void site(void *arg) {
    int fd;
    while ((fd = gort_accept(*(int *)arg, NULL, NULL)) >= 0)
        if (gort_go_copy(serve, &fd, sizeof fd) < 0) gort_close(fd);
}

struct page {
    int number, err, nlinks, links[LINKS];
};
GORT_CHAN_TYPE(pages, struct page)

static pages *fetched;
static char address[64];
static struct page queue[PAGES + 1] = {{.number = 1}}; /* [first, last) is to be fetched */
static int first, last = 1;

/* Any of these calls ends with -ETIMEDOUT when the context in use is over. */
static int fetch(struct page *p) {
    char *line, request[64];
    int fd = gort_dial(address, GORT_FOREVER);
    if (fd < 0) return fd;
    gort_reader *in = gort_reader_new(fd, 0);
    int len = snprintf(request, sizeof request, "GET /%d HTTP/1.0\r\n\r\n", p->number);
    ssize_t n = in ? gort_write_full(fd, request, (size_t)len) : -ENOMEM;
    while (n >= 0 && (n = gort_reader_line(in, &line)) >= 0)
        p->nlinks += p->nlinks < LINKS && sscanf(line, "<a href=\"/%d", &p->links[p->nlinks]) == 1;
    gort_reader_free(in);
    gort_close(fd);
    return n == -ENODATA ? 0 : (int)n; /* the end */
}

static int visit(gort_ctx *ctx, void *arg) {
    struct page *p = arg;
    gort_ctx *brief = gort_ctx_with_timeout(ctx, PATIENCE);
    if (brief == NULL) return -ENOMEM;
    gort_ctx_use(brief);
    p->err = fetch(p);
    gort_ctx_use(ctx);
    gort_ctx_release(brief);
    return pages_send(fetched, *p);
}

static int crawl(gort_group *group) {
    char seen[2 * PAGES + 2] = {0, 1};
    int good = 0, running = 0, err = 0;
    while (err == 0 && (first < last || running > 0)) {
        struct page p;
        for (; err == 0 && first < last && running < PARALLEL; running++)
            err = gort_group_go(group, visit, &queue[first++]);
        if (err < 0 || (err = pages_recv(fetched, &p)) < 0) break;
        running--, good += p.err == 0;
        if (p.err < 0) printf("page %d: %s\n", p.number, strerror(-p.err));
        for (int i = 0; i < p.nlinks; i++)
            if (p.links[i] <= PAGES && !seen[p.links[i]]++) queue[last++].number = p.links[i];
    }
    printf("%d pages fetched\n", good);
    return err;
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    int listener = gort_listen("127.0.0.1:0", 0), err = listener < 0 ? listener : -ENOMEM;
    gort_ctx *all = gort_ctx_with_timeout(NULL, 60 * GORT_SEC);
    gort_group *group = all ? gort_group_new(all, PARALLEL) : NULL;
    fetched = pages_new(0);
    if (group == NULL || fetched == NULL || listener < 0 ||
        (err = gort_local_addr(listener, address, sizeof address)) < 0 ||
        (err = gort_go_copy(site, &listener, sizeof listener)) < 0)
        return fprintf(stderr, "crawler: %s\n", strerror(-err)), 1;
    gort_ctx_use(all); /* the wait for pages ends as well */
    if ((err = crawl(group)) < 0) gort_ctx_cancel_cause(all, err);
    return gort_group_wait(group) < 0 || err < 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
