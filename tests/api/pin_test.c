/* gort_pin: the P's number, exclusive use of what belongs to that P, no preemption, what is
 * allowed. */
#include "../lib/test.h"

enum { WORKERS = 8, ROUNDS = 2000 };
static struct {
    long n;
    char pad[56];
} per_p[1024];
static int finished, flag;

/* A load and a store with a long window between them: only safe if nobody else runs on this P. */
static void count_on_my_p(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        int id = gort_pin();
        CHECK_GE(id, 0);
        CHECK_LT(id, gort_maxprocs(0));
        long n = get(&per_p[id].n);
        for (volatile int k = 0; k < 50; k++) {}
        CHECK_EQ(gort_pin(), id); /* nests, and stays */
        gort_unpin();
        set(&per_p[id].n, n + 1);
        gort_unpin();
        if (i % 16 == 0) gort_yield();
    }
    add(&finished, 1);
}

static void raise_flag(void *arg) { set(&flag, 1); }

/* One P, somebody waits, and the pinned one runs through several slices. */
static void is_not_preempted(void) {
    gort_maxprocs(1);
    for (int nested = 0; nested < 2; nested++) {
        set(&flag, 0);
        gort_pin();
        if (nested) {
            gort_pin();
            gort_unpin(); /* still pinned */
        }
        CHECK_EQ(gort_go(raise_flag, NULL), 0);
        int64_t until = gort_now() + 60 * GORT_MS;
        while (gort_now() < until) CHECK_EQ(get(&flag), 0);
        gort_unpin();
        wait_until(get(&flag));
    }
}

/* Unpinned, the same loop gives way: otherwise the test above shows nothing. */
static void and_is_otherwise(void) {
    set(&flag, 0);
    CHECK_EQ(gort_go(raise_flag, NULL), 0);
    while (!get(&flag)) {}
}

static void allowed_while_pinned(void) {
    gort_chan *c = gort_chan_new(sizeof(int), 1);
    gort_mutex m = {0};
    gort_sem s = {0};
    gort_stats st;
    int v = 7;
    gort_pin();
    CHECK_EQ(gort_chan_try_recv(c, &v), -EAGAIN);
    CHECK_EQ(gort_chan_recv_until(c, &v, gort_now()), -ETIMEDOUT);
    CHECK_EQ(gort_chan_try_send(c, &v), 0);
    CHECK_EQ(gort_chan_send_until(c, &v, 0), -ETIMEDOUT);
    CHECK_EQ(gort_try_select((gort_case[]){gort_on_send(c, &v)}, 1), -EAGAIN);
    CHECK_EQ(gort_mutex_try_lock(&m), 0);
    CHECK_EQ(gort_mutex_lock_until(&m, 0), -ETIMEDOUT);
    CHECK_EQ(gort_sem_try_acquire(&s, 1), -EBUSY);
    gort_mutex_unlock(&m);
    gort_stats_read(&st);
    CHECK_EQ(gort_go(raise_flag, NULL), 0);
    gort_unpin();
    CHECK_EQ(gort_chan_recv(c, &v), 0);
    gort_chan_release(c);
}

static int body(int argc, char **argv) {
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(gort_go(count_on_my_p, NULL), 0);
    wait_until(get(&finished) == WORKERS);
    long sum = 0;
    for (int i = 0; i < 1024; i++) sum += get(&per_p[i].n);
    CHECK_EQ(sum, WORKERS * ROUNDS);
    allowed_while_pinned();
    wait_until(gort_count() == 1);
    is_not_preempted();
    and_is_otherwise();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
