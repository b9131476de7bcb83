/*
 * gort-top PID: what the scheduler of a running program does, in a terminal.
 *
 * It maps the memory file that the runtime keeps for it (src/inspect/top.c) and notes there that it
 * looks; the program's monitor then writes the figures ten times a second. The program is not
 * stopped, gets no signal, and does no work for it while gort-top does not run.
 *
 * On a terminal the screen is redrawn every second, and `q` ends it. Elsewhere, or with -b, it
 * prints one report after another. Rates are the differences between two readings.
 */
#define _GNU_SOURCE
#include "../src/inspect/top_layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static TopPage *page;
static pid_t pid;
static double delay = 1;
static long rounds = -1; /* reports to print; -1: for ever */
static bool batch, color;
static volatile sig_atomic_t ended;
static struct termios cooked;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- finding the page ------------------------------------------------------------------------ */

static bool is_page(const char *dir, const char *name) {
    char path[340], target[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return false;
    target[n] = 0;
    return strncmp(target, "/memfd:" TOP_NAME, strlen("/memfd:" TOP_NAME)) == 0;
}

/* A descriptor of the file, open to read and write; -1: not found; -2: not allowed. */
static int open_page(const char *kind) {
    char dir[64], path[340];
    int fd = -1;
    snprintf(dir, sizeof dir, "/proc/%d/%s", (int)pid, kind);
    DIR *d = opendir(dir);
    if (d == NULL) return errno == ENOENT ? -1 : -2;
    for (struct dirent *e; fd < 0 && (e = readdir(d)) != NULL;) {
        if (!is_page(dir, e->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    closedir(d);
    return fd;
}

static void fail(const char *text) {
    fprintf(stderr, "gort-top: %d: %s\n", (int)pid, text);
    exit(1);
}

static void map_page(void) {
    struct stat st;
    int fd = open_page("fd");
    if (fd == -1) fd = open_page("map_files"); /* the program has closed its descriptors */
    if (kill(pid, 0) != 0 && errno == ESRCH) fail("no such process");
    if (fd == -2) fail(strerror(EACCES));
    if (fd < 0 || fstat(fd, &st) != 0) fail("not a program that runs gort");
    if (st.st_size < (off_t)sizeof(TopPage)) fail("it uses another version of gort");
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) fail(strerror(errno));
    close(fd);
    if (page->layout != TOP_LAYOUT) fail("it uses another version of gort");
}

/* Names are the program's, whoever runs it: they do not speak to our terminal. */
static void make_plain(char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 127) *s = '?';
}

static void end_text(char *s, size_t size) {
    s[size - 1] = 0;
    make_plain(s);
}

/* Copies figures of one moment; false: the program has stopped in the middle of writing them. */
static bool take(TopFigures *f) {
    for (int tries = 0; tries < 10000; tries++) {
        uint32_t before = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE);
        if (before % 2 == 0 && before != 0) {
            memcpy(f, &page->figures, sizeof *f);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (__atomic_load_n(&page->seq, __ATOMIC_RELAXED) == before) break;
        }
        usleep(before ? 50 : 1000); /* 0: nothing written yet */
        if (tries == 9999 || kill(pid, 0) != 0) return false;
    }
    if (f->ps > TOP_PS) f->ps = TOP_PS;
    if (f->ms > TOP_MS) f->ms = TOP_MS;
    for (uint32_t i = 0; i < f->ps; i++) end_text(f->p[i].title, sizeof f->p[i].title);
    for (uint32_t i = 0; i < f->ms; i++) end_text(f->m[i].state, sizeof f->m[i].state);
    return true;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static const char *paint(const char *code) { return color ? code : ""; }
#define BOLD paint("\033[1m")
#define SOFT paint("\033[2m")
#define GREEN paint("\033[32m")
#define YELLOW paint("\033[33m")
#define RED paint("\033[31m")
#define BLUE paint("\033[34m")
#define PLAIN paint("\033[0m")
static void line_end(void) { printf("%s\n", batch ? "" : "\033[K"); }

static const char *compact(double v, char *buf) {
    if (v >= 1e9) sprintf(buf, "%.1fG", v / 1e9);
    else if (v >= 1e6) sprintf(buf, "%.1fM", v / 1e6);
    else if (v >= 1e4) sprintf(buf, "%.1fk", v / 1e3);
    else sprintf(buf, "%.0f", v);
    return buf;
}

static void program_name(char *to, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL || fgets(to, (int)size, f) == NULL) snprintf(to, size, "?");
    if (f) fclose(f);
    to[strcspn(to, "\n")] = 0;
    make_plain(to);
}

static void head(const TopFigures *f) {
    char name[64];
    int64_t up = (now_ns() - page->begun) / 1000000000;
    program_name(name, sizeof name);
    printf("%sgort-top%s  %s, pid %d, up %" PRId64 ":%02d:%02d", BOLD, PLAIN, name, (int)pid,
           up / 3600, (int)(up / 60 % 60), (int)(up % 60));
    line_end();
    printf("goroutines %s%" PRIu64 "%s   Ps %" PRIu64 ", %" PRIu64 " idle   threads %" PRIu64
           ": %" PRIu64 " idle, %" PRIu64 " searching, %" PRIu64 " in blocking calls",
           BOLD, f->goroutines, PLAIN, f->maxprocs, f->idle_procs, f->threads, f->idle_threads,
           f->spinning_threads, f->in_syscall);
    line_end();
    printf("runnable: global %" PRIu64 ", local %" PRIu64 "   waiting: poller %" PRIu64
           ", timers %" PRIu64 "   stacks %" PRIu64 " MB reserved, %" PRIu64 " MB cached",
           f->global_queue, f->local_queues, f->poll_waiters, f->timers,
           f->stack_bytes_reserved >> 20, f->stack_bytes_cached >> 20);
    line_end();
}

static void rates(const TopFigures *f, const TopFigures *old) {
    double s = (double)(f->now - old->now) / 1e9;
    char buf[32];
    const struct {
        const char *name;
        uint64_t now, before;
    } list[] = {
        {"switches", f->switches, old->switches},
        {"goroutines started", f->goroutines_created, old->goroutines_created},
        {"woken by the poller", f->netpoll_wakeups, old->netpoll_wakeups},
        {"steals", f->steals, old->steals},
        {"preemptions", f->preemptions, old->preemptions},
        {"blocking calls", f->syscalls_blocking, old->syscalls_blocking},
        {"Ps handed off", f->handoffs + f->retakes, old->handoffs + old->retakes},
        {"overflows", f->overflows, old->overflows},
    };
    printf("per second:");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        printf("%s %s%s%s %s", i ? "," : "", BOLD,
               compact(s > 0 ? (double)(list[i].now - list[i].before) / s : 0, buf), PLAIN,
               list[i].name);
    line_end();
    line_end();
}

static void bar(uint32_t n) { /* the length of a run queue, at most 256, in powers of two */
    int length = 0;
    for (uint32_t v = n; v; v >>= 1) length++;
    printf("%s", YELLOW);
    for (int i = 0; i < 9; i++) putchar(i < length ? '#' : ' ');
    printf("%s", PLAIN);
}

static uint64_t switches_of(const TopFigures *old, uint32_t i) {
    return i < old->ps ? old->p[i].switches : 0;
}

static void one_p(const TopFigures *f, const TopFigures *old, uint32_t i) {
    static const char *const words[] = {"idle", "running", "stopped", "dead"};
    const TopP *p = &f->p[i];
    double s = (double)(f->now - old->now) / 1e9;
    char m[16] = "", g[24] = "", slot[24] = "", rate[32];
    if (p->m >= 0) snprintf(m, sizeof m, "M%d", p->m);
    if (p->g) snprintf(g, sizeof g, "G%" PRIu64, p->g);
    if (p->next) snprintf(slot, sizeof slot, "G%" PRIu64, p->next);
    compact(s > 0 ? (double)(p->switches - switches_of(old, i)) / s : 0, rate);
    printf("P%-3u %s%-8s%s %-5s %9s %5u ", i, p->status == 1 ? GREEN : SOFT, words[p->status & 3],
           PLAIN, m, rate, p->queue);
    bar(p->queue);
    printf(" %-9s %6u  %-9s %.31s", slot, p->timers, g, p->title);
    if (p->ran_us >= 1000)
        printf("%s, %u ms%s", p->ran_us >= 10000 ? RED : SOFT, p->ran_us / 1000, PLAIN);
    line_end();
}

static void all_ps(const TopFigures *f, const TopFigures *old, int room) {
    printf("%sP    status   thread switch/s queue           slot      timers  running%s", SOFT,
           PLAIN);
    line_end();
    for (uint32_t i = 0; i < f->ps && (int)i < room; i++) one_p(f, old, i);
    if (f->maxprocs > (uint64_t)room)
        printf("... and %d more", (int)f->maxprocs - room), line_end();
    line_end();
}

static const char *state_color(const char *state) {
    if (strcmp(state, "running") == 0) return GREEN;
    if (strcmp(state, "syscall") == 0 || strcmp(state, "in the kernel") == 0) return RED;
    if (strcmp(state, "spinning") == 0 || strcmp(state, "scheduling") == 0) return BLUE;
    return SOFT;
}

static void all_ms(const TopFigures *f) {
    printf("%sthreads%s", SOFT, PLAIN);
    for (uint32_t i = 0; i < f->ms; i++) {
        const TopM *m = &f->m[i];
        if (i % 5 == 0) line_end();
        printf("%sM%-3u%s %s%-13.15s%s", i % 5 ? " " : "", m->id, "", state_color(m->state),
               m->state, PLAIN);
    }
    line_end();
}

static void draw(const TopFigures *f, const TopFigures *old) {
    struct winsize w;
    int rows = !batch && ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_row > 12 ? w.ws_row : 1000;
    if (!batch) printf("\033[H");
    head(f);
    rates(f, old);
    all_ps(f, old, rows - 12 > 0 ? rows - 12 : 1);
    all_ms(f);
    if (!batch) printf("\033[J");
    fflush(stdout);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void on_signal(int signo) { ended = signo; }

static void restore(void) {
    if (batch) return;
    tcsetattr(0, TCSANOW, &cooked);
    printf("\033[?25h\n");
}

static void take_terminal(void) {
    struct termios raw;
    if (tcgetattr(0, &cooked) != 0) {
        batch = true;
        return;
    }
    raw = cooked;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(0, TCSANOW, &raw);
    atexit(restore);
    printf("\033[?25l\033[2J");
}

/* False: the user pressed q, or a signal came. */
static bool pause_for(double seconds) {
    int64_t until = now_ns() + (int64_t)(seconds * 1e9);
    for (;;) {
        int64_t left = (until - now_ns()) / 1000000;
        struct pollfd p = {.fd = batch ? -1 : 0, .events = POLLIN};
        char c;
        if (ended) return false;
        if (left <= 0) return true;
        if (poll(&p, 1, (int)left) > 0 && (read(0, &c, 1) != 1 || c == 'q' || c == 3)) return false;
    }
}

/* Announces that we look, until some time after the next report. */
static void watch(void) {
    __atomic_store_n(&page->watched, now_ns() + (int64_t)(delay * 1e9) + 2000000000,
                     __ATOMIC_RELAXED);
}

static int loop(void) {
    TopFigures *f = calloc(2, sizeof *f);
    if (f == NULL) return 1;
    watch();
    if (!pause_for(0.25)) return 0; /* by then the monitor has seen it, or sleeps */
    if (!take(&f[1])) fail("the program writes no figures");
    for (long i = 0; rounds < 0 || i < rounds; i++) {
        if (!pause_for(delay)) return 0;
        watch();
        if (kill(pid, 0) != 0 || !page->running || !take(&f[0])) {
            printf("%d has ended\n", (int)pid);
            return 0;
        }
        draw(&f[0], &f[1]);
        f[1] = f[0];
    }
    return 0;
}

static _Noreturn void usage(int status) {
    fprintf(status ? stderr : stdout,
            "usage: gort-top [-b] [-d seconds] [-n reports] PID\n"
            "  -b  print one report after another (the default without a terminal)\n"
            "  -d  seconds between two reports (1)\n"
            "  -n  number of reports, then exit\n"
            "On a terminal, q quits.\n");
    exit(status);
}

/* 0 where it is no number. */
static double number(const char *s) {
    char *end;
    double n = strtod(s, &end);
    return *end == 0 && n > 0 && n < INT32_MAX ? n : 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0) usage(0);
    for (int c; (c = getopt(argc, argv, "bd:n:h")) != -1;) {
        if (c == 'b') batch = true;
        else if (c == 'd') delay = number(optarg);
        else if (c == 'n' && number(optarg) >= 1) rounds = (long)number(optarg);
        else usage(c == 'h' ? 0 : 2);
    }
    if (optind != argc - 1 || (pid = (pid_t)number(argv[optind])) <= 0 ||
        !(delay >= 0.1 && delay <= 3600))
        usage(2);
    map_page();
    if (!isatty(1)) batch = true;
    color = isatty(1);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (!batch) take_terminal();
    return loop();
}
