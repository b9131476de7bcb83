/*
 * The reader of line tables under a coverage-guided fuzzer (clang's libFuzzer, address and
 * undefined behaviour sanitizers): any bytes give an answer or none, in bounded time. The input is
 * .debug_line, and stands for the sections of strings as well.
 *
 *     make fuzz FUZZ_SECONDS=600
 */
#include "unwind/linetable.h"
#include "unwind/sort.h"

#include <stdlib.h>

static void must(bool ok) {
    if (!ok) abort();
}

static void look_up(const LineTable *t, uint64_t address) {
    Line at = linetable_search(t, address);
    if (at.file == NULL) return;
    must(at.line != 0);
    must(strchr(at.file, '/') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size ? size : 1); /* of its very size: a read past the end is found */
    memcpy(exact, data, size);
    Bytes all = {exact, exact + size, false};
    LineTable t = {.line = all, .line_str = all, .str = all, .lo = 1, .hi = (uint64_t)1 << 47};
    t.count = linetable_index(&t, NULL, UINT32_MAX);
    must(t.count <= size);
    t.chunks = calloc(t.count + 1, sizeof *t.chunks);
    must(linetable_index(&t, t.chunks, t.count) == t.count);
    sort_records(t.chunks, t.count, sizeof *t.chunks);
    for (uint32_t i = 0; i < t.count && i < 64; i++) {
        const LineChunk *c = &t.chunks[i];
        must(i == 0 || t.chunks[i - 1].lo <= c->lo);
        must(c->lo >= t.lo && c->lo < c->hi && c->hi <= t.hi);
        look_up(&t, c->lo);
        look_up(&t, c->lo + (c->hi - c->lo) / 2);
        look_up(&t, c->hi - 1);
        look_up(&t, c->hi);
    }
    free(t.chunks);
    free(exact);
    return 0;
}
