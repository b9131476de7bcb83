/*
 * From an address to a line, by the tables that -g leaves in .debug_line.
 *
 * The section is a sequence of units, one per compiled file. A unit is a header, a list of file
 * names and a program for a small machine with three registers that matter here: address, file and
 * line. "Advance the address by 12 and the line by 3, and append a row" is a single byte. A row
 * holds from its address to that of the next row. An end of sequence closes a contiguous piece of
 * code, and the machine starts anew.
 *
 * .debug_aranges would lead from an address to its unit, by way of .debug_info and .debug_abbrev.
 * clang does not write it, and three more sections would have to be understood. Instead all
 * programs run once, when the first line of a module is asked for, and leave an index: for each 1
 * KB of a program a chunk, the registers at that point with the addresses that follow. A lookup is
 * a binary search and at most so many steps of one program. That is a few microseconds, less than
 * finding the frame, so lines are not cached and a lookup changes nothing: any number of threads
 * and handlers may look at once.
 *
 * Nothing in the file is trusted. Every byte is read through a cursor with an end (bytes.h), an
 * instruction or an entry of a list takes at least one byte, and lookups have a limit: a broken
 * table gives a wrong line or none, in bounded time. What was compiled and then left out by the
 * linker stays in the tables at address 0 or at the end of the address space; the bounds of the
 * module tell those apart.
 *
 * A frame has one line. Functions that were inlined into it are described in .debug_info only, and
 * are not shown: the line is that of the innermost of them, in the name of the function that is
 * there in the code.
 */
#include "unwind/linetable.h"

#define CHUNK 1024          /* bytes of a program between two entries of the index */
#define LOOK_MAX (64 << 10) /* bytes of a program that one lookup runs */
#define OVERLAPS 8          /* chunks that may begin between pc and the chunk that has it */

typedef struct LineUnit {
    Bytes tables; /* the lists of directories and files */
    Bytes program;
    const uint8_t *operands; /* of the opcodes from 1 to opcode_base - 1: how many each has */
    unsigned version, min_length, line_range, opcode_base;
    int line_base;
    bool wide; /* the format of 64 bits */
} LineUnit;

typedef struct LineRow {
    uint64_t address;
    uint32_t file, line;
} LineRow;

static const LineRow first_row = {0, 1, 1};

static uint64_t line_offset(const LineUnit *u, Bytes *b) { return fixed(b, u->wide ? 8 : 4); }

/* ---- units ----------------------------------------------------------------------------------- */

/* `in`: the unit behind its length. */
static bool line_header(LineUnit *u, Bytes in) {
    u->version = (unsigned)fixed(&in, 2);
    if (u->version < 2 || u->version > 5) return false;
    if (u->version == 5 && (fixed(&in, 1) != 8 || fixed(&in, 1) != 0)) return false;
    uint64_t length = line_offset(u, &in);
    Bytes head = bytes_take(&in, length);
    u->program = in;
    u->min_length = (unsigned)fixed(&head, 1);
    if (u->version >= 4 && fixed(&head, 1) > 1) return false; /* operations per instruction */
    fixed(&head, 1);                                          /* whether a row is a statement */
    u->line_base = (int8_t)fixed(&head, 1);
    u->line_range = (unsigned)fixed(&head, 1);
    u->opcode_base = (unsigned)fixed(&head, 1);
    if (u->line_range == 0 || u->opcode_base == 0) return false;
    u->operands = bytes_take(&head, u->opcode_base - 1).at;
    u->tables = head;
    return !head.bad;
}

/* Takes the next unit. False: there are no more. One that is not understood has no program. */
static bool line_unit(Bytes *b, LineUnit *u) {
    uint64_t length = fixed(b, 4);
    *u = (LineUnit){.wide = length == 0xffffffff};
    if (u->wide) length = fixed(b, 8);
    Bytes in = bytes_take(b, length);
    if (b->bad) return false;
    if (!line_header(u, in)) u->program = (Bytes){in.end, in.end, true};
    return true;
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef enum LineStep { STEP_QUIET, STEP_ROW, STEP_END } LineStep;

static LineStep line_extended(Bytes *b, LineRow *r) {
    Bytes in = bytes_take(b, uleb(b));
    unsigned op = (unsigned)fixed(&in, 1);
    if (op == 1) return STEP_END;
    if (op == 2 && bytes_left(&in) <= 8) r->address = fixed(&in, (unsigned)bytes_left(&in));
    return STEP_QUIET;
}

static void line_advance(const LineUnit *u, LineRow *r, uint64_t by) {
    r->address += u->min_length * by;
}

static LineStep line_special(const LineUnit *u, LineRow *r, unsigned op) {
    line_advance(u, r, op / u->line_range);
    r->line += (uint32_t)(u->line_base + (int)(op % u->line_range));
    return STEP_ROW;
}

static LineStep line_step(const LineUnit *u, Bytes *b, LineRow *r) {
    unsigned op = (unsigned)fixed(b, 1);
    if (op >= u->opcode_base) return line_special(u, r, op - u->opcode_base);
    switch (op) {
    case 0: return line_extended(b, r);
    case 1: return STEP_ROW;
    case 2: line_advance(u, r, uleb(b)); break;
    case 3: r->line += (uint32_t)sleb(b); break;
    case 4: r->file = (uint32_t)uleb(b); break;
    case 8: line_advance(u, r, (255 - u->opcode_base) / u->line_range); break;
    case 9: r->address += fixed(b, 2); break;
    default: /* columns and marks, and what is not known */
        for (unsigned n = u->operands[op - 1]; n > 0; n--) uleb(b);
    }
    return STEP_QUIET;
}

/* ---- the index ------------------------------------------------------------------------------- */

typedef struct LineIndex {
    const LineTable *table;
    LineChunk *to; /* NULL: only counts */
    uint32_t n, most;
    LineChunk open; /* the chunk that the program is in; hi is not known yet */
    enum { SEQUENCE_NONE, SEQUENCE_LIVE, SEQUENCE_DEAD } sequence;
} LineIndex;

static void chunk_close(LineIndex *x, uint64_t hi) {
    x->open.hi = hi;
    if (x->open.lo >= hi || hi > x->table->hi || x->n == x->most) return;
    if (x->to) x->to[x->n] = x->open;
    x->n++;
}

static void index_row(LineIndex *x, const LineRow *r, uint32_t unit, uint32_t at) {
    const LineTable *t = x->table;
    bool first = x->sequence == SEQUENCE_NONE;
    if (first)
        x->sequence = r->address >= t->lo && r->address < t->hi ? SEQUENCE_LIVE : SEQUENCE_DEAD;
    if (x->sequence == SEQUENCE_DEAD) return;
    if (!first && (at - x->open.at < CHUNK || r->address <= x->open.lo)) return;
    if (!first) chunk_close(x, r->address);
    x->open = (LineChunk){r->address, 0, unit, at, r->file, r->line};
}

static void index_unit(LineIndex *x, const LineUnit *u, uint32_t unit) {
    LineRow r = first_row;
    Bytes b = u->program;
    x->sequence = SEQUENCE_NONE;
    while (b.at < b.end && !b.bad) {
        LineStep step = line_step(u, &b, &r);
        if (step == STEP_ROW) index_row(x, &r, unit, (uint32_t)(b.at - x->table->line.at));
        if (step != STEP_END) continue;
        if (x->sequence == SEQUENCE_LIVE) chunk_close(x, r.address);
        x->sequence = SEQUENCE_NONE;
        r = first_row;
    }
}

uint32_t linetable_index(const LineTable *t, LineChunk *to, uint32_t most) {
    LineIndex x = {.table = t, .to = to, .most = most};
    Bytes all = t->line;
    LineUnit u;
    if (bytes_left(&all) > LINETABLE_MAX) return 0;
    for (const uint8_t *at = all.at; line_unit(&all, &u); at = all.at)
        index_unit(&x, &u, (uint32_t)(at - t->line.at));
    return x.n;
}

/* ---- names of files -------------------------------------------------------------------------- */

/* A string in place, ended by a zero byte. NULL: it has no end. */
static const char *line_text(Bytes *b) {
    const uint8_t *s = b->at, *end = bytes_left(b) > 0 ? memchr(s, 0, bytes_left(b)) : NULL;
    if (end == NULL) return b->bad = true, NULL;
    b->at = end + 1;
    return (const char *)s;
}

static const char *text_at(Bytes section, uint64_t offset) {
    bytes_take(&section, offset);
    return line_text(&section);
}

/* Version 2 to 4: directories, then files from 1 on; an empty name ends each list. */
static const char *file_by_list(const LineUnit *u, uint32_t file) {
    Bytes b = u->tables;
    const char *name;
    while ((name = line_text(&b)) && *name) {}
    for (uint32_t i = 1; (name = line_text(&b)) && *name; i++) {
        if (i == file) return name;
        for (int n = 0; n < 3; n++) uleb(&b); /* directory, time, length */
    }
    return NULL;
}

/* One field of an entry: its text, if it is one and is wanted. Others are not looked up: each may
 * be a search for the end of a section. */
static const char *line_field(const LineTable *t, const LineUnit *u, Bytes *b, uint64_t form,
                              bool wanted) {
    uint64_t offset;
    switch (form) {
    case 0x08: return line_text(b);
    case 0x0e: offset = line_offset(u, b); return wanted ? text_at(t->str, offset) : NULL;
    case 0x1f: offset = line_offset(u, b); return wanted ? text_at(t->line_str, offset) : NULL;
    case 0x0b:
    case 0x25: fixed(b, 1); break;
    case 0x05:
    case 0x26: fixed(b, 2); break;
    case 0x27: bytes_take(b, 3); break;
    case 0x06:
    case 0x28: fixed(b, 4); break;
    case 0x07: fixed(b, 8); break;
    case 0x1e: bytes_take(b, 16); break;
    case 0x09: bytes_take(b, uleb(b)); break;
    case 0x0d:
    case 0x0f:
    case 0x1a: uleb(b); break;
    default: b->bad = true;
    }
    return NULL;
}

/* Version 5: a description of an entry's fields, the number of entries, the entries. The name of
 * the entry `wanted`; NULL: there is none, and the list has been passed. */
static const char *list_find(const LineTable *t, const LineUnit *u, Bytes *b, uint64_t wanted) {
    unsigned fields = (unsigned)fixed(b, 1);
    Bytes format = *b;
    for (unsigned i = 0; i < 2 * fields; i++) uleb(b);
    uint64_t count = uleb(b);
    if (fields == 0 && count > 0) b->bad = true;
    for (uint64_t i = 0; i < count && !b->bad; i++) {
        Bytes f = format;
        for (unsigned k = 0; k < fields; k++) {
            uint64_t what = uleb(&f), form = uleb(&f);
            bool name = what == 1 && i == wanted;
            const char *text = line_field(t, u, b, form, name);
            if (name) return text;
        }
    }
    return NULL;
}

static const char *file_name(const LineTable *t, const LineUnit *u, uint32_t file) {
    const char *name, *slash;
    if (u->version < 5) {
        name = file_by_list(u, file);
    } else {
        Bytes b = u->tables;
        list_find(t, u, &b, UINT64_MAX);
        name = list_find(t, u, &b, file);
    }
    slash = name ? strrchr(name, '/') : NULL;
    return slash ? slash + 1 : name;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static Line line_in_chunk(const LineTable *t, const LineChunk *c, uint64_t address) {
    Line none = {NULL, 0};
    Bytes all = t->line;
    LineUnit u;
    bytes_take(&all, c->unit);
    if (!line_unit(&all, &u)) return none;
    LineRow r = {c->lo, c->file, c->line}, last = r;
    Bytes b = {t->line.at + c->at, u.program.end, false};
    for (const uint8_t *begin = b.at; b.at < b.end && b.at - begin < LOOK_MAX; last = r) {
        LineStep step;
        while ((step = line_step(&u, &b, &r)) == STEP_QUIET && b.at < b.end && !b.bad) {}
        if (b.bad || step == STEP_QUIET) break;
        if (r.address > address)
            return last.line == 0 ? none : (Line){file_name(t, &u, last.file), last.line};
        if (step == STEP_END) break;
    }
    return none;
}

Line linetable_search(const LineTable *t, uint64_t address) {
    uint32_t lo = 0, hi = t->count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->chunks[mid].lo <= address) lo = mid + 1;
        else hi = mid;
    }
    for (uint32_t back = 0; back < OVERLAPS && lo > back; back++) {
        const LineChunk *c = &t->chunks[lo - 1 - back];
        if (address < c->hi) return line_in_chunk(t, c, address);
    }
    return (Line){NULL, 0};
}
