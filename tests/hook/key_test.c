/*
 * What is kept under a pthread key is the goroutine's (src/hook/threadkeys.c): it is there after
 * every wait, on whatever thread, for as many keys as there are; the next goroutine finds nothing
 * of it, and its destructor runs when the goroutine ends, on the goroutine itself, never inside
 * another's call. Threads have their own. A forked child has those of the goroutine that forked.
 */
#include "hook.h"
#include <limits.h>
#include <semaphore.h>
#include <threads.h>

enum { VALUES = 40, CROWD = 500 };

typedef struct Value {
    int owner, alive;
    uint64_t id;
} Value;

static pthread_key_t keys[VALUES], deleted;
static tss_t c11;
static int made, destroyed, done, pair[2], turns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, library = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t sem;

/* Takes the library's lock, as OpenSSL's does, and waits while it has it. */
static void destroy(void *arg) {
    Value *v = arg;
    CHECK_EQ(v->alive, 1);
    CHECK_EQ(v->id, gort_id());
    CHECK_EQ(pthread_mutex_lock(&library), 0);
    v->alive = 0;
    usleep(1);
    CHECK_EQ(pthread_mutex_unlock(&library), 0);
    free(v);
    add(&destroyed, 1);
}

/* Made on first use, as a library would. */
static Value *mine(int k, int i) {
    Value *v = pthread_getspecific(keys[k]);
    CHECK(v == NULL); /* of nobody else */
    v = calloc(1, sizeof *v);
    *v = (Value){i, 1, gort_id()};
    add(&made, 1);
    CHECK_EQ(pthread_setspecific(keys[k], v), 0);
    return v;
}

#define STILL_MINE(i)                              \
    for (int k_ = 0; k_ < VALUES; k_++) {          \
        Value *v_ = pthread_getspecific(keys[k_]); \
        CHECK(v_ == values[k_]);                   \
        CHECK_EQ(v_->owner, i);                    \
        CHECK_EQ(v_->alive, 1);                    \
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
    CHECK(tss_get(c11) == NULL);
    CHECK_EQ(tss_set(c11, values), thrd_success);
    for (int k = 0; k < VALUES; k++) values[k] = mine(k, i);
    usleep(1000);
    STILL_MINE(i);
    pthread_mutex_lock(&mutex);
    usleep(1);
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
    gort_yield();
    gort_sleep(1000);
    STILL_MINE(i);
    CHECK_EQ(pthread_once(&once, init), 0);
    STILL_MINE(i);
    CHECK(tss_get(c11) == values);
    pthread_mutex_lock(&library); /* the library's own call: nobody's destructor runs inside it */
    usleep(1);
    pthread_mutex_unlock(&library);
    add(&done, 1);
    if (i % 3 == 0) gort_exit();
}

static void crowd(int n) {
    gort_wg wg = {0};
    set(&done, 0);
    turns = 0;
    for (intptr_t i = 0; i < n; i++) CHECK_EQ(gort_wg_go(&wg, waiter, (void *)i), 0);
    for (int i = 0; i < n; i++) CHECK_EQ(write(pair[1], "x", 1), 1);
    gort_wg_wait(&wg);
    CHECK_EQ(get(&done), n);
    CHECK_EQ(get(&destroyed), get(&made)); /* before the group heard of it */
    CHECK_LT(threads(), 50);
}

static int found_by_once;

static void caller_of_once(void *arg) {
    pthread_once_t own = PTHREAD_ONCE_INIT;
    CHECK_EQ(pthread_once(&own, init), 0);
    found_by_once = pthread_getspecific(deleted) == &made;
    set(&done, 1);
}

/* What an init routine leaves, over a wait of its own, is the caller's. */
static void left_by_once(void) {
    set(&done, 0);
    CHECK_EQ(gort_go(caller_of_once, NULL), 0);
    wait_until(get(&done) == 1);
    CHECK(found_by_once);
}

/* ---- as many keys as there are --------------------------------------------------------------- */

static void all_keys(void) {
    static pthread_key_t many[PTHREAD_KEYS_MAX];
    int n = 0;
    while (n < PTHREAD_KEYS_MAX && pthread_key_create(&many[n], NULL) == 0) n++;
    CHECK_GE(n, PTHREAD_KEYS_MAX - 100);
    for (int k = 0; k < n; k++) CHECK_EQ(pthread_setspecific(many[k], &many[k]), 0);
    usleep(100);
    for (int k = 0; k < n; k++) CHECK(pthread_getspecific(many[k]) == &many[k]);
    for (int k = 0; k < n; k++) CHECK_EQ(pthread_key_delete(many[k]), 0);
    CHECK_EQ(pthread_key_create(&many[0], NULL), 0); /* the number of one that was deleted */
    CHECK(pthread_getspecific(many[0]) == NULL);
    CHECK_EQ(pthread_key_delete(many[0]), 0);
    CHECK(pthread_setspecific(PTHREAD_KEYS_MAX, &n) == EINVAL &&
          pthread_getspecific(PTHREAD_KEYS_MAX) == NULL);
}

/* ---- destructors ----------------------------------------------------------------------------- */

static pthread_key_t again, other;
static int rounds, order;

static void set_again(void *arg) {
    add(&rounds, 1);
    CHECK(pthread_getspecific(again) == NULL);
    CHECK_EQ(pthread_setspecific(again, arg), 0);
}
static void set_other(void *arg) {
    if (order++ == 0) CHECK_EQ(pthread_setspecific(other, arg), 0);
}

static void leaves_values(void *arg) {
    CHECK_EQ(pthread_setspecific(again, &rounds), 0);
    CHECK_EQ(pthread_setspecific(other, &rounds), 0);
}

static void in_rounds(void) {
    rounds = order = 0;
    gort_wg wg = {0};
    CHECK_EQ(pthread_key_create(&again, set_again), 0);
    CHECK_EQ(pthread_key_create(&other, set_other), 0);
    CHECK_EQ(gort_wg_go(&wg, leaves_values, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(get(&rounds), PTHREAD_DESTRUCTOR_ITERATIONS);
    CHECK_EQ(order, 2);
    CHECK_EQ(pthread_key_delete(again), 0);
    CHECK_EQ(pthread_key_delete(other), 0);
}

static void *thread(void *arg) {
    Value *v = mine(0, -1);
    v->id = gort_id();
    usleep(10);
    CHECK(pthread_getspecific(keys[0]) == v);
    return NULL;
}

static void a_thread(void) {
    pthread_t t;
    int before = get(&destroyed);
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(get(&destroyed), before + 1);
}

static void forks(void) {
    int status;
    CHECK_EQ(pthread_setspecific(deleted, &status), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(pthread_getspecific(deleted) == &status && pthread_setspecific(deleted, NULL) == 0
                  ? 0
                  : 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static int run(int argc, char **argv) {
    left_by_once();
    crowd(CROWD);
    crowd(50);
    all_keys();
    in_rounds();
    a_thread();
    forks();
    CHECK(mine(1, 0) != NULL);
    return 0;
}

int main(int argc, char **argv) {
    check_hooked();
    for (int k = 0; k < VALUES; k++) CHECK_EQ(pthread_key_create(&keys[k], destroy), 0);
    CHECK_EQ(pthread_key_create(&deleted, NULL), 0);
    CHECK_EQ(tss_create(&c11, NULL), thrd_success);
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(sem_init(&sem, 0, 1), 0);
    CHECK_EQ(gort_main(run, argc, argv), 0);
    CHECK_EQ(get(&destroyed), get(&made)); /* goroutine 1's too */
    int before = get(&made);
    CHECK_EQ(gort_main(run, argc, argv), 0); /* in the next life, too */
    CHECK_EQ(get(&made) - before, before);
    CHECK_EQ(get(&destroyed), get(&made));
    return 0;
}
