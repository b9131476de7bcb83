/* gort_stats: every number is the one the contract says, and counters never go back. */
#include "../lib/test.h"
#include <unistd.h>

static int stop, spinning, counted;

static gort_stats now(void) {
    gort_stats s;
    gort_stats_read(&s);
    return s;
}

static void waits(void *arg) { gort_chan_recv(arg, NULL); }
static void sleeps(void *arg) { gort_sleep(3600 * GORT_SEC); }
static void spins(void *arg) {
    add(&spinning, 1);
    while (!get(&stop)) {}
}
static void churn(void *arg) {
    while (!get(&stop)) gort_yield();
}
static void nothing(void *arg) {}
static void counts(void *arg) { add(&counted, 1); }
static long naps(void *arg) {
    usleep(1000);
    return 0;
}

static void counts_of_things(void) {
    gort_chan *c = gort_chan_new(0, 0);
    gort_stats a = now();
    CHECK_EQ(a.goroutines, 1);
    CHECK_EQ(a.maxprocs, gort_maxprocs(0));
    CHECK_LE(a.idle_procs, a.maxprocs - 1); /* main runs on one */
    CHECK_GE(a.threads, 2);                 /* this one and the monitor */
    CHECK_LT(a.idle_threads, a.threads);
    CHECK_GE(a.stack_bytes_reserved, 200 * 1024);
    for (int i = 0; i < 100; i++) CHECK_EQ(gort_go(waits, c), 0);
    gort_stats b = now();
    CHECK_EQ(b.goroutines, 101);
    CHECK_EQ(b.goroutines_created, a.goroutines_created + 100);
    wait_until(now().switches >= a.switches + 100);
    CHECK_GE(now().stack_bytes_reserved, 100 * (now().stack_mode == 2 ? 1536 : 200 * 1024));
    gort_chan_close(c);
    wait_until(now().goroutines == 1);
    CHECK_EQ(now().goroutines_created, a.goroutines_created + 100);
    wait_until(now().global_queue == 0 && now().local_queues == 0);
    gort_chan_release(c);
}

static void timers_are_counted(void) {
    gort_stats a = now();
    gort_timer *t = gort_timer_new(3600 * GORT_SEC, nothing, NULL);
    CHECK_EQ(now().timers, a.timers + 1);
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_go(sleeps, NULL), 0);
    wait_until(now().timers == a.timers + 11); /* wait_until does not sleep while it is true */
    CHECK_EQ(gort_timer_stop(t), 1);
    wait_until(now().timers == a.timers + 10);
    gort_timer_free(t);
}

static void decisions_are_counted(void) {
    gort_stats a = now();
    for (int i = 0; i < 5; i++) CHECK_EQ(gort_blocking(naps, NULL), 0);
    CHECK_EQ(now().syscalls_blocking, a.syscalls_blocking + 5);
    CHECK_GE(now().handoffs, a.handoffs);
    int procs = gort_maxprocs(1);
    for (int i = 0; i < 3; i++) gort_yield();
    wait_until(now().global_gets > a.global_gets);
    CHECK_EQ(gort_go(spins, NULL), 0);
    wait_until(get(&spinning)); /* main got the P back from a loop without a call */
    CHECK_GT(now().preempt_requests, a.preempt_requests);
    CHECK_GT(now().preemptions, a.preemptions);
    CHECK_GE(now().preempt_requests, now().preemptions);
    set(&stop, 1);
    gort_maxprocs(procs);
}

/* Pinned, main keeps its P, and what it starts stays in that P's own queue: only a thief can run
 * it. */
static void steals_are_counted(void) {
    if (gort_maxprocs(0) < 2) return;
    set(&counted, 0);
    CHECK_GE(gort_pin(), 0);
    gort_stats a = now();
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_go(counts, NULL), 0);
    while (get(&counted) == 0) {}
    gort_stats s = now();
    gort_unpin();
    CHECK_GT(s.steals, a.steals);
    CHECK_GE(s.stolen - a.stolen, s.steals - a.steals);
    wait_until(get(&counted) == 10);
}

#define NOT_BACK(field) CHECK_GE(b.field, a.field)
static void counters_never_go_back(void) {
    set(&stop, 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(gort_go(churn, NULL), 0);
    gort_stats a = now();
    for (int i = 0; i < 1200; i++) {
        CHECK_EQ(gort_go(nothing, NULL), 0);
        gort_stats b = now();
        NOT_BACK(goroutines_created);
        NOT_BACK(switches);
        NOT_BACK(steals);
        NOT_BACK(stolen);
        NOT_BACK(global_gets);
        NOT_BACK(overflows);
        NOT_BACK(handoffs);
        NOT_BACK(preempt_requests);
        NOT_BACK(preemptions);
        NOT_BACK(netpoll_wakeups);
        NOT_BACK(syscalls_blocking);
        CHECK_LE(b.goroutines, b.goroutines_created);
        CHECK_LE(b.idle_procs, b.maxprocs);
        CHECK_LE(b.idle_threads, b.threads);
        a = b;
        if (i % 100 == 0) {
            gort_maxprocs(1 + i / 100 % 8); /* a P that goes away takes nothing with it */
            gort_yield();
        }
    }
    set(&stop, 1);
}

/* A program of another version has fewer fields or more. */
static void sizes_differ(void) {
    struct {
        uint64_t fields[3], behind;
    } old;
    struct {
        gort_stats known;
        uint64_t fields[2], behind;
    } young;
    memset(&old, 0xa5, sizeof old);
    memset(&young, 0xa5, sizeof young);
    gort_stats_read_sized((gort_stats *)(void *)&old, sizeof old.fields);
    CHECK_EQ(old.fields[0], 1); /* goroutines */
    CHECK_EQ(old.fields[2], gort_maxprocs(0));
    CHECK_EQ(old.behind, 0xa5a5a5a5a5a5a5a5);
    gort_stats_read_sized(&young.known, sizeof young - sizeof young.behind);
    CHECK_EQ(young.known.goroutines, 1);
    CHECK_EQ(young.known.maxprocs, gort_maxprocs(0));
    CHECK(young.fields[0] == 0 && young.fields[1] == 0);
    CHECK_EQ(young.behind, 0xa5a5a5a5a5a5a5a5);
    memset(&old, 0xa5, sizeof old);
    gort_stats_read_sized((gort_stats *)(void *)&old, 0);
    CHECK_EQ(old.fields[0], 0xa5a5a5a5a5a5a5a5);
}

/* Behind the inline function of the header, the library's, for callers without a header. Its size
 * is that of version 0.1 for ever: 33 fields. */
void library_stats_read(gort_stats *) __asm__("gort_stats_read");
static void without_a_header(void) {
    uint64_t fields[sizeof(gort_stats) / sizeof(uint64_t) + 1];
    enum { FIRST = 33 };
    memset(fields, 0xa5, sizeof fields);
    library_stats_read((gort_stats *)(void *)fields);
    CHECK_EQ(fields[0], 1);
    CHECK_EQ(fields[FIRST - 1], now().descriptors_remade);
    CHECK_EQ(fields[FIRST], 0xa5a5a5a5a5a5a5a5);
}

static int body(int argc, char **argv) {
    sizes_differ();
    without_a_header();
    counts_of_things();
    timers_are_counted();
    decisions_are_counted();
    steals_are_counted();
    counters_never_go_back();
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
