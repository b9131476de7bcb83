/*
 * Everything that may happen to a thread while it is somebody's home: it blocks in a call that
 * nobody hooked, hands off, is preempted, gets locked, ends with a locked goroutine. Nobody is
 * lost: all come to their end.
 */
#include "hook.h"

#define PAIRS 24
#define ROUNDS 12
static int pairs[PAIRS][2], done;

static void spin(int64_t ns) {
    for (int64_t from = gort_now(); gort_now() - from < ns;) {}
}

/* A loop that calls nothing: only a signal stops it. */
static void compute(void) {
    for (volatile long i = 0; i < 20000000; i++) {}
}

static long nap(void *arg) {
    struct timespec ts = {0, 300000};
    return syscall(SYS_nanosleep, &ts, NULL);
}

static void disturb(uint64_t *seed) {
    switch (test_random(seed) % 12) {
    case 0: nap(NULL); break; /* unannounced */
    case 1: gort_blocking(nap, NULL); break;
    case 2: spin(200 * GORT_US); break;
    case 3:
        gort_lock_thread();
        usleep(100);
        gort_unlock_thread();
        break;
    case 4: gort_yield(); break;
    case 5: usleep(100); break;
    case 6: gort_sleep(50 * GORT_US); break;
    case 7:
        if (test_random(seed) % 8 == 0) compute();
        break;
    default: break;
    }
}

static void echo(void *arg) {
    int *pair = arg;
    char c;
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    while (read(pair[1], &c, 1) == 1) {
        disturb(&seed);
        CHECK_EQ(write(pair[1], &c, 1), 1);
    }
    add(&done, 1);
}

static void guest(void *arg) {
    int *pair = arg;
    uint64_t seed = (uint64_t)(uintptr_t)arg * 3 + (uint64_t)gort_now();
    for (int i = 0; i < ROUNDS; i++) {
        char c = (char)i;
        CHECK_EQ(write(pair[0], &c, 1), 1);
        disturb(&seed);
        CHECK_EQ(read(pair[0], &c, 1), 1);
        CHECK_EQ(c, (char)i);
    }
    close(pair[0]);
    add(&done, 1);
}

/* Takes its thread with it, home or not. */
static void doomed(void *arg) {
    usleep(200);
    gort_lock_thread();
    usleep(200);
    add(&done, 1);
}

static int run(int argc, char **argv) {
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        gort_go(echo, pairs[i]);
        gort_go(guest, pairs[i]);
        if (i % 3 == 0) gort_go(doomed, NULL);
    }
    wait_until(get(&done) == 2 * PAIRS + PAIRS / 3);
    return 0;
}
HOOK_MAIN(run)
