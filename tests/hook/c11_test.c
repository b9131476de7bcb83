/* C11's threads.h on goroutines: hundreds wait without a thread each, recursive mutexes belong to
 * the goroutine. */
#include "hook.h"
#include <threads.h>

static mtx_t mutex, recursive;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static int inits, inside[2], turn, done, woken;

static void init(void) {
    CHECK_EQ(thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL), 0);
    inits++;
}

static void alone(mtx_t *m, int *in) {
    CHECK_EQ(mtx_lock(m), thrd_success);
    CHECK_EQ(add(in, 1), 1);
    usleep(10);
    CHECK_EQ(add(in, -1), 0);
    CHECK_EQ(mtx_unlock(m), thrd_success);
}

static void one(void *arg) {
    int i = (int)(intptr_t)arg;
    call_once(&once, init);
    CHECK_EQ(inits, 1);
    alone(&mutex, &inside[0]);
    CHECK_EQ(mtx_lock(&recursive), thrd_success);
    alone(&recursive, &inside[1]);
    CHECK_EQ(mtx_unlock(&recursive), thrd_success);
    CHECK_EQ(mtx_lock(&mutex), thrd_success);
    add(&woken, 1);
    while (turn != i) CHECK_EQ(cnd_wait(&changed, &mutex), thrd_success);
    turn++;
    CHECK_EQ(cnd_broadcast(&changed), thrd_success);
    CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    add(&done, 1);
}

static void times(void) {
    struct timespec over = {0, 0};
    CHECK_EQ(mtx_lock(&mutex), thrd_success);
    CHECK_EQ(mtx_trylock(&mutex), thrd_busy);
    CHECK_EQ(mtx_timedlock(&mutex, &over), thrd_timedout);
    CHECK_EQ(cnd_timedwait(&changed, &mutex, &over), thrd_timedout);
    CHECK_EQ(cnd_signal(&changed), thrd_success);
    CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    CHECK_EQ(thrd_sleep(&(struct timespec){.tv_nsec = -1}, NULL), -2);
}

static int thread(void *arg) {
    usleep(1000);
    return 7;
}

static int run(int argc, char **argv) {
    thrd_t t;
    int result;
    CHECK_EQ(mtx_init(&mutex, mtx_timed), thrd_success);
    CHECK_EQ(mtx_init(&recursive, mtx_plain | mtx_recursive), thrd_success);
    CHECK_EQ(cnd_init(&changed), thrd_success);
    times();
    turn = -1;
    for (intptr_t i = 0; i < MANY; i++) CHECK_EQ(gort_go(one, (void *)i), 0);
    wait_until(get(&woken) == MANY);
    CHECK_LT(threads(), MANY); /* on a busy machine there are more than Ps: some were taken */
    CHECK_EQ(mtx_lock(&mutex), thrd_success);
    turn = 0;
    CHECK_EQ(cnd_broadcast(&changed), thrd_success);
    CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    wait_until(get(&done) == MANY);
    CHECK_EQ(thrd_create(&t, thread, NULL), thrd_success);
    CHECK_EQ(thrd_join(t, &result), thrd_success);
    CHECK_EQ(result, 7);
    CHECK_EQ(tss_create(&key, NULL), thrd_success);
    CHECK_EQ(tss_set(key, &key), thrd_success);
    CHECK(tss_get(key) == &key);
    tss_delete(key);
    return 0;
}
HOOK_MAIN(run)
