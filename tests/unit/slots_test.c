/* Memory of compact stacks from inside: no slot twice, each found by its address; memory comes in
 * steps, a full and quiet chunk may become a huge page, a drained one gives its pages back. */
#include "mem/compact_mem.h"
#include "../lib/test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PER_CHUNK = 1365, CHUNKS = 7, MANY = PER_CHUNK * CHUNKS, PAGES = 512, STEP_PAGES = 32 };
static void *slot[MANY];

static char *chunk(int i) { return (char *)slots.base + (size_t)i * SLOT_CHUNK; }

static int resident(int i) {
    unsigned char in[PAGES];
    int n = 0;
    CHECK_EQ(mincore(chunk(i), SLOT_CHUNK, in), 0);
    for (int p = 0; p < PAGES; p++) n += in[p] & 1;
    return n;
}

/* Whether the mapping that holds a chunk has this one of the flags that smaps shows. */
static bool flag(int i, const char *name) {
    char line[1024], key[8];
    uintptr_t lo, hi, at = (uintptr_t)chunk(i);
    bool here = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f != NULL);
    snprintf(key, sizeof key, " %s", name);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2) here = at >= lo && at < hi;
        else if (here && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, key) != NULL;
    }
    fclose(f);
    return found;
}

static void take(int from, int n) {
    while (n > 0) {
        int got = slot_alloc(0, slot + from, n < 16 ? n : 16);
        CHECK(got > 0);
        for (int i = from; i < from + got; i++) memset(slot[i], i, SLOT_BASE);
        from += got, n -= got;
    }
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

static void places(void) {
    qsort(slot, MANY, sizeof slot[0], by_address);
    for (int i = 0; i < MANY; i++) {
        int cls = -1;
        CHECK(slot_at((uintptr_t)slot[i], &cls) == (uintptr_t)slot[i] && cls == 0);
        CHECK(slot_at((uintptr_t)slot[i] + SLOT_BASE - 1, &cls) == (uintptr_t)slot[i]);
        if (i > 0) CHECK_GE((uintptr_t)slot[i] - (uintptr_t)slot[i - 1], SLOT_BASE);
    }
}

/* The first chunks page by page; later ones a step at a time, which is seen before all is
 * touched. */
static bool populates; /* Linux 5.14 */
static bool can_populate(void) {
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return madvise(at, 4096, 23) == 0;
}
static void steps(void) {
    take(0, 5 * PER_CHUNK - 1);
    CHECK_EQ(slot_alloc(0, &slot[5 * PER_CHUNK - 1], 1), 1);
    CHECK_EQ(resident(5), 0);
    CHECK_EQ(slot_alloc(0, &slot[5 * PER_CHUNK], 1), 1);
    populates = can_populate();
    CHECK_EQ(resident(5), populates ? STEP_PAGES : 0);
    take(5 * PER_CHUNK + 1, 2 * PER_CHUNK - 1);
    memset(slot[5 * PER_CHUNK - 1], 0, SLOT_BASE), memset(slot[5 * PER_CHUNK], 0, SLOT_BASE);
    CHECK_GE(resident(6), PAGES - 1);
    CHECK_EQ(slot_alloc(0, &slot[MANY - 1], 0), 0);
}

static void settles(void) {
    bool huge = access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
    CHECK(!flag(5, "hg"));
    CHECK(slots_scavenge()); /* all has just moved */
    CHECK(!flag(5, "hg"));
    CHECK(!slots_scavenge()); /* and now nothing has */
    if (huge) CHECK(flag(5, "hg") && flag(6, "hg"));
    CHECK(!flag(0, "hg"));
    CHECK(!slots_scavenge());
    CHECK_GE(resident(5), PAGES - 1);
}

/* Half of a chunk is freed: its pages go, nobody else's do, and no huge page may bring them
 * back. */
static void drains(void) {
    void **half = slot + 5 * PER_CHUNK, *kept = half[PER_CHUNK - 1];
    slot_free(0, half, PER_CHUNK / 2);
    CHECK(slots_scavenge());
    CHECK_GE(resident(5), PAGES - 1);
    CHECK(!slots_scavenge());
    CHECK_LT(resident(5), PAGES * 6 / 10);
    CHECK(!flag(5, "hg") && slots_free_bytes() == 0);
    unsigned char *byte = kept;
    for (size_t i = 1; i < SLOT_BASE; i++) CHECK_EQ(byte[i], byte[0]);
    take(5 * PER_CHUNK, 1);
    if (populates) CHECK_GE(resident(5), PAGES / 2 + STEP_PAGES / 2);
    take(5 * PER_CHUNK + 1, PER_CHUNK / 2 - 1);
    places();
    for (size_t i = 1; i < SLOT_BASE; i++) CHECK_EQ(byte[i], byte[0]);
}

int main(void) {
    if (!slots_reserve()) {
        printf("no address space for compact stacks here\n");
        return 77;
    }
    steps();
    places();
    settles();
    drains();
    return 0;
}
