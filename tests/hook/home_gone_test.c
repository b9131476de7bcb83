// A goroutine waits in a hooked call, and its thread ends meanwhile: another one ends locked to it.
// Plain threads come and go, and get what the runtime kept for that thread. The goroutine runs all
// the same when what it waits for has come.
#include "../lib/test.h"

#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 200, PLAIN = 6 };
static int fd[2], done, rounds_over; // atomic: the last two
static gort_chan *ch;

static void reads(void *arg) {
    char c;
    CHECK_EQ(read(fd[0], &c, 1), 1);
    add(&done, 1);
}

static void ends_locked(void *arg) { gort_lock_thread(); }

static void *comes_and_goes(void *arg) {
    int64_t v;
    gort_chan_try_recv(ch, &v);
    return NULL;
}
static void *crowd(void *arg) {
    while (!get(&rounds_over)) {
        pthread_t threads[PLAIN];
        for (int i = 0; i < PLAIN; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, comes_and_goes, NULL), 0);
        for (int i = 0; i < PLAIN; i++) pthread_join(threads[i], NULL);
    }
    return NULL;
}

static int run(int argc, char **argv) {
    pthread_t thread;
    ch = gort_chan_new(8, 0);
    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(pthread_create(&thread, NULL, crowd, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 4; k++) gort_go(reads, NULL);
        gort_sleep(100 * GORT_US);
        for (int k = 0; k < 8; k++) gort_go(ends_locked, NULL);
        gort_sleep(500 * GORT_US);
        CHECK_EQ(write(fd[1], "abcd", 4), 4);
        wait_until(get(&done) == 4 * (i + 1));
    }
    set(&rounds_over, 1);
    pthread_join(thread, NULL);
    gort_chan_release(ch);
    return 0;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
