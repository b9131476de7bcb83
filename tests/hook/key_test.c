/*
 * What is kept under a pthread key is the goroutine's (src/hook/threadkeys.c): it is there after
 * every wait, on whatever thread, for as many keys as there are; the next goroutine finds nothing
 * of it, and its destructor runs when the goroutine ends, on the goroutine itself, never inside
 * another's call. What a goroutine sets while it is locked to its thread is the thread's. Threads
 * have their own. A forked child has those of the goroutine that forked.
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

/* ---- locked to the thread -------------------------------------------------------------------- */

/* A library that finds its object by a __thread variable, and has the key for the destructor only
 * (RocksDB, libomp): while goroutines use it locked, the object is the thread's. */
typedef struct Object {
    uint64_t alive;
} Object;
static __thread Object *object;
static pthread_key_t object_key, brought;
static int objects, objects_gone, used_freed;

static void object_ends(void *arg) {
    ((Object *)arg)->alive = 0; /* never freed: a goroutine may look */
    add(&objects_gone, 1);
}
static Object *library_object(void) {
    if (object == NULL) {
        object = calloc(1, sizeof *object);
        object->alive = 1;
        add(&objects, 1);
        CHECK_EQ(pthread_setspecific(object_key, object), 0);
    }
    CHECK(pthread_getspecific(object_key) == object);
    return object;
}

static void uses_library(void *arg) {
    int own = 0;
    CHECK_EQ(pthread_setspecific(brought, &own), 0);
    gort_lock_thread();
    if (!library_object()->alive) add(&used_freed, 1);
    CHECK(pthread_getspecific(brought) == &own); /* what it came with */
    gort_lock_thread();
    usleep(100);
    gort_unlock_thread();
    if (!library_object()->alive) add(&used_freed, 1);
    CHECK_EQ(pthread_setspecific(brought, NULL), 0); /* aside, and back: still its own */
    CHECK(pthread_getspecific(brought) == NULL);
    CHECK_EQ(pthread_setspecific(brought, &own), 0);
    if (arg) return; /* locked: the thread ends with it */
    gort_unlock_thread();
    CHECK(pthread_getspecific(object_key) == NULL); /* the thread's */
    CHECK(pthread_getspecific(brought) == &own);
    CHECK_EQ(pthread_setspecific(brought, NULL), 0);
}

static void values_of_threads(void) {
    CHECK_EQ(pthread_key_create(&object_key, object_ends), 0);
    CHECK_EQ(pthread_key_create(&brought, NULL), 0);
    for (intptr_t round = 0; round < 2; round++) {
        gort_wg wg = {0};
        for (int i = 0; i < 50; i++) {
            CHECK_EQ(gort_wg_go(&wg, uses_library, (void *)round), 0);
            if (i < 20) gort_wg_wait(&wg); /* one after the other, on few threads; then at once */
        }
        gort_wg_wait(&wg);
        CHECK_EQ(get(&used_freed), 0);
    }
    wait_until(get(&objects_gone) >= 50); /* with their threads */
}

/* A robust mutex locks its owner to the thread without a word: the keys remain the goroutine's. */
static void holds_robust(void *arg) {
    Object own = {.alive = 1};
    CHECK_EQ(pthread_mutex_lock(arg), 0);
    CHECK_EQ(pthread_setspecific(brought, &own), 0);
    CHECK_EQ(pthread_mutex_unlock(arg), 0);
    CHECK(pthread_getspecific(brought) == &own);
    gort_lock_thread();
    CHECK_EQ(pthread_mutex_lock(arg), 0);
    CHECK(pthread_getspecific(object_key) == NULL || ((Object *)object)->alive);
    CHECK_EQ(pthread_setspecific(keys[0], NULL), 0);
    CHECK_EQ(pthread_mutex_unlock(arg), 0);
    CHECK(library_object()->alive);
    gort_unlock_thread();
    CHECK(pthread_getspecific(object_key) == NULL);
}

static void with_robust(void) {
    pthread_mutex_t robust;
    pthread_mutexattr_t attr;
    gort_wg wg = {0};
    CHECK_EQ(pthread_mutexattr_init(&attr), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
    CHECK_EQ(pthread_mutex_init(&robust, &attr), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_wg_go(&wg, holds_robust, &robust), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(pthread_mutex_destroy(&robust), 0);
}

static int run(int argc, char **argv) {
    left_by_once();
    crowd(CROWD);
    crowd(50);
    all_keys();
    in_rounds();
    a_thread();
    forks();
    values_of_threads();
    with_robust();
    CHECK_EQ(pthread_key_delete(object_key), 0);
    CHECK_EQ(pthread_key_delete(brought), 0);
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
