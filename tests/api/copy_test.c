/* gort_go_copy: the bytes are on the new stack, aligned, the goroutine's own, for all its life. */
#include "../lib/test.h"

#include <stdbool.h>

static int finished;
static bool lazy; /* a compact stack may have grown by a segment before this frame */

typedef struct {
    uint32_t size;
    unsigned char byte[1020];
} Block;

static unsigned char pattern(uint32_t size, uint32_t i) {
    return (unsigned char)(size * 31 + i * 7);
}

static void check_block(void *arg) {
    Block *b = arg;
    CHECK_EQ((uintptr_t)arg % 16, 0);
    uint32_t n = b->size;
    uintptr_t here = (uintptr_t)&n, there = (uintptr_t)b; /* near this frame: on this stack */
    if (lazy) CHECK(there > here && there < here + 64 * 1024);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < n; i++)
            CHECK_EQ(b->byte[i], (unsigned char)(pattern(n, i) + round));
        for (uint32_t i = 0; i < n; i++) b->byte[i]++; /* it may be written to */
        gort_yield();
    }
    add(&finished, 1);
}

static void check_byte(void *arg) {
    CHECK_EQ((uintptr_t)arg % 16, 0);
    CHECK_EQ(*(char *)arg, 'x');
    add(&finished, 1);
}

static void check_nothing(void *arg) { add(&finished, 1); }

static int body(int argc, char **argv) {
    Block b;
    gort_stats stats;
    gort_stats_read(&stats);
    lazy = stats.stack_mode == 0;
    char x = 'x', big[1025] = {0};
    int expected = 0;
    for (uint32_t n = 0; n <= sizeof b.byte; n += n < 40 ? 1 : 49) {
        b.size = n;
        for (uint32_t i = 0; i < n; i++) b.byte[i] = pattern(n, i);
        CHECK_EQ(gort_go_copy(check_block, &b, offsetof(Block, byte) + n), 0);
        memset(&b, 0xee, sizeof b); /* the caller's may go at once */
        expected++;
    }
    b.size = sizeof b.byte;
    for (uint32_t i = 0; i < b.size; i++) b.byte[i] = pattern(b.size, i);
    CHECK_EQ(gort_go_copy(check_block, &b, 1024), 0);
    CHECK_EQ(gort_go_copy(check_byte, &x, 1), 0);
    x = 'y';
    CHECK_EQ(gort_go_copy(check_nothing, NULL, 0), 0);
    CHECK_EQ(gort_go_copy(check_nothing, big, 1025), -E2BIG);
    CHECK_EQ(gort_go_copy(check_nothing, big, SIZE_MAX), -E2BIG);
    CHECK_EQ(gort_go_copy(NULL, big, 4), -EINVAL);
    wait_until(gort_count() == 1);
    CHECK_EQ(get(&finished), expected + 3);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
