/*
 * A thousand database clients: each a goroutine with plain libpq code, on fifty connections and a
 * few threads. libpq knows nothing of goroutines; libgort-hook.so lets its calls block only the
 * goroutine that makes them.
 *
 *   cc database.c -I../../include -I/usr/include/postgresql -L../../build -lgort-hook -lgort -lpq -lpthread
 *   ./a.out "host=localhost user=postgres" [threads | none]
 *
 * With the word "threads" the same clients are pthreads, with "none" there are none, to compare. With
 * compact stacks each client costs half as much (docs/hook.md has the command).
 */
#include <gort.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 1000, POOL = 50, QUERIES = 5 };
static gort_chan *pool; /* connections that nobody uses */
static long sum;

/* Apart from the function that waits, which is then small: see docs/compact.md. */
static __attribute__((noinline)) void query(PGconn *conn, int n) {
    char number[16];
    const char *params[1] = {number};
    snprintf(number, sizeof number, "%d", n);
    PGresult *r = PQexecParams(conn, "select $1::int from pg_sleep(0.01)", 1, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) fprintf(stderr, "%s", PQerrorMessage(conn));
    else __atomic_add_fetch(&sum, atoi(PQgetvalue(r, 0, 0)), __ATOMIC_RELAXED);
    PQclear(r);
}

static void client(void *arg) {
    PGconn *conn;
    for (int i = 0; i < QUERIES; i++) {
        gort_chan_recv(pool, &conn);
        query(conn, (int)(intptr_t)arg);
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

static void as_goroutines(void) {
    gort_wg wg = {0};
    for (intptr_t i = 0; i < CLIENTS; i++) gort_wg_go(&wg, client, (void *)i);
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
    if (argc < 2) return 2;
    pool = gort_chan_new(sizeof(PGconn *), POOL);
    for (int i = 0; i < POOL; i++) {
        PGconn *conn = PQconnectdb(argv[1]);
        if (PQstatus(conn) != CONNECTION_OK) {
            fprintf(stderr, "%s", PQerrorMessage(conn));
            return 1;
        }
        gort_chan_send(pool, &conn);
    }
    long before = status("VmRSS:");
    int64_t from = gort_now();
    bool none = argc > 2 && strcmp(argv[2], "none") == 0;
    if (argc == 2) as_goroutines();
    else if (!none) as_threads();
    gort_stats s;
    gort_stats_read(&s);
    printf("%d clients, %d queries, %.0f ms, %d threads of the runtime, %ld KB more at the peak\n", CLIENTS,
           CLIENTS * QUERIES, (double)(gort_now() - from) / GORT_MS, (int)s.threads, status("VmHWM:") - before);
    return none || sum == (long)CLIENTS * (CLIENTS - 1) / 2 * QUERIES ? 0 : 1;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
