/* The lines of source files that addresses come from (line.c). */
#ifndef LINE_H
#define LINE_H

#include "base/print.h"
#include "unwind/linetable.h"
#include "unwind/modules.h"

/* Any thread, in a handler; takes no lock. The first call for a module reads its tables. */
Line line_of(uintptr_t pc);
/* Prints `file.c:34`, with a blank on the side that is asked for; nothing where it is unknown. */
void line_print(Out *o, uintptr_t pc, const char *before, const char *after);

/* For tests, too: the tables of a module, for ever; NULL: it has none. */
LineTable *lines_read(const Module *mod, bool *later);
extern const char *line_debug_dir; /* where separate debug files lie */

#endif
