/*
 * Memory of compact stacks.
 *
 * One range of address space is reserved at the start and cut into equal parts, one per size:
 *
 *     | class 0: 1.5 KB | class 1: 2 KB | class 2: 4 KB | ... | class 19: 512 MB | ... 8 GB |
 *     ^slots.base                                                    addresses grow this way
 *
 * So arithmetic alone finds the slot of a stack pointer (slot_at): a switch knows the guard of the
 * stack it comes to without a load, and a longjmp or an exception that leaves segments needs no
 * landing pad to say where it arrived. A goroutine's segments double, so a deeper one lies at a
 * higher address: after a jump outwards over segments the guard is that of a deeper one, above the
 * stack pointer, the next prologue fails its check, and split.c corrects the guard. Stacks of 1.5
 * KB lie side by side, 1365 in a chunk of 2 MB, which one huge page can hold.
 *
 * Records are outside of the memory they describe: a chunk has a bit per free slot, and the monitor
 * gives back the free pages of chunks untouched since it last looked. A class above 64 KB has one
 * slot per chunk. Slots are taken from the chunk at the head of the class's list. A full chunk gets
 * there when a slot of it is freed: nearly full chunks fill up, nearly empty ones drain.
 *
 * A chunk gets its memory in steps of STEP bytes ahead of the slots (MADV_POPULATE_WRITE: one call
 * instead of 32 faults), in small pages. It becomes a huge page only when it is full and quiet: in
 * a virtual machine, touching a large block again may cost ten times what a huge page saves.
 */
#include "mem/compact_mem.h"
#include "os/os.h"

#define PAGE ((size_t)4096)
#define SHARED_CLASS 6 /* up to 64 KB: several slots in a chunk */
#define WORDS 22       /* 1365 bits */
#define PLAIN_CHUNKS 4 /* these first ones fill page by page: few goroutines must not cost 2 MB */
#define STEP ((uint32_t)128 << 10)
#define NONE UINT32_MAX
#define SHIFT_FULL 38 /* 180 million first stacks: as good as no bound */

typedef struct SlotChunk {
    uint64_t bits[WORDS]; /* 1: free */
    uint32_t next;        /* list of chunks with free slots */
    uint32_t filled;      /* bytes from its beginning that got memory in steps */
    uint16_t free;
    bool listed;
    bool warm;  /* free slots may have memory */
    bool moved; /* a slot was taken or freed since the monitor last looked */
    bool huge;  /* the monitor's alone: the kernel may make it one page */
} SlotChunk;

typedef struct SlotClass {
    size_t size, chunk;
    uint32_t per_chunk, made, most; /* slots in a chunk; chunks ever used, and possible */
    uint32_t list;                  /* head; NONE */
    SlotChunk *chunks;
} SlotClass;

struct Slots slots;

static struct {
    Lock lock;
    /* lock: */
    SlotClass of[SLOT_CLASSES];
} slotpool;

/* ---- the range ------------------------------------------------------------------------------- */

static bool reserve(unsigned shift) {
    size_t span = (size_t)SLOT_CLASSES << shift;
    char *at = os_map(span + SLOT_CHUNK, true);
    if (at == NULL) return false;
    os_no_huge(at, span + SLOT_CHUNK);
    os_dump(at, span + SLOT_CHUNK, false); /* a core dump would walk through all of it */
    slots.base = ((uintptr_t)at + SLOT_CHUNK - 1) & ~(SLOT_CHUNK - 1);
    slots.span = span;
    slots.shift = shift;
    return true;
}

static bool class_init(int c) {
    SlotClass *k = &slotpool.of[c];
    k->size = slot_size(c);
    k->chunk = c <= SHARED_CLASS ? SLOT_CHUNK : k->size;
    k->per_chunk = (uint32_t)(k->chunk / k->size);
    k->most = (uint32_t)(((size_t)1 << slots.shift) / k->chunk);
    k->list = NONE;
    k->chunks = k->most ? os_map(k->most * sizeof(SlotChunk), false) : NULL;
    return k->chunks != NULL;
}

bool slots_reserve(void) {
    if (slots.base) return true;
    /* less where the address space is limited */
    for (unsigned shift = SHIFT_FULL; shift >= 26; shift -= 4)
        if (reserve(shift)) break;
    if (slots.base == 0) return false;
    slots.scarce = slots.shift < SHIFT_FULL;
    for (int c = 0; c < SLOT_CLASSES && class_init(c); c++) slots.classes = c + 1;
    if (slots.classes > SHARED_CLASS) return true;
    slots.base = slots.span = 0;
    return false;
}

static char *chunk_at(int cls, uint32_t i) {
    return (char *)slots.base + ((size_t)cls << slots.shift) + (size_t)i * slotpool.of[cls].chunk;
}

/* ---- taking and giving ----------------------------------------------------------------------- */

/* Under the lock. */
static void list_chunk(SlotClass *k, uint32_t i) {
    SlotChunk *c = &k->chunks[i];
    if (c->listed || c->free == 0) return;
    c->listed = true;
    c->next = k->list;
    k->list = i;
}

/* Under the lock. */
static bool new_chunk(int cls) {
    SlotClass *k = &slotpool.of[cls];
    if (k->made == k->most) return false;
    SlotChunk *c = &k->chunks[k->made];
    for (uint32_t i = 0; i < k->per_chunk; i++) c->bits[i / 64] |= 1ULL << i % 64;
    c->free = (uint16_t)k->per_chunk;
    os_dump(chunk_at(cls, k->made), k->chunk, true);
    if (cls != 0 || k->made < PLAIN_CHUNKS) c->filled = SLOT_CHUNK; /* no steps */
    list_chunk(k, k->made++);
    return true;
}

static uint32_t first_bit(SlotChunk *c) {
    uint32_t w = 0;
    while (c->bits[w] == 0) w++;
    return w * 64 + (uint32_t)__builtin_ctzll(c->bits[w]);
}

/* Under the lock. NULL: the class is used up. *step: the caller populates it outside of the lock; a
 * thread that takes a neighbouring slot meanwhile faults its page in. */
static void *slot_take_locked(int cls, char **step) {
    SlotClass *k = &slotpool.of[cls];
    while (k->list != NONE && k->chunks[k->list].free == 0) { /* the monitor holds them */
        k->chunks[k->list].listed = false;
        k->list = k->chunks[k->list].next;
    }
    if (k->list == NONE && !new_chunk(cls)) return NULL;
    uint32_t i = k->list;
    SlotChunk *c = &k->chunks[i];
    uint32_t bit = first_bit(c);
    c->bits[bit / 64] &= ~(1ULL << bit % 64);
    c->warm = c->moved = true;
    if (--c->free == 0) {
        c->listed = false;
        k->list = c->next;
    }
    if ((bit + 1) * k->size > c->filled) {
        *step = chunk_at(cls, i) + c->filled;
        c->filled += STEP;
    }
    return chunk_at(cls, i) + (size_t)bit * k->size;
}

int slot_alloc(int cls, void **slot, int n) {
    int got = 0;
    char *step = NULL;
    lock(&slotpool.lock, RANK_STACK);
    while (got < n && (slot[got] = slot_take_locked(cls, &step)) != NULL) got++;
    unlock(&slotpool.lock);
    if (step) os_populate(step, STEP);
    return got;
}

static void slot_give_locked(int cls, void *slot) {
    SlotClass *k = &slotpool.of[cls];
    size_t off = (uintptr_t)slot - slots.base - ((size_t)cls << slots.shift);
    uint32_t i = (uint32_t)(off / k->chunk), bit = (uint32_t)(off % k->chunk / k->size);
    SlotChunk *c = &k->chunks[i];
    check((c->bits[bit / 64] >> bit % 64 & 1) == 0);
    c->bits[bit / 64] |= 1ULL << bit % 64;
    c->free++;
    c->moved = true;
    if (cls > SLOT_SMALL) c->warm = false;
    list_chunk(k, i);
}

void slot_free(int cls, void **slot, int n) {
    if (cls > SLOT_SMALL)
        for (int i = 0; i < n; i++) os_discard(slot[i], slotpool.of[cls].size);
    lock(&slotpool.lock, RANK_STACK);
    for (int i = 0; i < n; i++) slot_give_locked(cls, slot[i]);
    unlock(&slotpool.lock);
}

/* ---- giving back, and figures ---------------------------------------------------------------- */

/* Gives back the pages that lie wholly in a run of free slots. */
static void discard_run(char *from, char *to) {
    uintptr_t lo = ((uintptr_t)from + PAGE - 1) & ~(PAGE - 1), hi = (uintptr_t)to & ~(PAGE - 1);
    if (hi > lo) os_discard((void *)lo, hi - lo);
}

static void discard_free(SlotClass *k, char *at, const uint64_t *bits) {
    uint32_t run = 0;
    for (uint32_t i = 0; i <= k->per_chunk; i++) {
        bool free = i < k->per_chunk && (bits[i / 64] >> i % 64 & 1);
        if (free) run++;
        else if (run > 0) {
            char *end = at + (size_t)i * k->size;
            discard_run(end - run * k->size, i == k->per_chunk ? at + k->chunk : end);
            run = 0;
        }
    }
}

/* Holds the free slots of a quiet chunk while it gives their pages back outside of the lock. */
static void scavenge_chunk(int cls, uint32_t i) {
    SlotClass *k = &slotpool.of[cls];
    SlotChunk *c = &k->chunks[i];
    uint64_t held[WORDS];
    lock(&slotpool.lock, RANK_STACK);
    bool quiet = c->warm && !c->moved && c->free >= k->per_chunk / 4;
    c->moved = false;
    if (quiet) {
        for (int w = 0; w < WORDS; w++) held[w] = c->bits[w], c->bits[w] = 0;
        c->free = 0;
        c->warm = false;
    }
    unlock(&slotpool.lock);
    if (!quiet) return;
    if (c->huge) os_no_huge(chunk_at(cls, i), SLOT_CHUNK); /* or the kernel fills the holes again */
    c->huge = false;
    discard_free(k, chunk_at(cls, i), held);
    lock(&slotpool.lock, RANK_STACK);
    for (int w = 0; w < WORDS; w++) {
        c->bits[w] |= held[w];
        c->free = (uint16_t)(c->free + __builtin_popcountll(held[w]));
    }
    /* the steps begin anew; they do nothing where there is memory */
    if (cls == 0 && i >= PLAIN_CHUNKS) c->filled = 0;
    list_chunk(k, i);
    unlock(&slotpool.lock);
}

/* Makes a full and quiet chunk of first stacks one huge page. True: look again. */
static bool settle_chunk(uint32_t i) {
    SlotChunk *c = &slotpool.of[0].chunks[i];
    lock(&slotpool.lock, RANK_STACK);
    bool settled = c->free == 0 && !c->moved, moved = c->moved;
    c->moved = false;
    unlock(&slotpool.lock);
    if (settled) {
        os_huge(chunk_at(0, i), SLOT_CHUNK);
        c->huge = true;
    }
    return moved;
}

bool slots_scavenge(void) {
    bool more = false;
    for (int cls = 0; cls < slots.classes; cls++) {
        SlotClass *k = &slotpool.of[cls];
        for (uint32_t i = 0; i < load_rlx(&k->made); i++) {
            SlotChunk *c = &k->chunks[i];
            if (cls == 0 && i >= PLAIN_CHUNKS && !c->huge && load_rlx(&c->free) == 0)
                more |= settle_chunk(i);
            if (load_rlx(&c->free) < k->per_chunk / 4 || !load_rlx(&c->warm)) continue;
            scavenge_chunk(cls, i);
            more |= load_rlx(&c->warm);
        }
    }
    return more;
}

uint64_t slots_first(void) { return (uint64_t)slotpool.of[0].most * slotpool.of[0].per_chunk; }

uint64_t slots_mapped(void) {
    uint64_t bytes = 0;
    for (int cls = 0; cls < slots.classes; cls++)
        bytes += (uint64_t)load_rlx(&slotpool.of[cls].made) * slotpool.of[cls].chunk;
    return bytes;
}

uint64_t slots_free_bytes(void) {
    uint64_t bytes = 0;
    for (int cls = 0; cls < slots.classes; cls++) {
        SlotClass *k = &slotpool.of[cls];
        for (uint32_t i = 0; i < load_rlx(&k->made); i++)
            if (load_rlx(&k->chunks[i].warm)) bytes += load_rlx(&k->chunks[i].free) * k->size;
    }
    return bytes;
}
