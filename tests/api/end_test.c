/* What outlives a runtime: objects, libc's locks, deadlines, plain threads. One case each;
 * end_stress mixes them. */
#include "../lib/waiting.h"
#include "../lib/test.h"
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static gort_mutex mu;
static gort_rwmutex rw;
static gort_cond cond;
static gort_mutex cond_mu;
static gort_sem sem;
static gort_wg wg;
static int waiting, woken;
static FILE *null;

#define WAITER(name, wait)        \
    static void name(void *arg) { \
        add(&waiting, 1);         \
        wait;                     \
        add(&woken, 1);           \
    }
WAITER(locks, gort_mutex_lock(&mu))
WAITER(reads, gort_rwmutex_rlock(&rw))
WAITER(writes, gort_rwmutex_lock(&rw))
WAITER(acquires, gort_sem_acquire(&sem, 1))
WAITER(waits, gort_wg_wait(&wg))
WAITER(waits_cond, (gort_mutex_lock(&cond_mu), gort_cond_wait(&cond, &cond_mu)))

/* ---- objects --------------------------------------------------------------------------------- */

static int leaves_waiters(int argc, char **argv) {
    gort_fn *all[] = {locks, reads, writes, acquires, waits, waits_cond};
    gort_mutex_lock(&mu);
    gort_rwmutex_lock(&rw);
    gort_wg_add(&wg, 1);
    set(&waiting, 0);
    for (int i = 0; i < 6; i++) CHECK_EQ(gort_go(all[i], NULL), 0);
    wait_until(get(&waiting) == 6);
    for (int i = 0; i < 10; i++) gort_yield();
    if (argc) { /* granted or woken, and they never run */
        gort_pin();
        gort_mutex_unlock(&mu);
        gort_sem_release(&sem, 1);
        gort_wg_done(&wg);
        gort_rwmutex_unlock(&rw);
        gort_cond_signal(&cond);
        gort_unpin();
    }
    return 0;
}

static void objects_are_free(void) {
    for (int round = 0; round < 20; round++) {
        bool granted = round % 2;
        CHECK_EQ(gort_main(leaves_waiters, granted, NULL), 0);
        if (!granted) {
            gort_mutex_unlock(&mu);
            gort_rwmutex_unlock(&rw);
            gort_sem_release(&sem, 1);
            gort_wg_done(&wg);
        }
        CHECK(gort_mutex_try_lock(&mu) == 0 || granted); /* one may have run and died with it */
        gort_mutex_unlock(&mu);
        CHECK_EQ(AT_REST(mu), 0);
        while (rw.readers_ >= 4) gort_rwmutex_runlock(&rw);
        if (rw.readers_) gort_rwmutex_unlock(&rw);
        CHECK_EQ(rw.readers_, 0);
        CHECK_EQ(AT_REST(rw.w_), 0);
        CHECK_LE(gort_sem_try_acquire(&sem, 1), 0);
        CHECK(sem.head_ == NULL && cond.head_ == NULL && wg.waiters_ == NULL);
        gort_cond_broadcast(&cond);
        gort_wg_wait(&wg);
        cond_mu = (gort_mutex){0};
        sem = (gort_sem){0};
    }
}

/* ---- libc ------------------------------------------------------------------------------------ */

static int printing, in_world;
static void prints(void *arg) {
    for (uint64_t i = 0;; i++) {
        fprintf(null, "%d of a line that takes a while %f\n", (int)i, 0.1 * (double)i);
        free(malloc(100 + i % 1000));
        add(&printing, 1);
    }
}

static int leaves_printers(int argc, char **argv) {
    set(&printing, 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(prints, NULL), 0);
    wait_until(get(&printing) > 100);
    for (int i = 0; i < 3; i++) {
        gort_stop_world();
        fprintf(null, "with the world stopped\n");
        free(malloc(1000));
        add(&in_world, 1);
        gort_start_world();
        gort_sleep(12 * GORT_MS);
    }
    return 0;
}

static void libc_is_free(void) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_main(leaves_printers, 0, NULL), 0);
        int before = get(&printing);
        fprintf(null, "after the end\n");
        free(malloc(1000));
        CHECK_EQ(get(&printing), before);
    }
    CHECK_EQ(in_world, 30);
}

/* ---- calls nobody announced ------------------------------------------------------------------ */

#ifndef __SANITIZE_THREAD__ /* there it comes back (init.c) */
static int came_back, napping, nap[2];
static void naps(void *arg) {
    char c;
    set(&napping, 1);
    if (read(nap[0], &c, 1) < 0) add(&came_back, 1);
    add(&came_back, 1);
    for (;;) add(&came_back, 1);
}
static int leaves_napper(int argc, char **argv) {
    set(&napping, 0);
    CHECK_EQ(gort_go(naps, NULL), 0);
    wait_until(get(&napping));
    gort_sleep(5 * GORT_MS);
    return 0;
}
static void naps_for_good(void) {
    CHECK_EQ(pipe(nap), 0);
    CHECK_EQ(gort_main(leaves_napper, 0, NULL), 0);
    CHECK_EQ(write(nap[1], "x", 1), 1); /* its call would be over now */
    usleep(150000);                     /* time to show for one that goes on */
    CHECK_EQ(get(&came_back), 0);
}
#else
static void naps_for_good(void) {}
#endif

/* ---- records, deadlines, threads ------------------------------------------------------------- */

static void locked(void *arg) {
    gort_lock_thread();
    add(&waiting, 1);
    gort_sleep(3600 * GORT_SEC);
}
static void ends(void *arg) { add(&woken, 1); }
static uint64_t made(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s.threads_created;
}
static int leaves_locked(int argc, char **argv) {
    set(&waiting, 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_go(locked, NULL), 0);
    wait_until(get(&waiting) == 20);
    return 0;
}
/* One that believed to be locked would take its thread with it. */
static int starts_others(int argc, char **argv) {
    uint64_t before = made();
    set(&woken, 0);
    for (int i = 0; i < 2000; i++) CHECK_EQ(gort_go(ends, NULL), 0);
    wait_until(get(&woken) == 2000);
    CHECK_LT(made() - before, 100);
    return 0;
}

static gort_ctx *late;
static int leaves_deadline(int argc, char **argv) {
    late = gort_ctx_with_deadline(NULL, gort_now() + 20 * GORT_MS);
    CHECK(late != NULL);
    return 0;
}

/* In any order, and so many that the test's time ends first where each looks for its place. */
#define DEADLINES (200000 / TEST_SCALE)
static gort_ctx *many[DEADLINES];
static int leaves_deadlines(int argc, char **argv) {
    uint64_t seed = 1;
    for (int i = 0; i < DEADLINES; i++) {
        int64_t later = (int64_t)(test_random(&seed) % 1000) * GORT_SEC;
        many[i] = gort_ctx_with_deadline(NULL, gort_now() + 3600 * GORT_SEC + later);
        CHECK(many[i] != NULL);
    }
    return 0;
}
static void deadlines_move(void) {
    CHECK_EQ(gort_main(leaves_deadlines, 0, NULL), 0);
    for (int i = 0; i < DEADLINES; i++) {
        CHECK_EQ(gort_ctx_err(many[i]), 0);
        gort_ctx_release(many[i]);
    }
}

static int selecting;
static void selects(void *arg) {
    gort_case cases[40];
    for (int i = 0; i < 40; i++) cases[i] = (gort_case){GORT_RECV, arg, NULL, 0};
    set(&selecting, 1);
    gort_select(cases, 40);
}
static int leaves_select(int argc, char **argv) {
    set(&selecting, 0);
    CHECK_EQ(gort_go(selects, argv), 0);
    wait_until(get(&selecting));
    for (int i = 0; i < 10; i++) gort_yield();
    return 0;
}

/* Many, so that malloc maps the memory of each poll: the sum tells whether it is given back. */
#define POLLED 2000
static int polled[2];
static void polls(void *arg) {
    struct pollfd f[POLLED];
    for (int i = 0; i < POLLED; i++) f[i] = (struct pollfd){.fd = polled[0], .events = POLLIN};
    gort_poll(f, POLLED, -1);
}
static int leaves_poll(int argc, char **argv) {
    CHECK_EQ(gort_go(polls, NULL), 0);
    wait_until(waiting_for("IO wait") == 1);
    return 0;
}
static void polls_are_forgotten(void) {
    size_t before = 0;
    CHECK_EQ(pipe(polled), 0);
    for (int i = 0; i < 30; i++) {
        CHECK_EQ(gort_main(leaves_poll, 0, NULL), 0);
        struct mallinfo2 now = mallinfo2();
        if (i == 9) before = now.uordblks + now.hblkhd;
        if (i > 9 && !SANITIZED)
            CHECK_LE(now.uordblks + now.hblkhd, before + sizeof polled * POLLED);
    }
}

static int quit;
static void nothing(void *arg) {}
static void *calls_in(void *arg) {
    for (int i = 0; !get(&quit); i++) {
        int r = i % 16 ? gort_go(nothing, NULL) : gort_maxprocs(1 + i / 16 % 3);
        CHECKF(r >= 0 || r == -ENOTCONN, "%d", r);
    }
    return NULL;
}
static int is_first(int argc, char **argv) {
    CHECK_EQ(gort_id(), 1);
    gort_yield();
    return 0;
}

/* ---- what was begun -------------------------------------------------------------------------- */

enum { KIDS = 5000 };
static gort_ctx *root, *kids[KIDS];
static gort_chan *kid_done[KIDS];

static void cancels(void *arg) {
    gort_ctx_cancel(root);
    for (;;) gort_yield();
}
/* Ends in the middle of it, where there are two Ps. */
static int leaves_cancel(int argc, char **argv) {
    CHECK_EQ(gort_go(cancels, NULL), 0);
    wait_until(gort_chan_try_recv(gort_ctx_done(root), NULL) == -EPIPE);
    return 0;
}

static void trees_are_whole(void) {
    for (int round = 0; round < 10; round++) {
        root = gort_ctx_new(NULL);
        for (int i = 0; i < KIDS; i++) {
            kids[i] = gort_ctx_new(i < KIDS / 2 ? root : kids[i - KIDS / 2]);
            kid_done[i] = gort_ctx_done(kids[i]);
        }
        CHECK_EQ(gort_main(leaves_cancel, 0, NULL), 0);
        for (int i = 0; i < KIDS; i++)
            CHECKF(gort_chan_try_recv(kid_done[i], NULL) == -EPIPE, "context %d of %d lives on", i,
                   KIDS);
        for (int i = 0; i < KIDS; i++) gort_ctx_release(kids[i]);
        gort_ctx_release(root);
    }
}

static gort_once once;
static int once_calls;
static void sleeps_long(void *arg) {
    add(&once_calls, 1);
    if (arg) gort_sleep(3600 * GORT_SEC);
}
static void does_once(void *arg) { gort_once_do(&once, sleeps_long, arg); }
static int leaves_once(int argc, char **argv) {
    CHECK_EQ(gort_go(does_once, &once), 0);
    CHECK_EQ(gort_go(does_once, &once), 0); /* waits for it */
    wait_until(get(&once_calls) == 1);
    for (int i = 0; i < 10; i++) gort_yield();
    return 0;
}
static int does_it_again(int argc, char **argv) {
    does_once(NULL);
    CHECK_EQ(get(&once_calls), 2);
    does_once(NULL);
    CHECK_EQ(get(&once_calls), 2);
    return 0;
}

/* Members that wait, that compute, that are in a blocking call, and that have never run. */
static int running;
static gort_group *group;
static long naps_in_call(void *arg) {
    add(&running, 1);
    usleep(200000);
    return 0;
}
static void member_of_wg(void *arg) {
    if (arg == &mu) gort_blocking(naps_in_call, NULL);
    add(&running, 1);
    if (arg == &sem) gort_sleep(3600 * GORT_SEC);
    for (;;) add(&woken, 1);
}
static int member_of_group(gort_ctx *c, void *arg) {
    CHECK_EQ(gort_ctx_err(c), 0);
    if (arg) gort_group_go(group, member_of_group, NULL); /* the group is full: it waits */
    member_of_wg(&sem);
    return 0;
}
static int leaves_members(int argc, char **argv) {
    set(&running, 0);
    CHECK_EQ(gort_wg_go(&wg, member_of_wg, &mu), 0);
    CHECK_EQ(gort_wg_go(&wg, member_of_wg, &sem), 0);
    CHECK_EQ(gort_group_go(group, member_of_group, NULL), 0);
    wait_until(get(&running) == 3);
    CHECK_EQ(gort_group_go(group, member_of_group, group), 0);
    CHECK_EQ(gort_wg_go(&wg, member_of_wg, NULL), 0);
    wait_until(get(&running) == 4);
    gort_pin();
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_wg_go(&wg, member_of_wg, NULL), 0);
    gort_unpin();
    return 0;
}

static void *waits_for_group(void *result) {
    *(int *)result = gort_group_wait(group);
    return NULL;
}
static void *waits_for_wg(void *arg) {
    gort_wg_wait(&wg);
    return NULL;
}

static void members_have_ended(void) {
    pthread_t t[2];
    int result = 1;
    gort_ctx *parent = gort_ctx_new(NULL), *below;
    group = gort_group_new(parent, 2);
    gort_wg_add(&wg, 1);
    CHECK_EQ(pthread_create(&t[0], NULL, waits_for_wg, NULL), 0);
    CHECK_EQ(gort_main(leaves_members, 0, NULL), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, waits_for_group, &result), 0);
    CHECK_EQ(pthread_join(t[1], NULL), 0);
    CHECK_EQ(result, -ENOTCONN);
    CHECK_EQ(wg.state_ >> 32, 1); /* what the program has added itself is its own */
    gort_wg_done(&wg);
    CHECK_EQ(pthread_join(t[0], NULL), 0);
    CHECK_EQ(gort_ctx_err(parent), 0);
    below = gort_ctx_new(parent);
    CHECK_EQ(gort_ctx_err(below), 0);
    gort_ctx_release(below);
    gort_ctx_release(parent);
}

/* ---- the live page --------------------------------------------------------------------------- */

#define MOST_FDS 1200 /* the library's own are from 1010 on, or from 100 */
static int descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < MOST_FDS; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
static int trace_files(void) {
    char path[40], to[40];
    int n = 0;
    for (int fd = 0; fd < MOST_FDS; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t k = readlink(path, to, sizeof to - 1);
        to[k > 0 ? k : 0] = 0;
        n += strstr(to, "memfd:gort-trace") != NULL;
    }
    return n;
}

static int client = -1;
/* Ends while the page records a trace for a client. */
static int leaves_trace(int argc, char **argv) {
    static const char ask[] = "GET /trace?seconds=600&token=t HTTP/1.1\r\n\r\n";
    char addr[64];
    snprintf(addr, sizeof addr, "unix:@end-test-%d", (int)getpid());
    CHECK_EQ(gort_debug_listen(addr), 0);
    client = gort_dial(addr, GORT_FOREVER);
    CHECK_GE(client, 0);
    CHECK_EQ(gort_write_full(client, ask, sizeof ask - 1), (long)sizeof ask - 1);
    wait_until(trace_files() >= 3); /* the page's two, and the trace's own */
    return 0;
}
static void page_has_gone(void) {
    int before = 0;
    setenv("GORT_HTTP_TOKEN", "t", 1);
    for (int round = 0; round < 5; round++) {
        CHECK_EQ(gort_main(leaves_trace, 0, NULL), 0);
        close(client);
        CHECK_EQ(gort_trace_start("/dev/null"), 0);
        CHECK_EQ(gort_trace_stop(), 0);
        if (round == 0) before = descriptors();
        CHECK_EQ(descriptors(), before);
    }
}

/* ---- a signal that was used up --------------------------------------------------------------- */

/* The goroutine was signalled and waits for its mutex when the runtime ends: a plain thread that
 * waits on the same condition gets the signal. */
static gort_cond bell;
static gort_mutex bell_mu;
static int at_bell, rung;

static void waits_for_bell(void *arg) {
    gort_mutex_lock(&bell_mu);
    add(&at_bell, 1);
    gort_cond_wait(&bell, &bell_mu);
    add(&rung, 1);
    gort_mutex_unlock(&bell_mu);
}
static void *thread_at_bell(void *arg) {
    waits_for_bell(NULL);
    return NULL;
}
static int rings_once(int argc, char **argv) {
    CHECK_EQ(gort_go(waits_for_bell, NULL), 0);
    wait_until(get(&at_bell) == 1);
    CHECK_EQ(pthread_create((pthread_t *)argv, NULL, thread_at_bell, NULL), 0);
    wait_until(get(&at_bell) == 2);
    gort_mutex_lock(&bell_mu);
    gort_cond_signal(&bell);
    for (int i = 0; i < 100; i++) gort_yield(); /* it wakes, and waits for the mutex */
    return 0;
}
static void signal_goes_on(void) {
    pthread_t t;
    CHECK_EQ(gort_main(rings_once, 0, (char **)&t), 0);
    gort_mutex_unlock(&bell_mu);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(get(&rung), 1);
}

/* ---- calls that are left behind -------------------------------------------------------------- */

/* What the code between gort_enter_syscall and gort_exit_syscall has begun goes on: a once is not
 * begun a second time meanwhile. Nor does it lose a lock of the library's own. */
static gort_once begun;
static int inside, begins, leave_it, watches, watched;
static gort_chan *ints;

static void stays_inside(void *arg) {
    add(&begins, 1);
    set(&inside, 1);
    while (!get(&leave_it)) continue;
}
static void in_region(void *arg) {
    gort_enter_syscall();
    gort_once_do(&begun, stays_inside, NULL);
    gort_exit_syscall();
}
static int leaves_region(int argc, char **argv) {
    CHECK_EQ(gort_go(in_region, NULL), 0);
    wait_until(get(&inside));
    return 0;
}
static long watches_signals(void *arg) {
    add(&watches, 1);
    for (int64_t until = gort_now() + 10 * GORT_MS; gort_now() < until;) {
        int r = gort_signal_notify(ints, SIGUSR1);
        CHECKF(r == 0 || r == -ENOTCONN, "gort_signal_notify: %d", r);
        gort_signal_stop(ints);
    }
    add(&watched, 1);
    return 0;
}
static void is_left_behind(void *arg) { gort_blocking(watches_signals, NULL); }
/* It is stopped for good with that lock, perhaps. */
static void watches_too(void *arg) {
    for (;;) {
        gort_signal_notify(ints, SIGUSR2);
        gort_signal_stop(ints);
    }
}
static int leaves_watcher(int argc, char **argv) {
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(watches_too, NULL), 0);
    CHECK_EQ(gort_go(is_left_behind, NULL), 0);
    wait_until(get(&watches) > argc);
    gort_sleep(2 * GORT_MS);
    return 0;
}
static void *joins_in(void *arg) {
    gort_once_do(&begun, stays_inside, NULL);
    return NULL;
}
static void left_calls_go_on(void) {
    pthread_t t;
    CHECK_EQ(gort_main(leaves_region, 0, NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, joins_in, NULL), 0);
    usleep(20000); /* time to show for a second one */
    CHECK_EQ(get(&begins), 1);
    set(&leave_it, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(get(&begins), 1);
    ints = gort_chan_new(sizeof(int), 1);
    for (int i = 0; i < 30; i++) {
        CHECK_EQ(gort_main(leaves_watcher, i, NULL), 0);
        wait_until(get(&watched) > i);
    }
}

int main(void) {
    null = fopen("/dev/null", "w");
    CHECK(null != NULL);
    objects_are_free();
    libc_is_free();
    naps_for_good();
    CHECK_EQ(gort_main(leaves_locked, 0, NULL), 0);
    CHECK_EQ(gort_main(starts_others, 0, NULL), 0);
    CHECK_EQ(gort_main(leaves_deadline, 0, NULL), 0);
    wait_until(gort_ctx_err(late) == -ETIMEDOUT);
    gort_ctx_release(late);
    deadlines_move();
    gort_chan *c = gort_chan_new(0, 0);
    CHECK_EQ(gort_main(leaves_select, 0, (char **)c), 0);
    gort_chan_release(c); /* nobody waits; ASan looks for the memory of the select */
    polls_are_forgotten();
    trees_are_whole();
    CHECK_EQ(gort_main(leaves_once, 0, NULL), 0);
    CHECK_EQ(gort_main(does_it_again, 0, NULL), 0);
    members_have_ended();
    page_has_gone();
    signal_goes_on();
    left_calls_go_on();
    pthread_t t[2];
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, calls_in, NULL), 0);
    for (int i = 0; i < 200; i++) CHECK_EQ(gort_main(is_first, 0, NULL), 0);
    set(&quit, 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    return 0;
}
