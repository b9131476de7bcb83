/* Names for addresses, without libc's help (symbols.c). */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include "unwind/modules.h"
#include "base/print.h"

typedef struct Named {
    const char *name;     /* NULL: unknown. Lives as long as the process */
    uint64_t offset;      /* pc - start of the function, or of the module without a name */
    uint64_t size;        /* of the function; 0: unknown */
    const Module *module; /* NULL: unknown */
} Named;

/* Any thread, in a handler; takes no lock. The first call for a module reads its symbol table. */
Named symbol_of(uintptr_t pc);
/* Prints `name+0x12 file.c:34 (module)`, `file.c:34 (module+0x1234)` without a name, each without
 * the line where that is unknown, or `?`. */
void symbol_print(Out *o, uintptr_t pc);
void symbol_print_bare(Out *o, uintptr_t pc); /* without the line */
/* The name as C++ writes it, in room; as it stands where it is none of C++'s, or nothing here can
 * tell. Ordinary goroutines only: the C++ library calls malloc. */
#define SYMBOL_SHOWN 241
const char *symbol_shown(const char *name, char room[SYMBOL_SHOWN]);
/* Prints the name of a symbol, as C++ writes it where the Out grows: there malloc may be called. */
void symbol_name_print(Out *o, const char *name);

#endif
