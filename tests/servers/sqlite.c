/* SQLite on a file. Argument: the file. */
#include "server.h"
#include <sqlite3.h>

static const char *file;
static sqlite3 *db[CALLERS];

static void nap(sqlite3_context *ctx, int n, sqlite3_value **v) {
    usleep((useconds_t)sqlite3_value_int(v[0]) * 1000);
    sqlite3_result_int(ctx, sqlite3_value_int(v[0]));
}

static sqlite3 *open_it(void) {
    sqlite3 *d;
    CHECK_EQ(sqlite3_open(file, &d), SQLITE_OK);
    sqlite3_busy_timeout(d, 100000);
    CHECK_EQ(sqlite3_create_function(d, "nap", 1, SQLITE_UTF8, NULL, nap, NULL, NULL), SQLITE_OK);
    return d;
}

static int number(sqlite3 *d, const char *sql) {
    sqlite3_stmt *s;
    CHECKF(sqlite3_prepare_v2(d, sql, -1, &s, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(d));
    CHECK_EQ(sqlite3_step(s), SQLITE_ROW);
    int n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void napper(int i) { CHECK_EQ(number(db[i], "select nap(200)"), 200); }

/* All into one table, waiting for each other's locks. */
static void writer(void *arg) {
    int i = (int)(intptr_t)arg;
    for (int k = 0; k < 5; k++) {
        char sql[80];
        snprintf(sql, sizeof sql, "insert into t values (%d, %d)", i, k);
        char *error = NULL;
        CHECKF(sqlite3_exec(db[i], sql, NULL, NULL, &error) == SQLITE_OK, "%s", error);
    }
}

/* One connection, its mutex held over a call that parks. */
static void sharer(void *arg) { CHECK_EQ(number(db[0], "select nap(1)"), 1); }

/* A call that is interrupted by another goroutine; a file that cannot be opened. */
static int interrupted;
static void until_interrupted(void *arg) {
    int r = sqlite3_exec(
        db[2],
        "with recursive n(i) as (select 1 union all select i + nap(1) from n) select sum(i) from n",
        NULL, NULL, NULL);
    CHECK_EQ(r, SQLITE_INTERRUPT);
    set(&interrupted, 1);
}

static void errors(void) {
    sqlite3 *d;
    CHECK_EQ(gort_go(until_interrupted, NULL), 0);
    while (!get(&interrupted)) { /* one that comes before the call has begun is lost */
        gort_sleep(10 * GORT_MS);
        sqlite3_interrupt(db[2]);
    }
    CHECK_EQ(sqlite3_open_v2("/nonexistent/db", &d, SQLITE_OPEN_READWRITE, NULL), SQLITE_CANTOPEN);
    sqlite3_close(d);
}

static int run(int argc, char **argv) {
    for (int i = 0; i < CALLERS; i++) db[i] = open_it();
    CHECK_EQ(sqlite3_exec(db[0], "create table t (a, b)", NULL, NULL, NULL), SQLITE_OK);
    together("sqlite", napper);
    timed_goroutines(20, writer);
    CHECK_EQ(number(db[0], "select count(*) from t"), 100);
    timed_goroutines(50, sharer);
    sqlite3_busy_timeout(db[1], 50);
    CHECK_EQ(sqlite3_exec(db[0], "begin immediate", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db[1], "begin immediate", NULL, NULL, NULL), SQLITE_BUSY);
    CHECK_EQ(sqlite3_exec(db[0], "rollback", NULL, NULL, NULL), SQLITE_OK);
    errors();
    for (int i = 0; i < CALLERS; i++) sqlite3_close(db[i]);
    printf("sqlite: 100 rows of 20 writers\n");
    return 0;
}

int main(int argc, char **argv) {
    file = argv[1];
    return gort_main(run, argc, argv);
}
