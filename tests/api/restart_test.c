/* gort_main may be called again, any number of times, whatever was left running. */
#include "../lib/test.h"
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

static uint64_t spins;
static gort_chan *kept; /* lives through all of them */

static void sleeper(void *arg) { gort_sleep(3600 * GORT_SEC); }
static void receiver(void *arg) { gort_chan_recv(arg, NULL); }
static void spinner(void *arg) {
    set((int *)arg, 1);
    for (;;) __atomic_add_fetch(&spins, 1, __ATOMIC_RELAXED);
}
static void locked(void *arg) {
    gort_lock_thread();
    gort_sleep(3600 * GORT_SEC);
}
static void yielder(void *arg) {
    for (;;) gort_yield();
}
static void adds(void *arg) { add((int *)arg, 1); }

static int threads(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static long naps(void *arg) {
    usleep(300);
    return 0;
}

/* Its thread comes back from the call at any moment of the end, and later. */
static void blocker(void *arg) {
    for (;;) gort_blocking(naps, NULL);
}

static int body(int argc, char **argv) {
    static int sum, spinning;
    CHECK_EQ(gort_id(), 1);
    CHECK_EQ(gort_count(), 1);
    int before = get(&sum);
    for (int i = 0; i < 50; i++) CHECK_EQ(gort_go(adds, &sum), 0);
    wait_until(get(&sum) == before + 50);
    CHECK_EQ(gort_chan_send(kept, &argc), 0);
    CHECK_EQ(gort_go(sleeper, NULL), 0);
    CHECK_EQ(gort_go(receiver, NULL), 0); /* a NULL channel: for ever */
    CHECK_EQ(gort_go(locked, NULL), 0);
    CHECK_EQ(gort_go(yielder, NULL), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(gort_go(blocker, NULL), 0);
    if (argc % 10 == 0) {
        set(&spinning, 0);
        CHECK_EQ(gort_go(spinner, &spinning), 0);
        wait_until(get(&spinning));
    }
    return argc;
}

static void *start(void *arg) { return (void *)(intptr_t)gort_main(body, 7, NULL); }

int main(void) {
    kept = gort_chan_new(sizeof(int), 200);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_main(body, i, NULL), i);
        CHECK_EQ(gort_count(), 0);
        CHECK_EQ(gort_chan_len(kept), i + 1);
    }
    uint64_t before = get(&spins);
    usleep(20000);
    CHECK_EQ(get(&spins), before); /* nobody of them runs any more */
    /* Threads of ended runtimes go away; one may be kept for a while, not one from each. */
    wait_until(threads() < 60);
    pthread_t t; /* another thread may be the caller */
    void *r;
    CHECK_EQ(pthread_create(&t, NULL, start, NULL), 0);
    CHECK_EQ(pthread_join(t, &r), 0);
    CHECK_EQ((intptr_t)r, 7);
    for (int v, i = 0; i < 100; i++) {
        CHECK_EQ(gort_chan_recv(kept, &v), 0);
        CHECK_EQ(v, i);
    }
    gort_chan_release(kept);
    return 0;
}
