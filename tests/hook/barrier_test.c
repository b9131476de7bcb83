/*
 * Barriers: goroutines wait without a thread, beside plain threads in the same one; exactly one of
 * each round is the serial one; a barrier may be destroyed, and its memory be another's, as soon as
 * one has come back; process-shared ones are libc's. And spin locks, which are nobody's but the
 * program's: with one P, a goroutine that is preempted while it holds one goes on.
 */
#include "hook.h"
#include <sys/mman.h>

/* ---- many ------------------------------------------------------------------------------------ */

#define CROWD 500
#define ROUNDS 20
static pthread_barrier_t all;
static gort_wg wg;
static int serial[ROUNDS], arrived[ROUNDS];

static void rounds(void) {
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&arrived[i], 1, __ATOMIC_SEQ_CST);
        int r = pthread_barrier_wait(&all);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        CHECK_EQ(get(&arrived[i]), CROWD + 2); /* nobody is let through before the last has come */
        if (r != 0) __atomic_fetch_add(&serial[i], 1, __ATOMIC_SEQ_CST);
    }
}
static void goes_round(void *arg) {
    rounds();
    gort_wg_done(&wg);
}
static void *thread_goes_round(void *arg) {
    rounds();
    return NULL;
}
static void test_crowd(void) {
    pthread_t t[2];
    uint64_t before = threads();
    CHECK_EQ(pthread_barrier_init(&all, NULL, CROWD + 2), 0);
    gort_wg_add(&wg, CROWD);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(goes_round, NULL), 0);
    wait_for_waiting("semacquire", CROWD); /* all of them, and no thread for any */
    /* a few: on a busy machine some are preempted on their way */
    CHECK_LE(threads(), before + CROWD / 10);
    CHECK_EQ(pthread_barrier_destroy(&all), EBUSY);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, thread_goes_round, NULL), 0);
    gort_wg_wait(&wg);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < ROUNDS; i++) CHECK_EQ(serial[i], 1);
    CHECK_EQ(pthread_barrier_destroy(&all), 0);
}

/* ---- destroyed at once ----------------------------------------------------------------------- */

#define FEW 3
#define TIMES 300
static void *meets(void *barrier) {
    if (pthread_barrier_wait(barrier) == 0) return NULL;
    CHECK_EQ(pthread_barrier_destroy(barrier), 0);   /* the others may not have come back */
    CHECK_EQ(mprotect(barrier, 4096, PROT_NONE), 0); /* nobody looks at it any more */
    return NULL;
}
static void goroutine_meets(void *arg) {
    meets(arg);
    gort_wg_done(&wg);
}
static void test_destroy(void) {
    char *memory =
        mmap(NULL, TIMES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < TIMES; i++) {
        pthread_barrier_t *m = (void *)(memory + i * 4096);
        pthread_t t;
        CHECK_EQ(pthread_barrier_init(m, NULL, FEW), 0);
        gort_wg_add(&wg, FEW - 1);
        CHECK_EQ(pthread_create(&t, NULL, meets, m), 0);
        for (int k = 0; k < FEW - 1; k++) CHECK_EQ(gort_go(goroutine_meets, m), 0);
        gort_wg_wait(&wg);
        CHECK_EQ(pthread_join(t, NULL), 0);
    }
    munmap(memory, TIMES * 4096);
}

/* ---- more than it counts, one, none, shared -------------------------------------------------- */

static int tickets, firsts;
static void passes(void *arg) {
    while (__atomic_fetch_add(&tickets, 1, __ATOMIC_SEQ_CST) < 400)
        if (pthread_barrier_wait(&all) != 0) __atomic_fetch_add(&firsts, 1, __ATOMIC_SEQ_CST);
    gort_wg_done(&wg);
}
static void test_more(void) { /* 4 use one of 2: 200 rounds, whoever meets whom */
    CHECK_EQ(pthread_barrier_init(&all, NULL, 2), 0);
    gort_wg_add(&wg, 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(passes, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(firsts, 200);
    CHECK_EQ(pthread_barrier_destroy(&all), 0);
}
static void test_edges(void) {
    CHECK_EQ(pthread_barrier_init(&all, NULL, 0), EINVAL);
    CHECK_EQ(pthread_barrier_init(&all, NULL, 1), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_barrier_wait(&all), PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_EQ(pthread_barrier_destroy(&all), 0);
}
static void test_shared(void) {
    pthread_barrierattr_t attr;
    pthread_barrier_t *b =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(pthread_barrierattr_init(&attr), 0);
    CHECK_EQ(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    memset(b, 0xff, sizeof *b);
    CHECK_EQ(pthread_barrier_init(b, NULL, 5), 0); /* what was there before does not matter */
    CHECK_EQ(pthread_barrier_destroy(b), 0);
    CHECK_EQ(pthread_barrier_init(b, &attr, 2), 0);
    pid_t child = fork();
    if (child == 0) _exit(pthread_barrier_wait(b) > 0);
    int r = pthread_barrier_wait(b), status;
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    munmap(b, 4096);
}

/* ---- spin locks ------------------------------------------------------------------------------ */

static pthread_spinlock_t spin;
static int turns;
static volatile uint64_t work;
static void spins(void *arg) {
    for (int i = 0; i < 10; i++) {
        pthread_spin_lock(&spin);
        int64_t until = gort_now() + 4 * GORT_MS; /* a slice ends in the middle now and then */
        while (gort_now() < until) work++;
        turns++;
        pthread_spin_unlock(&spin);
    }
    gort_wg_done(&wg);
}
static void test_spin(void) {
    CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
    gort_wg_add(&wg, 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(spins, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(turns, 40);
}

static int run(int argc, char **argv) {
    test_crowd();
    test_destroy();
    test_more();
    test_edges();
    test_shared();
    test_spin();
    return 0;
}

HOOK_MAIN(run)
