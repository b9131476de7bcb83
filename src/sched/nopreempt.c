/*
 * GORT_NOPREEMPT: where the functions are that must not be preempted by signal.
 *
 * The attribute puts a function into a section of its own. The linker knows both ends of that
 * section, but only in the module it is linking, and there may be several modules, opened late or
 * closed early. So each module reports its section by a constructor and a destructor, which come
 * with the header and do nothing where there is no such section. Twice does no harm.
 *
 * The handler reads the table without a lock, while others write it. An entry that is being written
 * has no end, and covers nothing: a module's constructors may be covered a little late.
 */
#include "sched/nopreempt.h"
#include "base/lock.h"
#include "sched/sched.h"

#define MODULES 256

typedef struct Range {
    uintptr_t start, end; /* atomic */
} Range;

static struct {
    Lock lock;      /* writers */
    uint32_t count; /* atomic: entries that have been used */
    Range range[MODULES];
} table;

bool nopreempt_covers(uintptr_t pc) {
    for (uint32_t i = 0; i < load_acq(&table.count); i++)
        if (pc >= load_rlx(&table.range[i].start) && pc < load_rlx(&table.range[i].end))
            return true;
    return false;
}

/* The entry that begins at start; else a free one; NULL: there is none. Locked. */
static Range *find_range(uintptr_t start) {
    Range *free_one = NULL;
    for (uint32_t i = 0; i < table.count; i++) {
        if (table.range[i].start == start) return &table.range[i];
        if (table.range[i].start == 0) free_one = &table.range[i];
    }
    if (free_one || table.count == MODULES) return free_one;
    store_rel(&table.count, table.count + 1); /* pairs with nopreempt_covers */
    return &table.range[table.count - 1];
}

EXPORT void gort_nopreempt_range(const void *start, const void *end, int there) {
    M *m = steady_begin(); /* not enter(): this may be a constructor, before all else */
    lock(&table.lock, RANK_LEAF);
    Range *r = find_range((uintptr_t)start);
    if (r) {
        store_rlx(&r->end, 0);
        fence_compiler();
        store_rlx(&r->start, there ? (uintptr_t)start : 0);
        fence_compiler();
        store_rlx(&r->end, there ? (uintptr_t)end : 0);
    }
    unlock(&table.lock);
    steady_end(m);
    if (r == NULL) fatal("more than %d modules with functions marked GORT_NOPREEMPT", MODULES);
}
