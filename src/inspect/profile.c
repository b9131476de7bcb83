/*
 * The table behind every profile.
 *
 * Signal handlers and the scheduler add samples, so adding takes no lock and allocates nothing. The
 * table is mapped before, with open addressing by the hash of the stack. A CAS of the hash from 0
 * takes a place. The winner writes the stack and then, by release, `ready`, which readers acquire;
 * all others only add to the counts. Two stacks with one hash of 64 bits would count as one. A
 * sample that finds no place is lost, and counted. The table of a census, which one thread fills,
 * grows instead.
 *
 * The end is a Dekker pair: a thread that adds a sample announces itself in `busy` and then reads
 * `state`; the thread that ends the profile changes `state` and then waits for `busy` to be 0. Both
 * are seq_cst, else each could miss the other, and a sample be written into an unmapped table.
 */
#include "inspect/profile.h"
#include "inspect/scratch.h"
#include "unwind/symbols.h"

/* One that grows belongs to the goroutine that fills it; the others outlive theirs. */
static Sample *table_new(const Profile *f, size_t places) {
    return f->grows ? scratch_get(places * sizeof *f->at) : os_map(places * sizeof *f->at, false);
}
static void table_free(const Profile *f) {
    if (f->grows) scratch_free(f->at);
    else os_unmap(f->at, f->places * sizeof *f->at);
}

int profile_begin(Profile *f) {
    uint32_t idle = PROFILE_IDLE;
    if (!cas_acq_rel(&f->state, &idle, PROFILE_CHANGING)) return -EBUSY;
    f->places = PROFILE_STACKS;
    f->at = table_new(f, f->places);
    if (f->at == NULL) {
        store_rel(&f->state, PROFILE_IDLE);
        return -ENOMEM;
    }
    f->used = 0;
    f->lost = 0;
    f->lost_value = 0;
    store_seq(&f->state, PROFILE_ON);
    return 0;
}

void profile_end(Profile *f) {
    store_seq(&f->state, PROFILE_CHANGING);
    while (load_seq(&f->busy) != 0) os_nap(20 * GORT_US); /* an adder never waits for this thread */
}

void profile_free(Profile *f) {
    if (f->at == NULL) return;
    table_free(f);
    f->at = NULL;
    store_rel(&f->state, PROFILE_IDLE);
}

bool profile_enter(Profile *f) {
    add_seq(&f->busy, 1);
    if (load_seq(&f->state) == PROFILE_ON) return true;
    sub_seq(&f->busy, 1);
    return false;
}

void profile_leave(Profile *f) { sub_seq(&f->busy, 1); }

static uint64_t sample_hash(const Sample *s) {
    uint64_t h = 14695981039346656037ULL ^ s->entry ^ (uint64_t)(s->status << 8 | s->reason) << 48;
    for (int i = 0; i < s->depth; i++) h = (h ^ s->pcs[i]) * 0x100000001B3ULL;
    for (const char *c = s->name; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001B3ULL;
    return h * 0x9E3779B97F4A7C15ULL | 1;
}

static void sample_fill(Sample *to, const Sample *s) {
    to->depth = s->depth;
    to->status = s->status;
    to->reason = s->reason;
    to->entry = s->entry;
    memcpy(to->name, s->name, sizeof to->name);
    memcpy(to->pcs, s->pcs, s->depth * sizeof s->pcs[0]);
    store_rel(&to->ready, 1);
}

/* Where the search for a hash begins. */
INLINE uint32_t sample_home(uint64_t hash) { return (uint32_t)(hash >> 32); }

/* Twice the places; false: no memory, or too many. */
static bool profile_grow(Profile *f) {
    uint32_t mask = f->places * 2 - 1;
    Sample *fresh = f->places < 1u << 30 ? table_new(f, (size_t)mask + 1) : NULL;
    if (fresh == NULL) return false;
    for (uint32_t i = 0; i < f->places; i++) {
        if (f->at[i].hash == 0) continue;
        uint32_t to = sample_home(f->at[i].hash);
        while (fresh[to & mask].hash) to++;
        fresh[to & mask] = f->at[i];
    }
    table_free(f);
    f->at = fresh;
    f->places = mask + 1;
    return true;
}

void profile_add(Profile *f, Sample *s, uint64_t count, int64_t value) {
    uint64_t hash = sample_hash(s);
    if (f->grows && f->used >= f->places / 2) profile_grow(f);
    for (uint32_t i = sample_home(hash);; i++) {
        Sample *at = &f->at[i & (f->places - 1)];
        uint64_t found = load_acq(&at->hash);
        if (found == 0) {
            if (add_rlx(&f->used, 1) > f->places / 2) { /* so that searches end */
                sub_rlx(&f->used, 1);
                add_rlx(&f->lost, count);
                add_rlx(&f->lost_value, value);
                return;
            }
            if (cas_acq_rel(&at->hash, &found, hash)) sample_fill(at, s), found = hash;
            else sub_rlx(&f->used, 1);
        }
        if (found != hash) continue;
        add_rlx(&at->count, count);
        add_rlx(&at->value, value);
        return;
    }
}

bool profile_lost(const Profile *f, Sample *s) {
    *s = (Sample){.name = "(lost)", .count = load_rlx(&f->lost)};
    s->value = load_rlx(&f->lost_value);
    return s->count > 0;
}

const char *profile_goroutine(const Sample *s) {
    if (s->name[0]) return s->name;
    Named n = symbol_of(s->entry);
    return n.name ? n.name : "?";
}
