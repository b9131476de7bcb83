/*
 * A thousand database clients, each a goroutine with plain libpq code, on fifty connections and a
 * few threads. ./a.out "host=localhost user=postgres" [--threads | --idle]: the same as pthreads,
 * to compare; or no clients. (With compact stacks, a waiting client takes 1.5 KB: docs/compact.md.)
 *   cc database.c -I../../include -I/usr/include/postgresql -L../../build -Wl,--no-as-needed \
 *       -lgort-hook -lgort -lpq -lpthread
 */
#include <gort.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 1000, POOL = 50, QUERIES = 5, KERNEL_STACK = 16 /* KB, each thread's */ };
static long sum, finished, before[3], peak[3]; /* KB resident, KB of page tables, threads */
static int threads, nfree;
static gort_chan *pool; /* of goroutines; and that of threads: */
static PGconn *idle[POOL];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Apart from the function that waits, which is then small: see docs/compact.md. */
static __attribute__((noinline)) void query(PGconn *conn, int n) {
    char number[16];
    snprintf(number, sizeof number, "%d", n);
    PGresult *r = PQexecParams(conn, "select $1::int from pg_sleep(0.01)", 1, NULL,
                               (const char *[]){number}, NULL, NULL, 0);
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
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

static void *thread(void *arg) {
    for (int i = 0; i < QUERIES; i++) {
        pthread_mutex_lock(&lock);
        while (nfree == 0) pthread_cond_wait(&changed, &lock);
        PGconn *conn = idle[--nfree];
        pthread_mutex_unlock(&lock);
        query(conn, (int)(intptr_t)arg);
        pthread_mutex_lock(&lock);
        idle[nfree++] = conn;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&changed);
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* What the process has now, where it is more than in `most`. */
static void measure(long *most) {
    static const char *const names[] = {"VmRSS: %ld", "VmPTE: %ld", "Threads: %ld"};
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    for (long value; f && fgets(line, sizeof line, f);)
        for (int i = 0; i < 3; i++)
            if (sscanf(line, names[i], &value) == 1 && value > most[i]) most[i] = value;
    if (f) fclose(f);
}

static int run(int argc, char **argv) {
    int clients = argc == 2 || threads ? CLIENTS : 0;
    for (pool = threads ? NULL : gort_chan_new(sizeof(PGconn *), POOL); nfree < POOL;) {
        PGconn *conn = idle[nfree++] = PQconnectdb(argv[1]);
        if (PQstatus(conn) != CONNECTION_OK) return fputs(PQerrorMessage(conn), stderr), 1;
        if (!threads && gort_chan_try_send(pool, &conn) < 0) return 1; /* no memory */
    }
    measure(before);
    int64_t from = gort_now();
    for (intptr_t i = 0; i < clients; i++)
        if (threads ? pthread_create(&(pthread_t){0}, NULL, thread, (void *)i)
                    : gort_go(client, (void *)i))
            return 1;
    for (measure(peak); __atomic_load_n(&finished, __ATOMIC_ACQUIRE) < clients; usleep(20000))
        measure(peak);
    long kb[3] = {peak[0] - before[0], peak[1] - before[1], (peak[2] - before[2]) * KERNEL_STACK};
    printf("%d %s, %d connections, %ld threads, %d queries in %.0f ms\n", clients,
           threads ? "pthreads" : "goroutines", POOL, peak[2], clients * QUERIES,
           (double)(gort_now() - from) / GORT_MS);
    printf("memory of the clients %ld KB: resident %ld, page tables %ld, kernel stacks %ld\n",
           kb[0] + kb[1] + kb[2], kb[0], kb[1], kb[2]);
    return sum == (long)clients * (clients - 1) / 2 * QUERIES ? 0 : 1;
}

int main(int argc, char **argv) {
    threads = argc > 2 && strcmp(argv[2], "--threads") == 0;
    return argc < 2 ? 2 : threads ? run(argc, argv) : gort_main(run, argc, argv);
}
