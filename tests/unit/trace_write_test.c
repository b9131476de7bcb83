/*
 * A trace of events that no run makes at will: a goroutine begins to run though no event says that
 * it has left where it ran before, as one does whose P was taken from it. Its earlier slice ends
 * there, in each form, whatever the P and whoever runs there next: an arrow begins in a slice, and
 * none is open at the end.
 */
#include "../../tools/pftrace.h"
#include "inspect/trace_form.h"
#include "../lib/white.h"

static const TraceEvent told[] = {
    {.when = 10000, .kind = EV_START, .g = 1, .p = 0},
    {.when = 20000, .kind = EV_READY, .g = 2, .p = 0, .y = 1},
    {.when = 30000, .kind = EV_START, .g = 1, .p = 1}, /* elsewhere: P0 runs nobody any more */
    {.when = 40000, .kind = EV_READY, .g = 3, .p = 0},
    {.when = 50000, .kind = EV_START, .g = 1, .p = 1}, /* once more, on the same P */
    {.when = 60000, .kind = EV_BLOCK, .g = 1, .p = 1},
};
enum { SLICES = 3 };

static const TraceEvent *next_told(TraceSource *s) {
    return s->dropped < count_of(told) ? &told[s->dropped++] : NULL;
}

static FILE *written(const TraceForm *form) {
    FILE *f = tmpfile();
    CHECK(f != NULL);
    TraceSource s = {.next = next_told, .ns_per_tick = 1, .last_tick = 60000, .form = form};
    s.most = UINT64_MAX;
    CHECK_EQ(trace_write(fileno(f), &s), 0);
    rewind(f);
    return f;
}

/* JSON: on which P, from when to when, in ns. */
static const unsigned wanted[SLICES][3] = {{0, 10000, 30000}, {1, 30000, 50000}, {1, 50000, 60000}};
static void test_json(void) {
    char line[512];
    unsigned p, us, ns, long_us, long_ns, n = 0, outside = 0;
    FILE *f = written(&json_form);
    while (fgets(line, sizeof line, f)) {
        outside += strstr(line, "\"ph\":\"B\",\"pid\":1,\"tid\":0,\"ts\":40.000") != NULL;
        if (sscanf(line, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%u.%u,\"dur\":%u.%u", &p, &us,
                   &ns, &long_us, &long_ns) != 5)
            continue;
        CHECK_LT(n, SLICES);
        CHECK_EQ(p, wanted[n][0]);
        CHECK_EQ(us * 1000 + ns, wanted[n][1]);
        CHECK_EQ(us * 1000 + ns + long_us * 1000 + long_ns, wanted[n][2]);
        n++;
    }
    CHECK_EQ(n, SLICES);
    CHECK_EQ(outside, 1); /* the second arrow begins in a slice of the scheduler's */
    fclose(f);
}

static int open_slices, begun;
static void on_event(const PfEvent *e) {
    if (e->type == PF_INSTANT) return;
    open_slices += e->type == PF_BEGIN ? 1 : -1;
    begun += e->type == PF_BEGIN;
}
static void test_perfetto(void) {
    PfTrace t = {.event = on_event};
    FILE *f = written(&perfetto_form);
    pf_read(&t, f, "", 0);
    CHECKF(t.problem == NULL, "%s", t.problem);
    CHECK_EQ(begun, SLICES);
    CHECK_EQ(open_slices, 0);
    fclose(f);
}

int main(void) {
    test_json();
    test_perfetto();
    return 0;
}
