/*
 * Lines: of this very file, through its own tables; of files that are cut off or altered, of whose
 * tables any bytes are wrong: an answer or none, and never a fault. Recursions in backtraces.
 */
#include "../lib/white.h"
#include "unwind/line.h"
#include "unwind/sort.h"
#include "unwind/symbols.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

static uint64_t rng = 88172645463325252u;
static uint64_t rnd(uint64_t below) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (rng >> 11) % below;
}

/* ---- lines of this file ---------------------------------------------------------------------- */

static uintptr_t came_from;
__attribute__((noinline)) static void here(void) {
    came_from = (uintptr_t)__builtin_return_address(0) - 1;
}

static void check_line(uintptr_t pc, uint32_t line) {
    Line at = line_of(pc);
    CHECKF(at.file && strcmp(at.file, "line.c") == 0, "the file is %s", at.file ? at.file : "?");
    CHECK_EQ(at.line, line);
}

static void own_lines(void) {
    char text[256] = "";
    Out o = OUT(-1, text);
    here(), check_line(came_from, __LINE__);
    here(), check_line(came_from, __LINE__);
    symbol_print(&o, came_from);
    CHECKF(strstr(text, " line.c:"), "it prints %s", text);
    CHECK(line_of((uintptr_t)&rng).file == NULL);
    CHECK(line_of(12345).file == NULL);
}

/* ---- broken tables --------------------------------------------------------------------------- */

typedef struct Copy {
    uint8_t *at;
    size_t size;
} Copy;

/* Of its very size: a read past the end is found by a sanitizer. */
static Bytes cursor(const Copy *c) { return (Bytes){c->at, c->at + c->size, false}; }
static Copy copy_bytes(const Bytes *b) {
    Copy c = {malloc(bytes_left(b) + !bytes_left(b)), bytes_left(b)};
    memcpy(c.at, b->at, c.size);
    return c;
}

/* Changes some bytes, mostly near the beginning of a unit, or cuts the end off. */
static void damage(Copy *c) {
    if (c->size == 0) return;
    if (rnd(4) == 0) {
        c->size = rnd(c->size) + 1;
        c->at = realloc(c->at, c->size);
    }
    for (uint64_t n = rnd(12); n > 0; n--) {
        uint64_t near = rnd(3) ? rnd(c->size < 200 ? c->size : 200) : rnd(c->size);
        c->at[near] = rnd(3) ? (uint8_t)rnd(256) : (uint8_t)(rnd(2) ? 0xff : 0);
    }
}

static void search_all(LineTable *t) {
    uint32_t n = linetable_index(t, NULL, UINT32_MAX);
    LineChunk *chunks = calloc(n + 1, sizeof *chunks);
    t->chunks = chunks;
    t->count = linetable_index(t, chunks, n);
    CHECK_EQ(t->count, n);
    sort_records(chunks, n, sizeof *chunks);
    for (int i = 0; i < 40; i++) {
        uint64_t pc = n && rnd(4) ? chunks[rnd(n)].lo + rnd(64) : t->lo + rnd(t->hi - t->lo);
        Line at = linetable_search(t, pc);
        if (at.file) CHECK(strchr(at.file, '/') == NULL);
    }
    free(chunks);
}

static void broken(const LineTable *from, int rounds) {
    LineTable small = *from; /* some units, from the beginning: many rounds in little time */
    size_t most = 60000;
    if (bytes_left(&small.line) > most) small.line.end = small.line.at + most;
    if (bytes_left(&small.line_str) > most) small.line_str.end = small.line_str.at + most;
    if (bytes_left(&small.str) > most) small.str.end = small.str.at + most;
    for (int i = 0; i < rounds; i++) {
        LineTable t = small;
        Copy line = copy_bytes(&t.line), line_str = copy_bytes(&t.line_str),
             str = copy_bytes(&t.str);
        damage(&line);
        if (rnd(4) == 0) damage(&line_str);
        t.line = cursor(&line), t.line_str = cursor(&line_str), t.str = cursor(&str);
        search_all(&t);
        free(line.at), free(line_str.at), free(str.at);
    }
}

/* A list with entries of no bytes, as many as a number can be: they are not counted through. */
static void endless_list(void) {
    static const uint8_t unit[] = {
        44, 0,    0,    0,    5,    0,    8,    0,    20,   0, 0, 0, /* version 5 */
        1,  1,    1,    0xfb, 14,   1,                               /* special opcodes only */
        0,  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0,  0,   0, /* the lists */
        0,  9,    2,    0,    16,   0,    0,    0,    0,    0, 0, 30, 254, 0,
        1,  1}; /* 0x1002 and 0x1014; the end */
    LineChunk chunk;
    LineTable t = {.line = {unit, unit + sizeof unit, false}, .lo = 1, .hi = 1 << 20};
    t.line_str = t.str = t.line;
    CHECK_EQ(t.count = linetable_index(&t, t.chunks = &chunk, 1), 1);
    CHECK_EQ(chunk.lo, 0x1002);
    CHECK(linetable_search(&t, 0x1002).file == NULL);
    CHECK(linetable_search(&t, 0x1002).line != 0);
}

static uint8_t *put(uint8_t *to, uint64_t v, int n) {
    for (int i = 0; i < n; i++) *to++ = (uint8_t)(v >> 8 * i);
    return to;
}

/* Directories whose names have no end, in a large section: they are passed, not looked for. */
static void endless_names(void) {
    enum { NAMES = 400000, TEXT = 32 << 20 };
    static const uint8_t head[] = {1, 1, 1, 0xfb, 14, 1, 1, 1, 0x1f, 0x80, 0xb5, 0x18};
    static const uint8_t program[] = {0, 9, 2, 0, 16, 0, 0, 0, 0, 0, 0, 30, 254, 0, 1, 1};
    uint8_t *unit = calloc(1, 5 * NAMES), *at = unit, *text = malloc(TEXT);
    memset(text, 'x', TEXT);
    at = put(at, 2 + 2 + 4 + sizeof head + 4 * NAMES + 2 + sizeof program, 4);
    at = put(put(put(at, 5, 2), 8, 2), sizeof head + 4 * NAMES + 2, 4);
    at = (uint8_t *)memcpy(at, head, sizeof head) + sizeof head + 4 * NAMES + 2; /* no files */
    at = (uint8_t *)memcpy(at, program, sizeof program) + sizeof program;
    LineChunk chunk;
    LineTable t = {.line = {unit, at, false}, .lo = 1, .hi = 1 << 20, .chunks = &chunk};
    t.line_str = t.str = (Bytes){text, text + TEXT, false};
    CHECK_EQ(t.count = linetable_index(&t, &chunk, 1), 1);
    CHECK(linetable_search(&t, 0x1002).file == NULL);
    CHECK(linetable_search(&t, 0x1002).line != 0);
    free(unit), free(text);
}

/* ---- broken files ---------------------------------------------------------------------------- */

static char path[64];

static LineTable *lines_in(const uint8_t *bytes, size_t n) {
    Module mod = *module_of((uintptr_t)own_lines);
    uintptr_t away = (uintptr_t)1 << 40; /* nothing is mapped there to compare the file with */
    Module copy = {.bias = mod.bias + away, .lo = mod.lo + away, .hi = mod.hi + away};
    bool later;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    strcpy(copy.path, path);
    return lines_read(&copy, &later);
}

static void broken_files(void) {
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(size), *altered = malloc(size);
    CHECK_EQ(read(fd, bytes, size), st.st_size);
    close(fd);
    snprintf(path, sizeof path, "/tmp/gort-line-%d", (int)getpid());
    CHECK(lines_in(bytes, size) != NULL);
    CHECK(lines_in(bytes, 10) == NULL);
    CHECK(lines_in(bytes, size / 2) == NULL); /* the list of sections stands at the end */
    memset(altered, 'x', size);
    CHECK(lines_in(altered, size) == NULL);
    size_t sections; /* e_shoff */
    memcpy(&sections, bytes + 40, sizeof sections);
    for (int i = 0; i < 60; i++) {
        memcpy(altered, bytes, size);
        for (int k = 0; k < 6; k++) {
            size_t at = rnd(2) ? rnd(64) : sections + rnd(size - sections);
            altered[at] = (uint8_t)rnd(256);
        }
        LineTable *t = lines_in(altered, size);
        if (t) linetable_search(t, t->lo + rnd(t->hi - t->lo));
    }
    unlink(path);
    free(bytes);
    free(altered);
}

/* ---- recursions ------------------------------------------------------------------------------ */

static uintptr_t pcs[64];
static uint32_t more[64];
static int count;
static volatile int sink;

__attribute__((noinline)) static void take(void) {
    Regs r;
    ucontext_t now;
    getcontext(&now);
    regs_context(&r, &now);
    count = unwind_folded(&r, 0, UINTPTR_MAX / 2, pcs, more, 64);
    sink++;
}

__attribute__((noinline)) static void ping(int n);
__attribute__((noinline)) static void pong(int n) {
    ping(n);
    sink++;
}
static void ping(int n) {
    if (n == 0) take();
    else pong(n - 1);
    sink++;
}

static uint32_t left_out(void) {
    uint32_t n = 0;
    for (int i = 0; i < count; i++) n += more[i];
    return n;
}

static bool has_frame(const char *name) {
    for (int i = 0; i < count; i++) {
        const char *is = symbol_of(pcs[i] - 1).name;
        if (is && strcmp(is, name) == 0) return true;
    }
    return false;
}

__attribute__((noinline)) static void recursions(void) {
    ping(1000);
    CHECK(has_frame("recursions") && has_frame("main"));
    CHECK(count < 30);
    CHECK(left_out() >= 1990 && left_out() % 2 == 0); /* whole turns */
    ping(2);
    CHECK_EQ(left_out(), 0);
}

int main(void) {
    bool later;
    const LineTable *own = lines_read(module_of((uintptr_t)own_lines), &later);
    recursions();
    endless_list();
    endless_names();
    if (own == NULL) return 77; /* built without -g */
    own_lines();
    broken(own, 3000);
    broken_files();
    return 0;
}
