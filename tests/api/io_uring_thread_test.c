#define _GNU_SOURCE 1
/* The kernel cancels what a thread has handed to the io_uring when that thread ends. Nobody asked
 * for it: whoever waits for a file gets the file's answer, never -ECANCELED. Threads end with
 * goroutines that are locked to them, which may have handed entries over before they were. A plain
 * thread that closes a descriptor takes entries out of the ring. */
#include "../lib/test.h"
#include "../lib/io_net.h"

#include <pthread.h>

#define FILES 200
#define ROUNDS (2000 / TEST_SCALE)

static int fds[FILES], stop, ended, busy;
static uint64_t syncs;

static void works(void *arg) {
    int fd = *(int *)arg;
    char b[8] = "abcdefg", c[8];
    while (!get(&stop)) {
        CHECK_EQ(gort_pwrite(fd, b, sizeof b, 4096), sizeof b);
        CHECK_EQ(gort_fsync(fd), 0);
        CHECK_EQ(gort_pread(fd, c, sizeof c, 4096), sizeof c);
        CHECK_EQ(memcmp(b, c, sizeof b), 0);
        add(&syncs, 1);
    }
    add(&busy, -1);
}

/* A goroutine's close hands over whatever stands in the ring. */
static void clear_ring(void) {
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_close(fd), 0);
    add(&ended, 1);
}

/* Takes its thread along when it ends. */
static void ends(void *arg) {
    clear_ring();
    gort_lock_thread();
}

static void *closes(void *arg) {
    clear_ring();
    return NULL;
}

static int run(int argc, char **argv) {
    char path[128];
    snprintf(path, sizeof path, "%s/gort-uring.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    for (int i = 0; i < FILES; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/%d", path, i);
        fds[i] = gort_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_GE(fds[i], 0);
        unlink(name);
        add(&busy, 1);
        CHECK_EQ(gort_go(works, &fds[i]), 0);
    }
    rmdir(path);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t t;
        set(&ended, 0);
        CHECK_EQ(gort_go(ends, NULL), 0);
        CHECK_EQ(pthread_create(&t, NULL, closes, NULL), 0);
        CHECK_EQ(pthread_detach(t), 0);
        wait_until(get(&ended) == 2);
    }
    set(&stop, 1);
    wait_until(get(&busy) == 0);
    CHECK_GT(get(&syncs), 0);
    for (int i = 0; i < FILES; i++) CHECK_EQ(gort_close(fds[i]), 0);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
