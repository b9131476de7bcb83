/*
 * gort_dump: a block for every goroutine with its name, its wait reason and frames, whatever it
 * does: parked, runnable, computing, in an announced call, in one that nobody announced. The first
 * frame is the public call, not what that goes on in.
 */
#include "../lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

static gort_chan *never, *unread; /* for ever: their waiters never leave */
static gort_mutex mu;
static gort_rwmutex rw;
static gort_wg never_done;
static gort_cond cond;
static gort_mutex cond_mu;
static gort_sem sem;
static int pipe_fd[2], silent[2], listener, stop, in_spin, in_call, in_read;
static gort_reader *reader;
static char text[1 << 20];

#define KEEP __attribute__((noinline)) static
#define NO_TAIL __asm__ volatile("") /* keeps the frame of the function it ends */

KEEP void w_recv(void *a) {
    gort_chan_recv(never, NULL);
    NO_TAIL;
}
KEEP void w_send(void *a) {
    gort_chan_send(unread, NULL);
    NO_TAIL;
}
KEEP void w_recv_nil(void *a) {
    gort_chan_recv(NULL, NULL);
    NO_TAIL;
}
KEEP void w_send_nil(void *a) {
    gort_chan_send(NULL, NULL);
    NO_TAIL;
}
KEEP void w_select(void *a) {
    gort_select_of(gort_on_recv(never, NULL), gort_on_recv(never, NULL));
    NO_TAIL;
}
KEEP void w_select_none(void *a) {
    gort_select(NULL, 0);
    NO_TAIL;
}
KEEP void w_sleep(void *a) {
    gort_sleep(1000 * GORT_SEC);
    NO_TAIL;
}
KEEP void w_mutex(void *a) {
    gort_mutex_lock(&mu);
    NO_TAIL;
}
KEEP void w_rlock(void *a) {
    gort_rwmutex_rlock(&rw);
    NO_TAIL;
}
KEEP void w_wlock(void *a) {
    gort_rwmutex_lock(&rw);
    NO_TAIL;
}
KEEP void w_wg(void *a) {
    gort_wg_wait(&never_done);
    NO_TAIL;
}
KEEP void w_sem(void *a) {
    gort_sem_acquire(&sem, 1);
    NO_TAIL;
}
KEEP void w_cond(void *a) {
    gort_mutex_lock(&cond_mu);
    gort_cond_wait(&cond, &cond_mu);
    NO_TAIL;
}
#define LATER (gort_now() + 1000 * GORT_SEC)
KEEP void w_recv_until(void *a) {
    gort_chan_recv_until(never, NULL, LATER);
    NO_TAIL;
}
KEEP void w_select_until(void *a) {
    gort_select_until_of(LATER, gort_on_recv(never, NULL));
    NO_TAIL;
}
KEEP void w_sleep_until(void *a) {
    gort_sleep_until(LATER);
    NO_TAIL;
}
KEEP void w_mutex_until(void *a) {
    gort_mutex_lock_until(&mu, LATER);
    NO_TAIL;
}
KEEP void w_gort_read(void *a) {
    char c;
    if (gort_read(silent[0], &c, 1) > 0) NO_TAIL;
}
KEEP void w_read_full(void *a) {
    char c;
    if (gort_read_full(silent[0], &c, 1) > 0) NO_TAIL;
}
KEEP void w_accept(void *a) {
    gort_accept_until(listener, NULL, NULL, LATER);
    NO_TAIL;
}
KEEP void w_poll(void *a) {
    struct pollfd p = {.fd = silent[0], .events = POLLIN};
    gort_poll(&p, 1, -1);
    NO_TAIL;
}
KEEP void w_line(void *a) {
    char *line;
    if (gort_reader_line(reader, &line) > 0) NO_TAIL;
}
KEEP void w_spin(void *a) {
    set(&in_spin, 1);
    while (!get(&stop)) {}
    NO_TAIL;
}
static long call(void *a) {
    char c;
    set(&in_call, 1);
    return read(pipe_fd[0], &c, 1);
}
KEEP void w_call(void *a) {
    gort_blocking(call, NULL);
    NO_TAIL;
}
KEEP void w_read(void *a) {
    char c;
    set(&in_read, 1);
    if (read(pipe_fd[0], &c, 1) > 0) NO_TAIL;
}

static const struct {
    gort_fn *fn;
    const char *name, *status, *call; /* NULL: not this library's */
} rows[] = {
    {w_recv, "w_recv", "chan receive", "gort_chan_recv"},
    {w_send, "w_send", "chan send", "gort_chan_send"},
    {w_recv_nil, "w_recv_nil", "chan receive (nil chan)", "gort_chan_recv"},
    {w_send_nil, "w_send_nil", "chan send (nil chan)", "gort_chan_send"},
    {w_select, "w_select", "select", "gort_select"},
    {w_select_none, "w_select_none", "select (no cases)", "gort_select"},
    {w_sleep, "w_sleep", "sleep", "gort_sleep"},
    {w_mutex, "w_mutex", "sync.Mutex.Lock", "gort_mutex_lock"},
    {w_rlock, "w_rlock", "sync.RWMutex.RLock", "gort_rwmutex_rlock"},
    {w_wlock, "w_wlock", "sync.RWMutex.Lock", "gort_rwmutex_lock"},
    {w_wg, "w_wg", "sync.WaitGroup.Wait", "gort_wg_wait"},
    {w_cond, "w_cond", "sync.Cond.Wait", "gort_cond_wait"},
    {w_sem, "w_sem", "semacquire", "gort_sem_acquire"},
    {w_recv_until, "w_recv_until", "chan receive", "gort_chan_recv"},
    {w_select_until, "w_select_until", "select", "gort_select"},
    {w_sleep_until, "w_sleep_until", "sleep", "gort_sleep_until"},
    {w_mutex_until, "w_mutex_until", "sync.Mutex.Lock", "gort_mutex_lock_until"},
    {w_gort_read, "w_gort_read", "IO wait", "gort_read"},
    {w_read_full, "w_read_full", "IO wait", "gort_read_full"},
    {w_accept, "w_accept", "IO wait", "gort_accept_until"},
    {w_poll, "w_poll", "IO wait", "gort_poll"},
    {w_line, "w_line", "IO wait", "gort_reader_line"},
    {w_call, "w_call", "syscall", NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void dump(void) {
    char path[] = "/tmp/gort-dump-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    unlink(path);
    errno = 99;
    gort_dump(fd);
    CHECK_EQ(errno, 99);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    CHECK(n > 0);
    text[n] = 0;
    close(fd);
}

/* The block of the goroutine with this name; NULL: there is none, or it has another status. */
static char *block(const char *name, const char *status) {
    char head[200], *at, *end;
    static char copy[8192];
    snprintf(head, sizeof head, "\"%s\" [%s, ", name, status);
    if ((at = strstr(text, head)) == NULL) return NULL;
    end = strstr(at, "\n\n");
    CHECKF(end != NULL, "the block of %s has no end", name);
    snprintf(copy, sizeof copy, "%.*s", (int)(end - at), at);
    return copy;
}

static bool all_there(void) {
    dump();
    for (int i = 0; i < ROWS; i++)
        if (block(rows[i].name, rows[i].status) == NULL) return false;
    return true;
}

static void start(gort_fn *fn, const char *name) {
    gort_attr attr = {.name = name};
    CHECK_EQ(gort_go_with(&attr, fn, NULL), 0);
}

static void parked(void) {
    char frame[64];
    for (int i = 0; i < ROWS; i++) start(rows[i].fn, rows[i].name);
    wait_until(all_there()); /* a goroutine caught in the middle of something is seen next time */
    for (int i = 0; i < ROWS; i++) {
        char *b = block(rows[i].name, rows[i].status);
        snprintf(frame, sizeof frame, " %s+0x", rows[i].name);
        CHECKF(strstr(b, frame), "no frame of %s in:\n%s", rows[i].name, b);
        if (rows[i].call) {
            char *first = strchr(b, '\n'), *end = first ? strchr(first + 1, '\n') : NULL;
            CHECKF(end, "no frame in:\n%s", b);
            snprintf(frame, sizeof frame, " %s", rows[i].call); /* or its form with a deadline */
            first = strstr(first, frame);
            CHECKF(first && first < end, "the first frame is not of %s in:\n%s", rows[i].call, b);
        }
        CHECKF(strstr(b, "created by start+0x"), "no creator in:\n%s", b);
        CHECKF(strstr(b, "ms]:\n"), "no age in:\n%s", b);
    }
}

static bool shows(const char *name, const char *what) {
    dump();
    char *b = block(name, "running");
    return b && strstr(b, what);
}

/* These run while they are looked at, so what shows depends on the moment: wait for it. */
static void running(void) {
    start(w_spin, "w_spin");
    wait_until(get(&in_spin));
    if (test_procs() >= 2) wait_until(shows("w_spin", " w_spin+0x"));
    set(&stop, 1);
    const char *runner = getenv("TEST_RUNNER");
    /* there /proc shows the emulator's registers */
    if ((runner && *runner) || test_valgrind()) return;
    start(w_read, "w_read");
    wait_until(get(&in_read));
    wait_until(shows("w_read", "\n  0x")); /* how far up it is seen depends on how libc was built */
}

static int program(int argc, char **argv) {
    never = gort_chan_new(0, 0);
    unread = gort_chan_new(0, 0);
    gort_mutex_lock(&mu);
    gort_rwmutex_lock(&rw);
    gort_wg_add(&never_done, 1);
    CHECK_EQ(pipe(pipe_fd), 0);
    CHECK_EQ(pipe(silent), 0);
    CHECK((listener = gort_listen("127.0.0.1:0", 0)) >= 0);
    CHECK((reader = gort_reader_new(silent[0], 0)) != NULL);
    dump();
    CHECK(strncmp(text, "goroutine 1 [running, ", 22) == 0);
    CHECK(strstr(text, " program+0x") != NULL);
    parked();
    running();
    return 0;
}

int main(int argc, char **argv) { return gort_main(program, argc, argv); }
