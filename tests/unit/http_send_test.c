/* A client may be slow, as long as it takes something: the patience of http_send begins anew with
 * each piece. The clock and the connection are the test's own. */
#include "../lib/white.h"
#define gort_now test_now
int64_t test_now(void);
#include "../../src/inspect/http.c"
#undef gort_now

static int64_t clock_now = 1, each;
static size_t taken;

int64_t test_now(void) { return clock_now; }

/* Takes 1000 bytes, each time only just before the deadline, or too late. */
ssize_t page_write(int conn, const void *bytes, size_t n, int64_t deadline) {
    clock_now += each;
    if (clock_now > deadline) return -ETIMEDOUT;
    size_t some = n < 1000 ? n : 1000;
    for (size_t i = 0; i < some; i++) CHECK_EQ(((const char *)bytes)[i], (char)(taken + i));
    taken += some;
    return (ssize_t)some;
}

int main(void) {
    char body[100500];
    for (size_t i = 0; i < sizeof body; i++) body[i] = (char)i;
    each = PATIENCE;
    CHECK_EQ(http_send(0, body, sizeof body), 0);
    CHECK_EQ(taken, sizeof body);
    each = PATIENCE + 1;
    CHECK_EQ(http_send(0, body, sizeof body), -ETIMEDOUT);
    return 0;
}
