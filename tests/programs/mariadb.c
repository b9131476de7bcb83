/* A load for MariaDB with checked answers: N connections at once, a thread each. Arguments: the
 * port, N.
 *
 * Each inserts rows of its own and asks for them, takes a user's lock in turns, moves money between
 * accounts in transactions that may deadlock, and meets the others while all are connected.
 * Then KILL: of a query that sleeps, of a connection, of one that waits for a lock. */
#include <errno.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <errmsg.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x)                                                            \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                        \
        }                                                                   \
    } while (0)

enum { ACCOUNTS = 20, MONEY = 1000, ROUNDS = 3 };
static unsigned port;
static int clients;
static pthread_barrier_t all_there;
static long deadlocks; /* atomic */

static MYSQL *connected(void) {
    MYSQL *db = mysql_init(NULL);
    unsigned seconds = 100;
    mysql_options(db, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    if (!mysql_real_connect(db, "127.0.0.1", "root", "", "test", port, NULL, 0)) {
        fprintf(stderr, "connect: %s\n", mysql_error(db));
        abort();
    }
    return db;
}

/* 0, or the server's error number. */
__attribute__((format(printf, 2, 3))) static unsigned tried(MYSQL *db, const char *text, ...) {
    char query[512];
    va_list args;
    va_start(args, text);
    vsnprintf(query, sizeof query, text, args);
    va_end(args);
    return mysql_query(db, query) == 0 ? 0 : mysql_errno(db);
}
#define done(db, ...)                                                            \
    do {                                                                         \
        if (tried(db, __VA_ARGS__) != 0) {                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, mysql_error(db)); \
            abort();                                                             \
        }                                                                        \
    } while (0)

/* The first value of the first row. */
static long value(MYSQL *db) {
    MYSQL_RES *r = mysql_store_result(db);
    MYSQL_ROW row = r ? mysql_fetch_row(r) : NULL;
    CHECK(row && row[0]);
    long n = atol(row[0]);
    mysql_free_result(r);
    return n;
}

/* False: chosen as the victim of a deadlock, or waited too long, and rolled back. */
static int moved(MYSQL *db, int from, int to) {
    unsigned e;
    done(db, "start transaction");
    if ((e = tried(db, "update account set money = money - 1 where id = %d", from)) == 0 &&
        (e = tried(db, "update account set money = money + 1 where id = %d", to)) == 0 &&
        (e = tried(db, "commit")) == 0)
        return 1;
    if (e != ER_LOCK_DEADLOCK && e != ER_LOCK_WAIT_TIMEOUT)
        fprintf(stderr, "%s\n", mysql_error(db));
    CHECK(e == ER_LOCK_DEADLOCK || e == ER_LOCK_WAIT_TIMEOUT);
    done(db, "rollback");
    __atomic_add_fetch(&deadlocks, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void *client(void *arg) {
    int i = (int)(intptr_t)arg;
    mysql_thread_init();
    MYSQL *db = connected();
    done(db, "set @mine = %d", i);
    pthread_barrier_wait(&all_there);
    for (int k = 0; k < ROUNDS; k++) {
        done(db, "insert into item (owner, number) values (%d, %d)", i, i * 100 + k);
        done(db, "select @mine * 3");
        CHECK(value(db) == 3 * i);
    }
    done(db, "select sum(number) from item where owner = %d", i);
    CHECK(value(db) == 100L * i * ROUNDS + ROUNDS * (ROUNDS - 1) / 2);
    CHECK(tried(db, "select nonsense") == ER_BAD_FIELD_ERROR);
    done(db, "select sleep(0.01)");
    CHECK(value(db) == 0);
    if (i % 10 == 0)
        while (!moved(db, i / 10 % ACCOUNTS, (i / 10 * 7 + 3) % ACCOUNTS)) {}
    if (i % 20 == 0) {
        done(db, "select get_lock('one', 100)");
        CHECK(value(db) == 1);
        done(db, "select count(*) from account");
        CHECK(value(db) == ACCOUNTS);
        done(db, "select release_lock('one')");
        CHECK(value(db) == 1);
    }
    pthread_barrier_wait(&all_there);
    mysql_close(db);
    mysql_thread_end();
    return NULL;
}

/* ---- KILL ------------------------------------------------------------------------------------ */

typedef struct Victim {
    pthread_t thread;
    const char *query;
    MYSQL *db;
    unsigned long id;
    unsigned error;
    int interrupted; /* sleep's answer is then 1, without an error */
} Victim;

static void *victim(void *arg) {
    Victim *v = arg;
    mysql_thread_init();
    v->error = tried(v->db, "%s", v->query);
    MYSQL_RES *r = v->error ? NULL : mysql_store_result(v->db);
    if (r == NULL) v->error = mysql_errno(v->db);
    MYSQL_ROW row = r ? mysql_fetch_row(r) : NULL;
    v->interrupted = row && row[0] && strcmp(row[0], "1") == 0;
    mysql_free_result(r);
    mysql_thread_end();
    return NULL;
}

static void victim_starts(Victim *v, MYSQL *by, const char *query) {
    *v = (Victim){.query = query, .db = connected()};
    v->id = mysql_thread_id(v->db);
    done(v->db, "set session innodb_lock_wait_timeout = 100, @@max_statement_time = 0");
    CHECK(pthread_create(&v->thread, NULL, victim, v) == 0);
    for (long busy = 0; !busy; usleep(1000)) {
        done(by,
             "select count(*) from information_schema.processlist where id = %lu and "
             "command = 'Query' and info is not null",
             v->id);
        busy = value(by);
    }
}

static void kills(MYSQL *db) {
    Victim v;
    victim_starts(&v, db, "select sleep(100)");
    done(db, "kill query %lu", v.id);
    pthread_join(v.thread, NULL);
    CHECK(v.error == ER_QUERY_INTERRUPTED || v.interrupted);
    done(v.db, "select 5"); /* the connection is still there */
    CHECK(value(v.db) == 5);
    mysql_close(v.db);

    victim_starts(&v, db, "select sleep(100)");
    done(db, "kill %lu", v.id);
    pthread_join(v.thread, NULL);
    CHECK(v.error == CR_SERVER_LOST || v.error == ER_CONNECTION_KILLED ||
          v.error == ER_QUERY_INTERRUPTED || v.interrupted);
    CHECK(tried(v.db, "select 5") != 0);
    mysql_close(v.db);

    done(db, "start transaction");
    done(db, "update account set money = money where id = 1");
    victim_starts(&v, db, "update account set money = money + 1 where id = 1");
    done(db, "kill query %lu", v.id);
    pthread_join(v.thread, NULL);
    CHECK(v.error == ER_QUERY_INTERRUPTED);
    done(db, "rollback");
    mysql_close(v.db);

    MYSQL *idle = connected();
    done(db, "kill %lu", mysql_thread_id(idle));
    while (tried(idle, "select 1") == 0) {
        value(idle);
        usleep(1000);
    }
    mysql_close(idle);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    port = (unsigned)atoi(argv[1]);
    clients = atoi(argv[2]);
    mysql_library_init(0, NULL, NULL);
    MYSQL *db = connected();
    done(db, "drop table if exists item, account");
    done(db, "create table item (id int auto_increment primary key, owner int, number int, "
             "index(owner)) engine=innodb");
    done(db, "create table account (id int primary key, money int) engine=innodb");
    for (int i = 0; i < ACCOUNTS; i++) done(db, "insert into account values (%d, %d)", i, MONEY);

    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 << 10);
    pthread_barrier_init(&all_there, NULL, (unsigned)clients);
    pthread_t *threads = calloc((size_t)clients, sizeof *threads);
    for (intptr_t i = 0; i < clients; i++)
        CHECK(pthread_create(&threads[i], &attr, client, (void *)i) == 0);
    for (int i = 0; i < clients; i++) pthread_join(threads[i], NULL);
    free(threads);

    done(db, "select count(*) from item");
    CHECK(value(db) == (long)clients * ROUNDS);
    done(db, "select count(distinct owner) from item");
    CHECK(value(db) == clients);
    done(db, "select sum(money) from account");
    CHECK(value(db) == (long)ACCOUNTS * MONEY);
    kills(db);
    done(db, "select sum(money) from account");
    CHECK(value(db) == (long)ACCOUNTS * MONEY);
    done(db, "show global status like 'Max_used_connections'");
    MYSQL_RES *r = mysql_store_result(db);
    MYSQL_ROW row = mysql_fetch_row(r);
    CHECK(row && atol(row[1]) > clients);
    mysql_free_result(r);
    mysql_close(db);
    printf("MariaDB: %d connections, every answer right; KILL of queries and connections\n",
           clients);
    fprintf(stderr, "%ld transactions rolled back\n", deadlocks);
    return 0;
}
