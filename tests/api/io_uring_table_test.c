#define _GNU_SOURCE 1
/* A thread may have a descriptor table of its own, unshare(2): the one that a goroutine is locked
 * to, and a plain one. Its calls at an offset mean its own file, and no close of its makes another
 * goroutine's call mean a file of its table. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#define WRITERS 8
#define RECORDS (300 / TEST_SCALE)

static int number; /* in every table, and another file in each */
static int ours, stop, closers, forbidden;

static int new_file(void) {
    int fd =
        open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    return fd;
}

static long size_of(int fd) {
    struct stat st;
    CHECK_EQ(fstat(fd, &st), 0);
    return st.st_size;
}

/* The file that `number` is in the table that begins here. */
static int own_table(void) {
    if (unshare(CLONE_FILES) != 0) {
        add(&forbidden, 1);
        return -1;
    }
    int fd = new_file();
    CHECK_EQ(dup2(fd, number), number);
    return fd;
}

static void writes_its_own(void *arg) {
    char b[8] = "private", c[8];
    gort_lock_thread();
    int mine = own_table();
    for (int i = 0; mine >= 0 && i < 200; i++) {
        CHECK_EQ(gort_pwrite(number, b, sizeof b, i * 8), sizeof b);
        CHECK_EQ(gort_fsync(number), 0);
        CHECK_EQ(gort_pread(number, c, sizeof c, i * 8), sizeof c);
        CHECK_EQ(memcmp(b, c, sizeof b), 0);
        CHECK_EQ(size_of(mine), (i + 1) * 8);
    }
    set(&stop, 1);
}

/* A close sees to what stands in the ring. fd: a number that is in use in this table only, as the
 * library's notes are by number. */
static void closes(int fd) {
    int mine = own_table();
    while (!get(&stop)) {
        CHECK_EQ(dup2(1, fd), fd);
        CHECK_EQ(gort_close(fd), 0);
        if (mine >= 0) CHECK_EQ(size_of(mine), 0);
        gort_yield();
    }
    add(&closers, -1);
}

static void closes_locked(void *arg) {
    gort_lock_thread();
    closes(number + 1);
}

static void *closes_plain(void *arg) {
    closes(number + 2);
    return NULL;
}

static void writes_ours(void *arg) {
    long i = (long)arg;
    for (int k = 0; k < RECORDS; k++, i += WRITERS)
        CHECK_EQ(gort_pwrite(number, "others..", 8, i * 8), 8);
}

static void check_ours(void) {
    char b[8];
    CHECK_EQ(size_of(ours), 8L * WRITERS * RECORDS);
    for (long i = 0; i < (long)WRITERS * RECORDS; i++) {
        CHECK_EQ(pread(ours, b, 8, i * 8), 8);
        CHECK_EQ(memcmp(b, "others..", 8), 0);
    }
}

static int run(int argc, char **argv) {
    pthread_t t;
    gort_wg wg = {0};
    ours = new_file();
    number = fcntl(ours, F_DUPFD_CLOEXEC, 200);
    CHECK_GE(number, 200);
    CHECK_EQ(gort_go(writes_its_own, NULL), 0);
    wait_until(get(&stop) == 1);
    CHECK_EQ(size_of(ours), 0);
    set(&stop, 0);
    set(&closers, 2);
    CHECK_EQ(gort_go(closes_locked, NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, closes_plain, NULL), 0);
    for (long i = 0; i < WRITERS; i++) CHECK_EQ(gort_wg_go(&wg, writes_ours, (void *)i), 0);
    gort_wg_wait(&wg);
    set(&stop, 1);
    wait_until(get(&closers) == 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    check_ours();
    return get(&forbidden) ? 77 : 0;
}

int main(int argc, char **argv) {
#ifdef __SANITIZE_THREAD__
    SKIP("TSan takes the same number in two tables for the same descriptor");
#endif
    return gort_main(run, argc, argv);
}
