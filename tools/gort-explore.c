/*
 * gort-explore: runs a program with many seeds of the simulation (GORT_SIM, docs/EXPLORE.md).
 *
 * Each seed is a process of its own, so a crash, a deadlock or a wrong result shows in its exit
 * status. Up to --jobs of them run at once. Seeds are handed out in rising order until one fails;
 * the lowest seed that failed is reported. It is run again with fewer and fewer points at which
 * other goroutines may run (GORT_SIM=seed:n), and the least n found that still fails is shown: its
 * list of switches, and what the program printed.
 *
 * With --hook FILE, as gort-run --explore calls it, the program is one that was made for threads:
 * FILE is libgort-hook.so, which makes them goroutines. --seed runs one seed, and hides nothing.
 *
 * It needs nothing of the library, only the variables that the library reads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 256
#define ALL UINT64_MAX

static char **program;
static int *cannot_run;  /* shared with the children: the error of exec; 0: none */
static const char *hook; /* a path; NULL: the program calls gort_main */
static uint64_t seeds = 1000, first = 1;
static int jobs = 1, limit = 20; /* seconds of real time for one run */

typedef struct Run {
    pid_t pid; /* 0: free */
    uint64_t seed;
    double begin;
    bool late;
} Run;

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void usage(int status) {
    fprintf(status ? stderr : stdout,
            "usage: gort-explore [options] program [arguments]\n"
            "Options may also follow the program; everything after -- is the program's.\n"
            "  --seeds N     number of seeds to try (1000)\n"
            "  --first S     first seed (1)\n"
            "  --jobs J      runs at the same time (1)\n"
            "  --timeout T   seconds for one run (20)\n"
            "  --seed S      one run with this seed, or S:N as shown for one that failed\n"
            "Exit status: 0 all seeds passed, 1 a seed failed, 2 nothing could be run, or\n"
            "not in a simulation.\n");
    exit(status);
}

/* ---- one run --------------------------------------------------------------------------------- */

/* As tools/gort-run does. */
static void preload(void) {
    const char *more = getenv("LD_PRELOAD");
    char *all;
    if (asprintf(&all, "%s%s%s", hook, more ? ":" : "", more ? more : "") < 0) _exit(127);
    setenv("LD_PRELOAD", all, 1);
    setenv("GORT_THREADS", "1", 1);
}

/* Without randomized addresses no run depends on them. */
static void become_program(const char *seed) {
    setenv("GORT_SIM", seed, 1);
    if (hook) preload();
    personality(ADDR_NO_RANDOMIZE);
    execvp(program[0], program);
    *cannot_run = errno;
}

/* In the child. */
static _Noreturn void become(uint64_t seed, uint64_t yields, const char *log, int out, pid_t by) {
    char value[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a run that would never end does not outlive us */
    if (getppid() != by) _exit(1);
    int n = snprintf(value, sizeof value, "%" PRIu64, seed);
    if (yields != ALL) snprintf(value + n, sizeof value - (size_t)n, ":%" PRIu64, yields);
    if (log) setenv("GORT_SIM_LOG", log, 1);
    else unsetenv("GORT_SIM_LOG");
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(out >= 0 ? out : null, 1);
    dup2(out >= 0 ? out : null, 2);
    become_program(value);
    _exit(127);
}

static pid_t start(uint64_t seed, uint64_t yields, const char *log, int out) {
    fflush(NULL);
    pid_t by = getpid(), pid = fork();
    if (pid == 0) become(seed, yields, log, out, by);
    if (pid < 0) {
        perror("gort-explore: fork");
        exit(2);
    }
    return pid;
}

static bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

/* Waits for a child and returns its status. *late: it exceeded the limit and was killed. */
static int finish(pid_t pid, bool *late) {
    double begin = now();
    int status;
    *late = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (!*late && now() - begin > limit) {
            *late = true;
            kill(pid, SIGKILL);
        }
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    return status;
}

static bool fails(uint64_t seed, uint64_t yields) {
    bool late;
    return failed(finish(start(seed, yields, NULL, -1), &late));
}

/* ---- many ------------------------------------------------------------------------------------ */

static void progress(uint64_t done, double begin, bool last) {
    static uint64_t shown = 0;
    static double when = 0;
    double t = now(), rate = t > begin ? (double)done / (t - begin) : 0;
    if (isatty(1)) {
        if (!last && t - when < 0.1) return;
        when = t;
        int bar = (int)(done * 30 / seeds);
        printf("\r\033[K[%.*s%.*s] %" PRIu64 "/%" PRIu64 " seeds, %.0f/s", bar,
               "##############################", 30 - bar, "..............................", done,
               seeds, rate);
        if (last) printf("\n");
        fflush(stdout);
    } else if (last || (done > shown && done * 10 / seeds > shown * 10 / seeds)) {
        printf("%" PRIu64 "/%" PRIu64 " seeds, %.0f/s\n", done, seeds, rate);
        shown = done;
        fflush(stdout);
    }
}

/* Kills runs that exceed the limit; their seeds count as failed. */
static void look_at_clocks(Run *runs) {
    for (int i = 0; i < jobs; i++)
        if (runs[i].pid && !runs[i].late && now() - runs[i].begin > limit) {
            runs[i].late = true;
            kill(runs[i].pid, SIGKILL);
        }
}

static void say_cannot_run(void) {
    fprintf(stderr, "gort-explore: cannot run %s: %s\n", program[0], strerror(*cannot_run));
}

/* A run that has ended, or NULL. */
static Run *reap(Run *runs, int *status) {
    for (int i = 0; i < jobs; i++)
        if (runs[i].pid && waitpid(runs[i].pid, status, WNOHANG) == runs[i].pid) return &runs[i];
    return NULL;
}

/* The lowest seed that failed; false: all passed. */
static bool explore(uint64_t *bad, uint64_t *tried) {
    static Run runs[MAX_JOBS];
    uint64_t next = 0, done = 0;
    double begin = now();
    bool found = false;
    int running = 0;
    while (running > 0 || (!found && next < seeds)) {
        for (int i = 0; i < jobs && !found && next < seeds; i++) {
            if (runs[i].pid) continue;
            runs[i] = (Run){start(first + next, ALL, NULL, -1), first + next, now(), false};
            next++, running++;
        }
        int status;
        Run *r = reap(runs, &status);
        if (r == NULL) {
            look_at_clocks(runs);
            nanosleep(&(struct timespec){0, 200000}, NULL);
            continue;
        }
        running--, done++;
        r->pid = 0;
        if (*cannot_run) {
            say_cannot_run();
            exit(2);
        }
        if (failed(status) && (!found || r->seed < *bad)) *bad = r->seed, found = true;
        if (!found) progress(done, begin, done == seeds);
    }
    *tried = done;
    if (found && isatty(1)) printf("\r\033[K");
    return found;
}

/* Runs the first seed once. True: it fails, or the library simulates: it makes its log then, and
 * another program does not. */
static bool simulates(void) {
    char dir[] = "/tmp/gort-explore.XXXXXX", log[sizeof dir + 4];
    bool late;
    if (mkdtemp(dir) == NULL) return true;
    snprintf(log, sizeof log, "%s/log", dir);
    bool bad = failed(finish(start(first, ALL, log, -1), &late));
    bool made = unlink(log) == 0;
    rmdir(dir);
    return made || bad;
}

/* ---- the seed that failed -------------------------------------------------------------------- */

/* A small number of points with which the seed still fails: doubled until it fails, then bisected.
 * It fails for sure, but need not be the least: more points are not always worse. */
static uint64_t shrink(uint64_t seed) {
    uint64_t good = 0, bad = 1;
    if (fails(seed, 0)) return 0;
    while (!fails(seed, bad)) {
        good = bad;
        bad *= 2;
        if (bad > (uint64_t)1 << 22) return ALL;
    }
    while (good + 1 < bad) {
        uint64_t middle = good + (bad - good) / 2;
        if (fails(seed, middle)) bad = middle;
        else good = middle;
    }
    return bad;
}

/* Prints the last lines of a file. */
static void show(const char *path, int most) {
    FILE *f = fopen(path, "r");
    char line[1024];
    int n = 0;
    if (f == NULL) return;
    while (fgets(line, sizeof line, f)) n++;
    rewind(f);
    if (n > most) printf("  ... %d lines left out\n", n - most);
    for (int i = 0; fgets(line, sizeof line, f); i++)
        if (i >= n - most) printf("  %s", line);
    fclose(f);
}

static void describe(int status, bool late) {
    if (late) printf("did not end within %d s", limit);
    else if (WIFSIGNALED(status))
        printf("killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else printf("exit status %d", WEXITSTATUS(status));
}

static void report(uint64_t seed, uint64_t tried) {
    char log[] = "/tmp/gort-explore-log.XXXXXX", text[] = "/tmp/gort-explore-out.XXXXXX";
    int a = mkstemp(log), b = mkstemp(text);
    if (a < 0 || b < 0) {
        perror("gort-explore: /tmp");
        exit(2);
    }
    close(a);
    uint64_t yields = shrink(seed);
    bool late;
    int status = finish(start(seed, yields, log, b), &late);
    printf("seed %" PRIu64 " fails (after %" PRIu64 " tried): ", seed, tried);
    describe(status, late);
    if (yields != ALL)
        printf(", with %" PRIu64 " forced switch%s", yields, yields == 1 ? "" : "es");
    printf("\n\nThe schedule:\n");
    show(log, 100);
    printf("\nThe program said:\n");
    show(text, 60);
    printf("\nAgain: %s%" PRIu64, hook ? "gort-run --explore --seed " : "GORT_SIM=", seed);
    if (yields != ALL) printf(":%" PRIu64, yields);
    for (char **p = program; *p; p++) printf(" %s", *p);
    printf("\n");
    close(b);
    unlink(log);
    unlink(text);
}

static uint64_t number(const char *s) {
    char *end;
    errno = 0;
    uint64_t n = s ? strtoull(s, &end, 10) : 0;
    if (s == NULL || errno || end == s || *end || *s == '-') {
        fprintf(stderr, "gort-explore: not a number: %s\n", s ? s : "(nothing)");
        usage(2);
    }
    return n;
}

static _Noreturn void run_one(const char *seed) {
    char *end;
    strtoull(seed, &end, 0);
    if (*end == ':') strtoull(end + 1, &end, 0);
    if (end == seed || *end) {
        fprintf(stderr, "gort-explore: not a seed: %s\n", seed);
        usage(2);
    }
    become_program(seed);
    say_cannot_run();
    exit(2);
}

int main(int argc, char **argv) {
    int n = 0;
    const char *one = NULL;
    program = calloc((size_t)argc + 1, sizeof *program);
    if (program == NULL) return 2;
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        if (hook && n > 0) {
            program[n++] = argv[i]; /* as everything behind a program that gort-run runs */
        } else if (strcmp(s, "--") == 0) {
            while (++i < argc) program[n++] = argv[i];
        } else if (strcmp(s, "--help") == 0) usage(0);
        else if (n == 0 && strcmp(s, "-h") == 0) usage(0);
        else if (strcmp(s, "--hook") == 0) hook = argv[++i];
        else if (strcmp(s, "--seed") == 0) one = argv[++i];
        else if (hook && strcmp(s, "-n") == 0) seeds = number(argv[++i]);
        else if (strcmp(s, "--seeds") == 0) seeds = number(argv[++i]);
        else if (strcmp(s, "--first") == 0) first = number(argv[++i]);
        else if (strcmp(s, "--jobs") == 0) jobs = (int)number(argv[++i]);
        else if (strcmp(s, "--timeout") == 0) limit = (int)number(argv[++i]);
        else if (n == 0 && s[0] == '-') usage(2);
        else program[n++] = argv[i];
    }
    if (n == 0 || seeds == 0 || limit < 1) usage(2);
    jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : jobs;
    cannot_run =
        mmap(NULL, sizeof *cannot_run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cannot_run == MAP_FAILED) return 2;
    if (one) run_one(one);
    uint64_t bad = 0, tried;
    if (!simulates()) {
        fprintf(stderr, "gort-explore: no simulation ran: %s %s\n", program[0],
                hook ? "does not load the hook" : "does not call gort_main");
        return 2;
    }
    if (explore(&bad, &tried)) {
        report(bad, tried);
        return 1;
    }
    printf("%" PRIu64 " seeds passed\n", seeds);
    return 0;
}
