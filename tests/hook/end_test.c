/*
 * The end of a runtime while its goroutines are in hooked calls: what libc's objects have of them is taken back, and no descriptor stays.
 */
#include "hook.h"

static int came;

static void start(void (*fn)(void *)) { CHECK_EQ(gort_go(fn, NULL), 0); }

/* ---- a barrier that one waits in ------------------------------------------------------------------ */

static pthread_barrier_t pair;

static void meets(void *arg) {
    pthread_barrier_wait(&pair);
    add(&came, 1);
}
static void *thread_meets(void *arg) {
    meets(arg);
    return NULL;
}
static int one_meets(int argc, char **argv) {
    start(meets);
    wait_for_waiting("semacquire", 1);
    CHECK_EQ(get(&came), 0);
    return 0;
}
static int two_meet(int argc, char **argv) {
    one_meets(argc, argv); /* it alone does not come through */
    start(meets);
    wait_until(get(&came) == 2);
    return 0;
}
static void test_barrier(void) {
    pthread_t t[2];
    CHECK_EQ(pthread_barrier_init(&pair, NULL, 2), 0);
    for (int i = 0; i < 2; i++) gort_main(one_meets, 0, NULL);
    gort_main(two_meet, 0, NULL);
    set(&came, 0);
    gort_main(one_meets, 0, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, thread_meets, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    set(&came, 0);
    gort_main(one_meets, 0, NULL);
    CHECK_EQ(pthread_barrier_destroy(&pair), 0); /* nobody waits */
}

/* A thread that waits beside them waits on. */
static int third(int argc, char **argv) {
    pthread_t *t = (void *)argv;
    start(meets);
    wait_for_waiting("semacquire", 1);
    if (argc == 0) CHECK_EQ(pthread_create(t, NULL, thread_meets, NULL), 0);
    if (argc == 1) start(meets);
    if (argc == 0) wait_until(((volatile uint32_t *)(void *)&pair)[0] == 2); /* arrived: barrier.c */
    else wait_until(get(&came) == 3);
    return 0;
}
static void test_barrier_beside(void) {
    pthread_t t;
    set(&came, 0);
    CHECK_EQ(pthread_barrier_init(&pair, NULL, 3), 0);
    gort_main(third, 0, (char **)(void *)&t);
    CHECK_EQ(pthread_barrier_destroy(&pair), EBUSY);
    gort_main(third, 1, NULL);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(pthread_barrier_destroy(&pair), 0);
}

int main(void) {
    check_hooked();
    alarm(100); /* or it hangs */
    test_barrier();
    test_barrier_beside();
    return 0;
}
