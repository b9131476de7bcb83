/*
 * A function of gort_blocking that is left behind by its runtime: what it has stays its own,
 * between two runtimes and beside the goroutines of the next one, which have the same numbers as
 * those of the last.
 */
#include "hook.h"

enum { USERS = 20, THINGS = 2000, THING = 512 };

static int inside, over, gone; /* the function: how far it is, what it is to do */

static void goes(gort_fn *fn) { CHECK_EQ(gort_go(fn, NULL), 0); }
static void anew(void) {
    set(&inside, 0);
    set(&over, 0);
    set(&gone, 0);
}
/* Ends the function, and waits for its end. */
static void finish(void) {
    set(&over, 1);
    wait_until(get(&gone));
}

/* ---- keys ------------------------------------------------------------------------------------ */

static pthread_key_t key, late;
static char mine, other;

static void look(int *looks) {
    CHECK(pthread_getspecific(key) == &mine);
    CHECK_EQ(pthread_setspecific(key, &mine), 0);
    CHECK(pthread_getspecific(late) == (get(looks) ? &other : NULL));
    CHECK_EQ(pthread_setspecific(late, &other), 0);
    add(looks, 1);
}

static void look_in_child(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(pthread_getspecific(key) == &mine);
        CHECK(pthread_getspecific(late) == &other);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static int looks, forks;
static long has_values(void *arg) {
    for (set(&inside, 1); !get(&over); usleep(100)) {
        look(&looks);
        if (get(&forks) == 1) {
            look_in_child();
            set(&forks, 0);
        }
    }
    set(&gone, 1);
    return 0;
}
static void sets_and_blocks(void *arg) {
    CHECK_EQ(pthread_setspecific(key, &mine), 0);
    gort_blocking(has_values, NULL);
}
static void uses(void *arg) {
    CHECK(pthread_getspecific(key) == NULL);
    CHECK_EQ(pthread_setspecific(key, arg), 0);
    gort_yield();
    CHECK(pthread_getspecific(key) == arg);
}
static void looked(int more) {
    int from = get(&looks);
    wait_until(get(&looks) >= from + more);
}
static void forked(void) {
    set(&forks, 1);
    wait_until(get(&forks) == 0);
}

static int leaves_values(int argc, char **argv) {
    goes(sets_and_blocks);
    wait_until(get(&inside));
    return 0;
}
/* Its own tables come where the old ones would have been, and so does the memory of the program. */
static int beside_values(int argc, char **argv) {
    static unsigned char *things[THINGS];
    gort_wg wg = {0};
    for (long i = 1; i <= USERS; i++) gort_wg_go(&wg, uses, (void *)i);
    gort_wg_wait(&wg);
    for (int i = 0; i < THINGS; i++) memset(things[i] = gort_alloc(THING), 0x41, THING);
    looked(20);
    forked();
    for (int i = 0; i < THINGS; i++) {
        for (int k = 0; k < THING; k++) CHECK_EQ(things[i][k], 0x41);
        gort_free(things[i]);
    }
    return 0;
}
static void test_keys(void) {
    CHECK_EQ(pthread_key_create(&key, NULL), 0);
    /* another block of the table */
    for (int i = 0; i < 40; i++) CHECK_EQ(pthread_key_create(&late, NULL), 0);
    gort_main(leaves_values, 0, NULL);
    looked(5);
    forked();
    for (int i = 0; i < 2; i++) gort_main(beside_values, 0, NULL);
    looked(5);
    forked();
    finish();
}

/* ---- locks ----------------------------------------------------------------------------------- */

static pthread_mutex_t recursive, checked;
static pthread_rwlock_t rw;
static int got;

static long has_locks(void *arg) {
    CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    CHECK_EQ(pthread_mutex_lock(&checked), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
    for (set(&inside, 1); !get(&over);) usleep(100);
    CHECK_EQ(pthread_mutex_lock(&recursive), 0); /* they are its own still */
    CHECK_EQ(pthread_mutex_lock(&checked), EDEADLK);
    CHECK_EQ(pthread_rwlock_wrlock(&rw), EDEADLK);
    CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&checked), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
    set(&gone, 1);
    return 0;
}
static void locks_and_blocks(void *arg) { gort_blocking(has_locks, NULL); }

static void tries(void *arg) {
    struct timespec past = {0, 0};
    CHECK_EQ(pthread_mutex_trylock(&recursive), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
    CHECK_EQ(pthread_mutex_trylock(&checked), EBUSY);
    CHECK_EQ(pthread_mutex_timedlock(&checked, &past), ETIMEDOUT);
    CHECK_EQ(pthread_mutex_unlock(&checked), EPERM);
    CHECK_EQ(pthread_rwlock_timedrdlock(&rw, &past), ETIMEDOUT);
    CHECK_EQ(pthread_rwlock_timedwrlock(&rw, &past), ETIMEDOUT);
}
static void awaits(void *arg) {
    CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    CHECK_EQ(pthread_mutex_lock(&checked), 0);
    CHECK_EQ(pthread_mutex_unlock(&checked), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
    add(&got, 1);
}

static int leaves_locks(int argc, char **argv) {
    goes(locks_and_blocks);
    wait_until(get(&inside));
    return 0;
}
static int all_try(int argc, char **argv) {
    gort_wg wg = {0};
    tries(NULL);
    for (int i = 0; i < MANY; i++) gort_wg_go(&wg, tries, NULL);
    gort_wg_wait(&wg);
    return 0;
}
static int some_await(int argc, char **argv) {
    all_try(argc, argv);
    for (int i = 0; i < USERS; i++) goes(awaits);
    finish();
    wait_until(get(&got) == USERS);
    return 0;
}
/* The main goroutine has the number 1 each time. */
static int takes(int argc, char **argv) {
    CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    CHECK_EQ(pthread_mutex_lock(&checked), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
    return 0;
}
static void test_locks(void) {
    pthread_mutexattr_t a;
    CHECK_EQ(pthread_mutexattr_init(&a), 0);
    CHECK_EQ(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE), 0);
    CHECK_EQ(pthread_mutex_init(&recursive, &a), 0);
    CHECK_EQ(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK), 0);
    CHECK_EQ(pthread_mutex_init(&checked, &a), 0);
    CHECK_EQ(pthread_rwlock_init(&rw, NULL), 0);
    anew();
    gort_main(leaves_locks, 0, NULL);
    gort_main(all_try, 0, NULL);
    gort_main(some_await, 0, NULL);
    gort_main(takes, 0, NULL); /* and it ends with them */
    gort_main(all_try, 0, NULL);
}

int main(int argc, char **argv) {
    check_hooked();
    alarm(100); /* or it hangs */
    if (argc == 1 || strcmp(argv[1], "keys") == 0) test_keys();
    if (argc == 1 || strcmp(argv[1], "locks") == 0) test_locks();
    return 0;
}
