/*
 * The execution trace: what start and stop answer, that the file is whole, and that its sums are
 * those of gort_stats over the same time.
 */
#include "../lib/test.h"

#include <unistd.h>

static char path[64];
static gort_chan *ping, *pong;
static gort_wg wg;

static void player(void *arg) {
    int v;
    while (gort_chan_recv(ping, &v) == 0) gort_chan_send(pong, &v);
    gort_wg_done(&wg);
}
static void worker(void *arg) {
    for (int i = 0; i < 20; i++) gort_yield();
    gort_sleep(GORT_MS);
    gort_wg_done(&wg);
}
static long in_call(void *arg) {
    usleep(1000);
    return 5;
}

static void play(void) {
    gort_attr attr = {.name = "the \"player\""};
    ping = gort_chan_new(sizeof(int), 0);
    pong = gort_chan_new(sizeof(int), 0);
    gort_wg_add(&wg, 21);
    CHECK_EQ(gort_go_with(&attr, player, NULL), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(gort_go(worker, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        int v = i;
        CHECK_EQ(gort_chan_send(ping, &v), 0);
        CHECK_EQ(gort_chan_recv(pong, &v), 0);
    }
    CHECK_EQ(gort_blocking(in_call, NULL), 5);
    gort_enter_syscall();
    gort_exit_syscall();
    gort_region_begin("a \"region\"");
    gort_yield();
    gort_region_end("a \"region\"");
    gort_chan_close(ping);
    gort_wg_wait(&wg);
    gort_chan_release(ping);
    gort_chan_release(pong);
}

static char *slurp(size_t *size) {
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*size + 1);
    CHECK(text != NULL && fread(text, 1, *size, f) == *size);
    text[*size] = 0;
    fclose(f);
    return text;
}

static uint64_t sum(const char *text, const char *name) {
    char key[64];
    const char *other = strstr(text, "\"otherData\"");
    CHECK(other != NULL);
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(other, key);
    CHECKF(at != NULL, "no sum %s", name);
    return strtoull(at + strlen(key), NULL, 10);
}

static uint64_t count_of(const char *text, const char *what) {
    uint64_t n = 0;
    size_t length = strlen(what);
    /* not strstr: sanitizers measure the whole rest each time */
    for (const char *s = text; *s; s++)
        if (*s == what[0] && strncmp(s, what, length) == 0) n++;
    return n;
}

#define BETWEEN(name, field)                                    \
    do {                                                        \
        CHECK_GE(sum(text, name), inner1.field - inner0.field); \
        CHECK_LE(sum(text, name), outer1.field - outer0.field); \
    } while (0)

static void one_trace(void) {
    gort_stats outer0, inner0, inner1, outer1;
    size_t size;
    gort_stats_read(&outer0);
    errno = 77;
    CHECK_EQ(gort_trace_start(path), 0);
    CHECK_EQ(gort_trace_start(path), -EBUSY);
    CHECK_EQ(errno, 77);
    gort_stats_read(&inner0);
    play();
    gort_stats_read(&inner1);
    errno = 78;
    CHECK_EQ(gort_trace_stop(), 0);
    CHECK_EQ(errno, 78);
    gort_stats_read(&outer1);
    CHECK_EQ(gort_trace_stop(), -EINVAL);
    char *text = slurp(&size);
    CHECK(strncmp(text, "{\"displayTimeUnit\"", 18) == 0);
    CHECK(size > 3 && strcmp(text + size - 3, "}}\n") == 0);
    BETWEEN("starts", switches);
    BETWEEN("created", goroutines_created);
    BETWEEN("steals", steals);
    BETWEEN("preemptions", preemptions);
    CHECK_EQ(sum(text, "dropped"), 0);
    CHECK_GE(count_of(text, "\"cat\":\"run\""), 4000);
    CHECK_GE(count_of(text, "\"name\":\"the \\\"player\\\"\",\"cat\":\"run\""), 1);
    CHECK_GE(count_of(text, "\"name\":\"worker\",\"cat\":\"run\""), 20);
    CHECK_GE(count_of(text, "\"end\":\"chan "), 2000);
    CHECK_GE(count_of(text, "\"end\":\"sleep\""), 20);
    CHECK_GE(count_of(text, "\"cat\":\"syscall\""), 2);
    CHECK_EQ(count_of(text, "\"ph\":\"s\""), sum(text, "readied"));
    CHECK_EQ(count_of(text, "\"ph\":\"b\""), 1);
    CHECK_EQ(count_of(text, "\"ph\":\"e\""), 1);
    CHECK_EQ(count_of(text, "\"name\":\"a \\\"region\\\"\",\"cat\":\"region\""), 2);
    CHECK_LE(count_of(text, "\"ph\":\"f\""), count_of(text, "\"ph\":\"s\""));
    free(text);
}

/* Blocking calls that still run at the end of a trace, each on the track of its thread. */
enum { CALLS = 3 };
static uint32_t entered, may_return;
static long stays(void *arg) {
    add(&entered, 1);
    while (!get(&may_return)) usleep(1000);
    return 0;
}
static void stays_in_call(void *arg) {
    gort_blocking(stays, NULL);
    gort_wg_done(&wg);
}

static void unfinished_calls(void) {
    const char *track = "{\"ph\":\"X\",\"pid\":2,\"tid\":";
    unsigned long tracks[CALLS];
    int n = 0;
    size_t size;
    CHECK_EQ(gort_trace_start(path), 0);
    gort_wg_add(&wg, CALLS);
    for (int i = 0; i < CALLS; i++) CHECK_EQ(gort_go(stays_in_call, NULL), 0);
    wait_until(get(&entered) == CALLS);
    CHECK_EQ(gort_trace_stop(), 0);
    set(&may_return, 1);
    gort_wg_wait(&wg);
    char *text = slurp(&size);
    for (char *s = text, *end; (end = strchr(s, '\n')) != NULL; s = end + 1) {
        *end = 0;
        if (strncmp(s, track, strlen(track)) != 0 || !strstr(s, "stays_in_call")) continue;
        CHECK(n < CALLS && strstr(s, "\"end\":\"running\""));
        tracks[n] = strtoul(s + strlen(track), NULL, 10);
        for (int i = 0; i < n; i++) CHECK(tracks[i] != tracks[n]);
        n++;
    }
    CHECK_EQ(n, CALLS);
    free(text);
}

static int program(int argc, char **argv) {
    CHECK_EQ(gort_trace_stop(), -EINVAL);
    CHECK_EQ(gort_trace_start(NULL), -EINVAL);
    gort_region_begin("no trace runs"); /* nothing */
    gort_region_end(NULL);
    CHECK_EQ(gort_trace_start("/nonexistent/dir/file"), -ENOENT);
    for (int i = 0; i < 3; i++) one_trace();
    unfinished_calls();
    return 0;
}

int main(int argc, char **argv) {
    snprintf(path, sizeof path, "/tmp/gort-trace-test-%d.json", (int)getpid());
    int r = gort_main(program, argc, argv);
    unlink(path);
    return r;
}
