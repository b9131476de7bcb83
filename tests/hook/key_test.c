/*
 * What is kept under a pthread key goes with a goroutine that waits in a hooked call (src/hook/key.c), though
 * its thread runs others meanwhile; there are no more values than goroutines that had one at once, none is
 * destroyed while it is used, and a thread that ends destroys its own.
 */
#include "hook.h"
#include <semaphore.h>

enum { VALUES = 2 };

typedef struct Value {
    int owner, alive;
} Value;

static pthread_key_t keys[VALUES], deleted;
static int made, destroyed, done, pair[2], turns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;

static void destroy(void *arg) {
    Value *v = arg;
    CHECK_EQ(v->alive, 1);
    v->alive = 0;
    add(&destroyed, 1);
}

/* This goroutine's, as a library would have it: made on first use, or somebody's who has ended. */
static Value *mine(int k, int i) {
    Value *v = pthread_getspecific(keys[k]);
    if (v == NULL) {
        v = calloc(1, sizeof *v);
        v->alive = 1;
        add(&made, 1);
        CHECK_EQ(pthread_setspecific(keys[k], v), 0);
    }
    CHECK_EQ(v->alive, 1);
    v->owner = i;
    return v;
}

#define STILL_MINE(i)                                                                              \
    for (int k_ = 0; k_ < VALUES; k_++) {                                                          \
        Value *v_ = pthread_getspecific(keys[k_]);                                                 \
        CHECK(v_ == values[k_]);                                                                   \
        CHECK_EQ(v_->owner, i);                                                                    \
        CHECK_EQ(v_->alive, 1);                                                                    \
    }

static void init(void) {
    usleep(1000);
    CHECK_EQ(pthread_setspecific(deleted, &made), 0); /* left for whoever called it */
}

/* In every way that waits. */
static void waiter(void *arg) {
    int i = (int)(intptr_t)arg;
    Value *values[VALUES];
    char c;
    for (int k = 0; k < VALUES; k++) values[k] = mine(k, i);
    usleep(1000);
    STILL_MINE(i);
    pthread_mutex_lock(&mutex);
    usleep(10);
    STILL_MINE(i);
    while (turns != i) pthread_cond_wait(&changed, &mutex);
    turns++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    STILL_MINE(i);
    CHECK_EQ(sem_wait(&sem), 0);
    STILL_MINE(i);
    CHECK_EQ(sem_post(&sem), 0);
    CHECK_EQ(read(pair[0], &c, 1), 1);
    STILL_MINE(i);
    struct pollfd p = {.fd = pair[0], .events = POLLPRI};
    CHECK_EQ(poll(&p, 1, 1), 0);
    STILL_MINE(i);
    CHECK_EQ(pthread_once(&once, init), 0);
    STILL_MINE(i);
    add(&done, 1);
}

static void crowd(void) {
    set(&done, 0);
    turns = 0;
    for (intptr_t i = 0; i < MANY; i++) CHECK_EQ(gort_go(waiter, (void *)i), 0);
    for (int i = 0; i < MANY; i++) CHECK_EQ(write(pair[1], "x", 1), 1);
    wait_until(get(&done) == MANY);
}

static int found_by_once;

static void caller_of_once(void *arg) {
    pthread_once_t own = PTHREAD_ONCE_INIT;
    CHECK_EQ(pthread_once(&own, init), 0);
    found_by_once = pthread_getspecific(deleted) == &made;
    CHECK_EQ(pthread_setspecific(deleted, NULL), 0);
    set(&done, 1);
}

/* What an init routine leaves, over a wait of its own, is the caller's. */
static void left_by_once(void) {
    set(&done, 0);
    CHECK_EQ(gort_go(caller_of_once, NULL), 0);
    wait_until(get(&done) == 1);
    CHECK(found_by_once);
}

static void *thread(void *arg) {
    Value *v = mine(0, -1);
    usleep(10);
    CHECK(pthread_getspecific(keys[0]) == v);
    return NULL;
}

static int run(int argc, char **argv) {
    pthread_t t;
    for (int k = 0; k < VALUES; k++) CHECK_EQ(pthread_key_create(&keys[k], destroy), 0);
    CHECK_EQ(pthread_key_create(&deleted, NULL), 0);
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(sem_init(&sem, 0, 1), 0);
    left_by_once();
    for (int i = 0; i < 5; i++) crowd();
    int before = get(&destroyed); /* by threads of the runtime that have ended */
    CHECK_LE(get(&made) - before, VALUES * (MANY + 100)); /* and not five times as many */
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    wait_until(get(&destroyed) > before);
    CHECK_EQ(pthread_key_delete(deleted), 0);
    usleep(1000);
    return 0;
}

HOOK_MAIN(run)
