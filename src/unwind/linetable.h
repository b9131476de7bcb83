/* DWARF's line tables, versions 2 to 5, in memory (linetable.c). */
#ifndef LINETABLE_H
#define LINETABLE_H

#include "unwind/bytes.h"

typedef struct Line {
    const char *file; /* without its directories; NULL: unknown. Lives as long as the table */
    uint32_t line;
} Line;

/* The code in [lo, hi): the row that is in force at lo, and where the program goes on behind it. */
typedef struct LineChunk {
    uint64_t lo, hi;
    uint32_t unit, at; /* offsets in .debug_line: of the unit, and into its program */
    uint32_t file, line;
} LineChunk;

typedef struct LineTable {
    Bytes line, line_str, str; /* .debug_line, .debug_line_str, .debug_str; may be empty */
    uint64_t lo, hi;           /* the virtual addresses of the module's code; lo is not 0 */
    uint32_t count;
    LineChunk *chunks; /* sorted by lo */
} LineTable;

#define LINETABLE_MAX (64u << 20) /* .debug_line of more bytes is not read */

/* Collects the chunks of t, at most `most`, not sorted; NULL: counts them. Their number. */
uint32_t linetable_index(const LineTable *t, LineChunk *to, uint32_t most);
/* The line of a virtual address. t->chunks has been filled and sorted. */
Line linetable_search(const LineTable *t, uint64_t address);

#endif
