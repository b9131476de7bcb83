/*
 * A thousand database clients: each a goroutine with plain libpq code, on fifty connections and a
 * few threads. libpq knows nothing of goroutines; libgort-hook.so lets its calls block only the
 * goroutine that makes them.
 *
 *   cc database.c -I../../include -I/usr/include/postgresql -L../../build -lgort-hook -lgort -lpq -lpthread
 *   ./a.out "host=localhost user=postgres" [threads]
 *
 * With the word "threads" the same clients are pthreads, to compare.
 */
#include <gort.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 1000, POOL = 50, QUERIES = 5 };
static gort_chan *pool; /* connections that nobody uses */
static long sum;

static void client(void *arg) {
    char number[16];
    const char *params[1] = {number};
    snprintf(number, sizeof number, "%d", (int)(intptr_t)arg);
    for (int i = 0; i < QUERIES; i++) {
        PGconn *conn;
        gort_chan_recv(pool, &conn);
        PGresult *r = PQexecParams(conn, "select $1::int from pg_sleep(0.01)", 1, NULL, params, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_TUPLES_OK) fprintf(stderr, "%s", PQerrorMessage(conn));
        else __atomic_add_fetch(&sum, atoi(PQgetvalue(r, 0, 0)), __ATOMIC_RELAXED);
        PQclear(r);
        gort_chan_send(pool, &conn);
    }
}

static void *thread(void *arg) {
    client(arg);
    return NULL;
}

static void as_threads(void) {
    static pthread_t t[CLIENTS];
    for (intptr_t i = 0; i < CLIENTS; i++) pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < CLIENTS; i++) pthread_join(t[i], NULL);
}

static gort_wg wg;

static void goroutine(void *arg) {
    client(arg);
    gort_wg_done(&wg);
}

/* 64 KB are plenty for a query; only what is touched is memory. */
static void as_goroutines(void) {
    const gort_attr small = {.stack_size = 64 << 10};
    gort_wg_add(&wg, CLIENTS);
    for (intptr_t i = 0; i < CLIENTS; i++) gort_go_with(&small, goroutine, (void *)i);
    gort_wg_wait(&wg);
}

/* What this process has of something, from /proc: KB, or a number. */
static long status(const char *what) {
    char line[256];
    long n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0) n = atol(line + strlen(what) + 1);
    if (f) fclose(f);
    return n;
}

static int start(int argc, char **argv) {
    pool = gort_chan_new(sizeof(PGconn *), POOL);
    for (int i = 0; i < POOL; i++) {
        PGconn *conn = PQconnectdb(argc > 1 ? argv[1] : "");
        if (PQstatus(conn) != CONNECTION_OK) {
            fprintf(stderr, "%s", PQerrorMessage(conn));
            return 1;
        }
        gort_chan_send(pool, &conn);
    }
    long before = status("VmRSS:");
    int64_t from = gort_now();
    if (argc > 2) as_threads();
    else as_goroutines();
    gort_stats s;
    gort_stats_read(&s);
    printf("%d clients, %d queries, %.0f ms, %d threads of the runtime, %ld KB more at the peak\n", CLIENTS,
           CLIENTS * QUERIES, (double)(gort_now() - from) / GORT_MS, (int)s.threads, status("VmHWM:") - before);
    return sum == (long)CLIENTS * (CLIENTS - 1) / 2 * QUERIES ? 0 : 1;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
