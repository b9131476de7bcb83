/*
 * The page that gort-top reads (src/inspect/top.c): a sequence lock. A reader that finds the same
 * even number before and after has figures of one moment. The reader is gort-top's, another
 * process: here its loads are done in order. Needs MODEL_WEAK=2: x86 keeps stores in order anyway.
 */
#include "model.h"

#include "runtime.h"
#include <inspect/top.c>

Sched sched;
Settings settings;
bool sim_on;
static TopPage the_page;
static uint32_t moment;

int64_t os_now(void) { return 0; }
void gort_stats_read_sized(gort_stats *s, size_t size) {
    memset(s, 0, size);
    s->goroutines = s->switches = moment;
}
size_t print_buf(char *to, size_t size, const char *format, ...) { return 0; }
uint32_t p_queue(P *p) { wrong("a table"); }
void g_name(G *gp, char *buf) { wrong("a table"); }
uintptr_t g_entry(G *gp) { wrong("a table"); }
Named symbol_of(uintptr_t pc) { wrong("a table"); }
const char *m_state(M *m, G *gp) { wrong("a table"); }
static void publishes(void) {
    for (moment = 1; moment <= 2; moment++) publish(0);
}
static void reads(void) {
    uint32_t before = load_acq(&page->seq);
    uint64_t a = load_rlx(&page->figures.goroutines), b = load_rlx(&page->figures.switches);
    MUST(before % 2 == 1 || load_rlx(&page->seq) != before || a == b);
}

static void model_reset(void) {
    memset(&the_page, 0, sizeof the_page);
    page = &the_page;
    moment = 0;
    mc_spawn(publishes);
    mc_spawn(reads);
    mc_watch(&the_page.figures.goroutines);
    mc_watch(&the_page.figures.switches);
}
static void model_end(void) { MUST(the_page.seq == 4 && the_page.figures.switches == 2); }
static uint64_t model_hash(uint64_t h) {
    return mix(mix(mix(mix(h, the_page.seq), (uint64_t)the_page.figures.goroutines),
                   (uint64_t)the_page.figures.switches),
               moment);
}
int main(void) { return model_main("the page of gort-top"); }
