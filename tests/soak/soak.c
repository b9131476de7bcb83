/*
 * Everything at once, for a long time: `make soak MINUTES=n`, which also stops and continues the
 * process and runs it at 1, 2 and 16 Ps (tests/soak/run).
 *
 *   soak SECONDS [SEED]
 *
 * A watcher sees every ten seconds that each part has done something (one that stands still while
 * the process has used a minute of CPU is a hang: all goroutines are shown), and that memory and
 * descriptors stay where they were after the first minute. Time in which the process was stopped
 * does not count: the watcher notices that it has slept too long itself.
 *
 * Clock jumps. The library asks CLOCK_MONOTONIC, which jumps for a process only by being stopped:
 * that is what the STOP and CONT are. The wall clock jumps here, by hours to and fro: clock_gettime
 * below is the one that the library, linked into this program, calls.
 */
#define _GNU_SOURCE
#include "soak.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK (10 * GORT_SEC)
/* of the process: on a machine that is busy otherwise, minutes may pass */
#define STUCK_CPU (60 * GORT_SEC)
#define STUCK_WALL (900 * GORT_SEC)

uint32_t soak_stop;
static int64_t wall_offset; /* atomic, ns */

int clock_gettime(clockid_t clock, struct timespec *ts) {
    int r = (int)syscall(SYS_clock_gettime, clock, ts);
    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ts->tv_sec += get(&wall_offset) / GORT_SEC;
    return r;
}

static Part *parts[64];
static int nparts;
static gort_wg all;
static uint64_t seed;

static void collect(Part *p) {
    for (; p->name; p++) parts[nparts++] = p;
}

static void run_part(void *arg) {
    Part *p = arg;
    p->run(p, seed ^ (uint64_t)(uintptr_t)p->name * 0x9E3779B97F4A7C15u);
}

static long resident_kb(void) {
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL);
    CHECK_EQ(fscanf(f, "%ld %ld", &ignored, &pages), 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d != NULL);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static int64_t cpu_now(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
    return ts.tv_sec * GORT_SEC + ts.tv_nsec;
}

static void moved(Part *p, int64_t now) {
    p->moved_at = now;
    p->moved_cpu = cpu_now();
}

static void all_move(int64_t now) {
    for (int i = 0; i < nparts; i++) {
        Part *p = parts[i];
        uint64_t rounds = get(&p->rounds);
        if (rounds != p->seen) p->seen = rounds, moved(p, now);
        if (now - p->moved_at < STUCK_WALL && cpu_now() - p->moved_cpu < STUCK_CPU) continue;
        fprintf(stderr, "soak: %s stands still after %" PRIu64 " rounds\n", p->name, rounds);
        gort_dump(2);
        _Exit(1);
    }
}

static void say(int64_t since, long rss, int fds) {
    gort_stats s;
    gort_stats_read(&s);
    printf("%5" PRId64 " s  %ld MB  %d descriptors  %d goroutines  %d threads ", since / GORT_SEC,
           rss / 1024, fds, (int)s.goroutines, (int)s.threads);
    for (int i = 0; i < nparts; i++) printf(" %s %" PRIu64, parts[i]->name, get(&parts[i]->rounds));
    printf("\n");
    fflush(stdout);
}

/* Until the end. Memory and descriptors at their highest in the first minute are the measure. */
static void watch(int64_t seconds) {
    int64_t begin = gort_now(), last = begin, lost = 0;
    long most_rss = 0;
    int most_fds = 0;
    while (last - begin - lost < seconds * GORT_SEC) {
        gort_sleep(LOOK);
        int64_t now = gort_now();
        if (now - last > 3 * LOOK) { /* stopped, or starved: the others were, too */
            lost += now - last - LOOK;
            for (int i = 0; i < nparts; i++) moved(parts[i], now);
        }
        last = now;
        set(&wall_offset, (int64_t)(test_random(&seed) % 7200 - 3600) * GORT_SEC);
        long rss = resident_kb();
        int fds = descriptors();
        say(now - begin, rss, fds);
        all_move(now);
        if (now - begin < 60 * GORT_SEC) {
            if (rss > most_rss) most_rss = rss;
            if (fds > most_fds) most_fds = fds;
            continue;
        }
        CHECKF(rss < 2 * most_rss + (64 << 10), "%ld KB resident, %ld in the first minute", rss,
               most_rss);
        CHECKF(fds < 2 * most_fds + 64, "%d descriptors, %d in the first minute", fds, most_fds);
    }
}

static int body(int argc, char **argv) {
    int64_t seconds = argc > 1 ? atoll(argv[1]) : 60;
    int fds = descriptors();
    for (int i = 0; i < nparts; i++) {
        moved(parts[i], gort_now());
        CHECK_EQ(gort_wg_go(&all, run_part, parts[i]), 0);
    }
    watch(seconds);
    set(&soak_stop, 1);
    if (gort_wg_wait_until(&all, gort_now() + STUCK_WALL) != 0) {
        fprintf(stderr, "soak: not all came to an end\n");
        gort_dump(2);
        _Exit(1);
    }
    for (int i = 0; i < nparts; i++)
        if (parts[i]->check) parts[i]->check(parts[i]);
    wait_until(gort_count() == 1); /* timers' goroutines on their way out */
    gort_signal_stop(NULL);
    CHECK_LE(descriptors(), fds + 1);
    return 0;
}

int main(int argc, char **argv) {
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    printf("soak: seed %" PRIu64 "\n", seed);
    collect(soak_sync);
    collect(soak_world);
    collect(soak_io);
    int r = gort_main(body, argc, argv);
    printf("soak: %s\n", r == 0 ? "all clean" : "failed");
    return r;
}
