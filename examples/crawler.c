/*
 * A parallel crawler, and the site it crawls: a small HTTP server in the same program. Page n links
 * to 2n and 2n+1 (and back to page 1). At most eight fetches run at a time; a page is fetched once.
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 100, PARALLEL = 8 };

/* ---- the site ------------------------------------------------------------------------------- */

static void serve(void *arg) {
    int fd = *(int *)arg, n = 0;
    char buf[1024];
    ssize_t got = gort_read(fd, buf, sizeof buf - 1);
    buf[got > 0 ? got : 0] = 0;
    if (sscanf(buf, "GET /%d", &n) == 1) {
        int len = snprintf(buf, sizeof buf, "HTTP/1.0 200 OK\r\n\r\nlink %d link %d link 1\n",
                           2 * n, 2 * n + 1);
        gort_write_full(fd, buf, (size_t)len);
    }
    gort_close(fd);
}

static void site(void *arg) {
    int fd;
    while ((fd = gort_accept(*(int *)arg, NULL, NULL)) >= 0) gort_go_copy(serve, &fd, sizeof fd);
}

/* ---- the crawler ---------------------------------------------------------------------------- */

static char address[64];
static gort_mutex mutex;
static char seen[PAGES + 1];
static int fetched;
static gort_wg pages;
static gort_sem slots;

static ssize_t fetch(int n, char *page, size_t size) {
    size_t have = 0;
    ssize_t got;
    int fd = gort_dial(address, gort_now() + 30 * GORT_SEC);
    if (fd < 0) return fd;
    int len = snprintf(page, size, "GET /%d HTTP/1.0\r\n\r\n", n);
    gort_write_full(fd, page, (size_t)len);
    while ((got = gort_read(fd, page + have, size - 1 - have)) > 0) have += (size_t)got;
    page[have] = 0;
    gort_close(fd);
    return (ssize_t)have;
}

static void crawl(void *arg);
static void follow(int n) { /* starts a goroutine for a page nobody has seen yet */
    gort_mutex_lock(&mutex);
    int new = n <= PAGES && !seen[n];
    if (new) seen[n] = 1;
    gort_mutex_unlock(&mutex);
    if (new) gort_wg_go(&pages, crawl, (void *)(intptr_t)n);
}

static void crawl(void *arg) {
    char page[1024];
    gort_sem_acquire(&slots, 1);
    ssize_t got = fetch((int)(intptr_t)arg, page, sizeof page);
    gort_sem_release(&slots, 1);
    if (got <= 0) return;
    gort_mutex_lock(&mutex);
    fetched++;
    gort_mutex_unlock(&mutex);
    for (char *at = page; (at = strstr(at, "link ")) != NULL; at += 5) follow(atoi(at + 5));
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    int listener = gort_listen("127.0.0.1:0", 0);
    gort_local_addr(listener, address, sizeof address);
    gort_go_copy(site, &listener, sizeof listener);
    gort_sem_release(&slots, PARALLEL);
    follow(1);
    gort_wg_wait(&pages);
    printf("%d pages fetched\n", fetched);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
