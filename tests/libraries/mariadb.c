/* MariaDB's client library: hundreds of connections, each in a statement that takes a while.
 * Argument: the port. */
#include "crowd.h"
#include <mysql.h>

static unsigned port;

static void ask(int i) {
    char text[64];
    mysql_thread_init();
    MYSQL *db = mysql_init(NULL);
    if (!mysql_real_connect(db, "127.0.0.1", "root", "", NULL, port, NULL, 0))
        fprintf(stderr, "%s\n", mysql_error(db));
    CHECK(mysql_ping(db) == 0);
    snprintf(text, sizeof text, "select sleep(0.05), %d", i);
    CHECK(mysql_query(db, text) == 0);
    MYSQL_RES *r = mysql_store_result(db);
    MYSQL_ROW row = mysql_fetch_row(r);
    CHECK(row != NULL && atoi(row[1]) == i);
    mysql_free_result(r);
    CHECK(mysql_query(db, "select nonsense") != 0 && strstr(mysql_error(db), "nonsense"));
    mysql_close(db);
    mysql_thread_end();
}

static int run(int argc, char **argv) {
    port = (unsigned)atoi(argv[1]);
    crowd("libmariadb", ask);
    return 0;
}
int main(int argc, char **argv) {
    mysql_library_init(0, NULL, NULL);
    return gort_main(run, argc, argv);
}
