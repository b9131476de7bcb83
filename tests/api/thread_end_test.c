// not-with: emulation (qemu 7.2 cannot fork beside a thread that begins, nor execute for itself)
/*
 * gort_attr.thread at the ends: of the goroutine, of the runtime, of the parent.
 *
 * The end of a runtime takes a goroutine in the last steps of its own end. A child made between two
 * runtimes has none of the threads that the parent's goroutines were, also of those that had not
 * begun. What glibc keeps of a stack for modules to come is not the goroutine's. Where the kernel
 * refuses the thread that libc ends one on, the destructors of its keys wait until it does not.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 20, SEEDS = 40, CHILDREN = 20, SIZE = 16 << 10, OF_LIBC = 600 };
static const gort_attr thread = {.thread = 1};
static gort_wg wg;
static gort_chan *ints;
static int made;

static void start(const gort_attr *attr, gort_fn *fn) {
    gort_wg_add(&wg, 1);
    int r = gort_go_with(attr, fn, NULL);
    if (r == -ENOTSUP) SKIP("no goroutine can be a thread here");
    CHECK_EQ(r, 0);
}

/* ---- in the last steps ----------------------------------------------------------------------- */

static void sends(void *arg) {
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_chan_send(ints, &i), 0);
    gort_wg_done(&wg);
}
static void receives(void *arg) {
    int i;
    while (gort_chan_recv(ints, &i) == 0) {}
}
/* Returns while some have said that they are done, and end. */
static int ends_soon(int argc, char **argv) {
    ints = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(gort_go(receives, NULL), 0);
    for (int i = 0; i < LIVES; i++) start(&thread, sends);
    gort_wg_wait(&wg);
    return 3;
}

/* In a simulation each point of a goroutine's end may let others come first. */
static void try_seeds(void) {
    char seed[20];
    for (int i = 1; i <= SEEDS; i++) {
        snprintf(seed, sizeof seed, "%d", i);
        pid_t child = fork();
        if (child == 0) {
            setenv("GORT_SIM", seed, 1);
            _exit(gort_main(ends_soon, 0, NULL));
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECKF(WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 77),
               "seed %d: status %x", i, (unsigned)status);
    }
}

/* ---- a child of a process whose runtime has ended -------------------------------------------- */

static void nothing(void *arg) {}
static void says_so(void *arg) { gort_wg_done(&wg); }

static void makes(void *arg) {
    do add(&made, 1);
    while (gort_go_with(&thread, nothing, NULL) == 0);
}
/* Returns while a thread is made for a goroutine that will not begin. */
static int ends_early(int argc, char **argv) {
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(makes, NULL), 0);
    wait_until(get(&made) > argc);
    return 3;
}
static int lives_on(int argc, char **argv) {
    for (int i = 0; i < LIVES; i++) {
        start(&thread, says_so);
        gort_wg_wait(&wg);
    }
    wait_until(gort_count() == 1);
    return 42;
}

static void try_children(void) {
    for (int i = 0; i < CHILDREN; i++) {
        made = 0;
        CHECK_EQ(gort_main(ends_early, i % 7, NULL), 3);
        pid_t child = fork();
        if (child == 0) _exit(gort_main(lives_on, 0, NULL));
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", (unsigned)status);
    }
}

/* ---- room ------------------------------------------------------------------------------------ */

static void uses_its_stack(void *arg) {
    volatile char room[SIZE - OF_LIBC];
    for (size_t i = sizeof room; i > 0; i--) room[i - 1] = 1;
    gort_wg_done(&wg);
}
static int small(int argc, char **argv) {
    const gort_attr attr = {.thread = 1, .stack_size = SIZE};
    start(&attr, uses_its_stack);
    gort_wg_wait(&wg);
    return 0;
}

static void try_room(char *self) {
    pid_t child = fork();
    if (child == 0) {
        setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=60000", 1);
        execl(self, self, "small", NULL);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- no thread to end on --------------------------------------------------------------------- */

enum { NOBODY = 65534 };
static pthread_key_t key;
static int destroyed;

static void destroy(void *value) { add(&destroyed, 1); }
static void has_a_value(void *arg) {
    CHECK_EQ(pthread_setspecific(key, arg), 0);
    gort_chan_recv(ints, NULL);
    gort_wg_done(&wg);
}

static void limit_threads(rlim_t n) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NPROC, &limit), 0);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
}

static int ends_in_want(int argc, char **argv) {
    ints = gort_chan_new(sizeof(int), 0);
    gort_wg_add(&wg, LIVES);
    for (int i = 0; i < LIVES; i++) CHECK_EQ(gort_go_with(&thread, has_a_value, &destroyed), 0);
    limit_threads(1);
    gort_chan_close(ints);
    gort_wg_wait(&wg);
    wait_until(gort_count() == 1);
    limit_threads(RLIM_INFINITY);
    return 0;
}

/* A process of its own: the limit does not hold for root. */
static void try_want(void) {
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(pthread_key_create(&key, destroy), 0);
        if (geteuid() == 0) CHECK_EQ(setuid(NOBODY), 0);
        CHECK_EQ(gort_main(ends_in_want, 0, NULL), 0);
        CHECK_EQ(destroyed, LIVES);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static int probe(int argc, char **argv) {
    start(&thread, says_so);
    gort_wg_wait(&wg);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return gort_main(small, 0, NULL);
    if (!test_simulated()) try_seeds();
    CHECK_EQ(gort_main(probe, 0, NULL), 0);
    try_want();
    try_children();
    try_room(argv[0]);
    return 0;
}
