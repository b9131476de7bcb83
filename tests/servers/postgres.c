/* libpq in goroutines. Arguments: a conninfo string; the pid of the server, to be killed at the
 * end. */
#include "server.h"
#include <libpq-fe.h>

static const char *where;
static PGconn *conn[CALLERS];

static PGconn *dial(void) {
    PGconn *c = PQconnectdb(where);
    CHECKF(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
    return c;
}

static void nap(int i) {
    char sql[64];
    snprintf(sql, sizeof sql, "select %d from pg_sleep(0.2)", i);
    PGresult *r = PQexec(conn[i], sql);
    CHECKF(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(conn[i]));
    CHECK_EQ(atoi(PQgetvalue(r, 0, 0)), i);
    PQclear(r);
}

/* A thousand clients, a pool of fifty. */
static gort_chan *pool;
static int answered;

static void client(void *arg) {
    PGconn *c;
    const char *params[1];
    char n[16];
    snprintf(n, sizeof n, "%d", (int)(intptr_t)arg);
    params[0] = n;
    gort_chan_recv(pool, &c);
    PGresult *r = PQexecParams(c, "select $1::int * 2", 1, NULL, params, NULL, NULL, 0);
    CHECKF(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(c));
    CHECK_EQ(atoi(PQgetvalue(r, 0, 0)), 2 * (int)(intptr_t)arg);
    PQclear(r);
    gort_chan_send(pool, &c);
    add(&answered, 1);
}

static void thousand(void) {
    pool = gort_chan_new(sizeof(PGconn *), 50);
    for (int i = 0; i < 50; i++) gort_chan_send(pool, &conn[i]);
    int64_t ns = timed_goroutines(1000, client);
    gort_stats s;
    gort_stats_read(&s);
    printf("a thousand clients, fifty connections: %d ms, %d threads\n", (int)(ns / GORT_MS),
           (int)s.threads);
    CHECK_EQ(get(&answered), 1000);
    CHECK_LT(s.threads, quick() ? 100 : 20);
}

static int ended;
static void until_terminated(void *arg) {
    PGresult *r = PQexec(conn[1], "select pg_sleep(1000)");
    CHECK_EQ(PQresultStatus(r), PGRES_FATAL_ERROR);
    CHECK_EQ(PQstatus(conn[1]), CONNECTION_BAD);
    PQclear(r);
    add(&ended, 1);
}

static void errors(void) {
    char sql[64];
    PQclear(PQexec(conn[0], "set statement_timeout = 100"));
    PGresult *r = PQexec(conn[0], "select pg_sleep(1000)");
    CHECK_STR(PQresultErrorField(r, PG_DIAG_SQLSTATE), "57014");
    PQclear(r);
    gort_go(until_terminated, NULL);
    gort_sleep(100 * GORT_MS);
    snprintf(sql, sizeof sql, "select pg_terminate_backend(%d)", PQbackendPID(conn[1]));
    PQclear(PQexec(conn[2], sql));
    wait_until(get(&ended) == 1);
    PGconn *none = PQconnectdb("host=127.0.0.1 port=1 connect_timeout=5");
    CHECK_EQ(PQstatus(none), CONNECTION_BAD);
    CHECK(strstr(PQerrorMessage(none), "refused") != NULL);
    PQfinish(none);
    char at[64];
    snprintf(at, sizeof at, "host=127.0.0.1 port=%d connect_timeout=2 sslmode=disable",
             silent_port());
    none = PQconnectdb(at);
    CHECK_EQ(PQstatus(none), CONNECTION_BAD);
    CHECKF(strstr(PQerrorMessage(none), "timeout expired") != NULL, "%s", PQerrorMessage(none));
    PQfinish(none);
}

/* The whole server, by SIGKILL, while all of them are in a call. */
static void until_killed(void *arg) {
    PGconn *c = conn[(intptr_t)arg];
    PGresult *r = PQexec(c, "select pg_sleep(1000)");
    CHECK_EQ(PQresultStatus(r), PGRES_FATAL_ERROR);
    CHECK_EQ(PQstatus(c), CONNECTION_BAD);
    PQclear(r);
    add(&ended, 1);
}

static bool refused(void) {
    PGconn *none = PQconnectdb(where);
    bool is = PQstatus(none) == CONNECTION_BAD;
    PQfinish(none);
    return is;
}

static void kill_server(int pid) {
    set(&ended, 0);
    for (intptr_t i = 2; i < 22; i++) CHECK_EQ(gort_go(until_killed, (void *)i), 0);
    gort_sleep(100 * GORT_MS);
    CHECK_EQ(kill(pid, SIGKILL), 0); /* the postmaster; its children see it and end */
    wait_until(get(&ended) == 20);
    wait_until(refused());
}

static int run(int argc, char **argv) {
    for (int i = 0; i < CALLERS; i++) conn[i] = dial();
    together("postgres", nap);
    thousand();
    errors();
    if (argc > 2) kill_server(atoi(argv[2]));
    for (int i = 0; i < CALLERS; i++) PQfinish(conn[i]);
    return 0;
}

int main(int argc, char **argv) {
    where = argv[1];
    return gort_main(run, argc, argv);
}
