/* pthread_once, pthread_join. */
#include "hook.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ran, finished, done, door[2];

static void init(void) {
    char c;
    add(&ran, 1);
    CHECK_EQ(read(door[0], &c, 1), 1); /* parks, with others behind it on this thread */
    set(&finished, 1);
}

static void caller(void *arg) {
    CHECK_EQ(pthread_once(&once, init), 0);
    CHECK_EQ(get(&finished), 1);
    add(&done, 1);
}

static void *thread(void *arg) {
    char c;
    CHECK_EQ(read(door[0], &c, 1), 1);
    return arg;
}

static int run(int argc, char **argv) {
    CHECK_EQ(pipe(door), 0);
    for (int i = 0; i < 40; i++) gort_go(caller, NULL);
    wait_for_waiting("IO wait", 1);
    wait_for_waiting("semacquire", 39);
    CHECK_EQ(write(door[1], "x", 1), 1);
    wait_until(get(&done) == 40);
    CHECK_EQ(get(&ran), 1);
    CHECK_EQ(pthread_once(&once, init), 0);

    pthread_t t;
    void *value;
    CHECK_EQ(pthread_create(&t, NULL, thread, &ran), 0);
    CHECK_EQ(write(door[1], "x", 1), 1);
    CHECK_EQ(pthread_join(t, &value), 0);
    CHECK(value == &ran);
    return 0;
}
HOOK_MAIN(run)
