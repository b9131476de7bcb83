/*
 * The end of a runtime while its goroutines are in hooked calls: what libc's objects have of them
 * is taken back, and no descriptor stays.
 */
#include "hook.h"
#include <linux/futex.h>

static int came;

static void start(void (*fn)(void *)) { CHECK_EQ(gort_go(fn, NULL), 0); }

/* ---- a barrier that one waits in ------------------------------------------------------------- */

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
    set(&came, 0);
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
    /* arrived: barrier.c */
    if (argc == 0) wait_until(((volatile uint32_t *)(void *)&pair)[0] == 2);
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

/* ---- a once whose routine is under way ------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ran;
static bool stays, exits;

static void init(void) {
    if (exits) gort_exit();
    if (stays) sleep(1000);
    add(&ran, 1);
}
static void calls(void *arg) {
    CHECK_EQ(pthread_once(&once, init), 0);
    CHECK_EQ(get(&ran), 1);
    add(&came, 1);
}
static void *thread_calls(void *arg) {
    calls(arg);
    return NULL;
}
static int one_stays(int argc, char **argv) {
    stays = true;
    start(calls);
    wait_for_waiting("sleep", 1);
    start(calls);
    wait_for_waiting("semacquire", 1);
    if (argc) CHECK_EQ(pthread_create((pthread_t *)(void *)argv, NULL, thread_calls, NULL), 0);
    if (argc) gort_sleep(20 * GORT_MS); /* most often it waits in libc by then */
    CHECK_EQ(get(&came), 0);
    stays = false;
    return 0;
}
static int two_call(int argc, char **argv) {
    start(calls);
    start(calls);
    wait_until(get(&came) == 2);
    return 0;
}
static int one_exits(int argc, char **argv) {
    exits = true;
    start(calls);
    {
        gort_stats st;
        do gort_yield(), gort_stats_read(&st);
        while (st.goroutines > 1);
    };
    exits = false;
    return two_call(argc, argv);
}
static void anew(void) {
    pthread_once_t fresh = PTHREAD_ONCE_INIT;
    once = fresh;
    set(&ran, 0);
    set(&came, 0);
}
static void test_once(void) {
    pthread_t t;
    gort_main(one_stays, 0, NULL);
    gort_main(one_stays, 0, NULL);
    gort_main(two_call, 0, NULL);
    anew();
    gort_main(one_stays, 1, (char **)(void *)&t); /* the thread that waits runs it */
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(get(&ran), 1);
    anew();
    gort_main(one_exits, 0, NULL);
}
/* A child of fork counts its onces from another word. */
static void test_once_in_child(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        anew();
        alarm(100);
        test_once();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static int open_files(void) {
    int n = 0;
    for (int fd = 0; fd < 1000; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
static void check_files(int (*fn)(int, char **), int times) {
    gort_main(fn, 0, NULL); /* what stays open for all runtimes */
    int before = open_files();
    for (int i = 0; i < times; i++) gort_main(fn, i, NULL);
    CHECK_EQ(open_files(), before);
}

static pid_t child;
static void awaits(void *arg) { waitpid(child, NULL, 0); }
static int one_awaits(int argc, char **argv) {
    for (int i = 0; i < 10; i++) start(awaits);
    if (argc % 2) wait_for_waiting("IO wait", 10);
    return 0;
}
static void test_waitpid(void) {
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    check_files(one_awaits, 30);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

/* Who waits for a shared futex asks for the maps of the process after 31 ms; these are many, and so
 * are those who ask. */
static uint32_t words[100];
static void waits_shared(void *word) { syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static int many_ask(int argc, char **argv) {
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_go(waits_shared, &words[i]), 0);
    wait_for_waiting("semacquire", 100);
    gort_sleep(30 * GORT_MS + argc * 5 * GORT_MS);
    return 0;
}
static void test_maps(void) {
    for (int i = 0; i < 300; i++)
        CHECK(mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    check_files(many_ask, 10);
}

int main(void) {
    check_hooked();
    test_once_in_child();
    test_once();
    test_barrier();
    test_barrier_beside();
    test_waitpid();
    test_maps();
    return 0;
}
