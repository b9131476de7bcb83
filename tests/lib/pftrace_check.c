/*
 * pftrace_check FILE [NAME...]: the packets of a trace hold together, and a goroutine of each name
 * has run.
 *
 * Slices on a track never overlap and are all closed (regions may nest). Every slice has a name, a
 * goroutine's its own or its function's, not its number alone, and the id. Time never goes back, a
 * flow ends only where one has begun, and the sums are there and agree.
 */
#include "../../tools/pftrace.h"

#include <inttypes.h>

enum { TRACKS = 4096, IDS = 1 << 16 };
static struct {
    uint64_t track;
    unsigned depth;
} tracks[TRACKS];
static uint64_t last, slices, runs, wakes, flows, starts;
static uint8_t flowing[IDS];
static char **wanted;
static int nwanted, whole;

static void fail(const PfEvent *e, const char *why) {
    fprintf(stderr, "at %" PRIu64 " ns, track %" PRIu64 ", \"%s\": %s\n", e->ns, e->track, e->name,
            why);
    exit(1);
}

static unsigned *depth_of(const PfEvent *e) {
    for (int i = 0; i < TRACKS; i++) {
        if (tracks[i].track == 0) tracks[i].track = e->track;
        if (tracks[i].track == e->track) return &tracks[i].depth;
    }
    fail(e, "more tracks than the test knows");
    return NULL;
}

static void begins(const PfEvent *e) {
    unsigned *depth = depth_of(e);
    int region = strcmp(e->category, "region") == 0, run = strcmp(e->category, "run") == 0;
    if (*depth > 0 && !region) fail(e, "overlaps the slice before");
    ++*depth;
    slices++;
    if (e->name[0] == 0 || e->category[0] == 0) fail(e, "no name, or no category");
    if (run && e->name[0] == 'G' && strspn(e->name + 1, "0123456789") == strlen(e->name) - 1)
        fail(e, "a goroutine without its name");
    if (e->g == 0 && strcmp(e->category, "sched") != 0) fail(e, "no goroutine");
    if (e->flow_end && (e->flow_end != e->g || !flowing[e->g % IDS])) fail(e, "no such flow");
    if (e->flow_end) flowing[e->g % IDS] = 0, flows++;
    if (!run) return;
    runs++;
    for (int i = 0; i < nwanted; i++)
        if (strcmp(wanted[i], e->name) == 0) wanted[i--] = wanted[--nwanted];
}

static void sums(const PfEvent *e) {
    for (unsigned i = 0; i < e->sums; i++)
        if (strcmp(e->sum[i].key, "starts") == 0) starts = e->sum[i].v;
    whole = 1;
}

static void event(const PfEvent *e) {
    if (e->ns < last) fail(e, "time goes back");
    last = e->ns;
    if (whole) fail(e, "comes after the sums");
    if (e->type == PF_BEGIN) {
        begins(e);
    } else if (e->type == PF_END) {
        if (*depth_of(e) == 0) fail(e, "ends a slice that has not begun");
        --*depth_of(e);
    } else if (strcmp(e->category, "wake") == 0) {
        if (e->flow != e->g || e->g == 0) fail(e, "a wake-up without its flow");
        flowing[e->g % IDS] = 1;
        wakes++;
    } else if (strcmp(e->category, "sums") == 0) {
        sums(e);
    }
}

int main(int argc, char **argv) {
    PfTrace t = {.event = event};
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (f == NULL) return 2;
    wanted = argv + 2;
    nwanted = argc - 2;
    pf_read(&t, f, "", 0);
    if (t.problem) fprintf(stderr, "%s\n", t.problem);
    for (int i = 0; i < TRACKS; i++)
        if (tracks[i].depth) t.problem = "", fprintf(stderr, "a slice is still open\n");
    if (!whole || runs < starts) t.problem = "", fprintf(stderr, "not whole\n");
    for (int i = 0; i < nwanted; i++)
        t.problem = "", fprintf(stderr, "no goroutine \"%s\" has run\n", wanted[i]);
    printf("%" PRIu64 " slices, %" PRIu64 " wake-ups, %" PRIu64 " flows, %" PRIu64 " packets\n",
           slices, wakes, flows, t.packets);
    return t.problem ? 1 : 0;
}
