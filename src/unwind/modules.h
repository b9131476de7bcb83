/* The executable and the shared libraries of this process (modules.c). */
#ifndef MODULES_H
#define MODULES_H

#include "base/base.h"

typedef struct Symbol {
    uint64_t value;
    uint32_t size, name;
} Symbol;

typedef struct Module {
    uintptr_t bias;   /* address - virtual address in the file */
    uintptr_t lo, hi; /* the addresses that its segments cover */
    uintptr_t eh_hdr; /* .eh_frame_hdr; 0: none */
    char path[232];
    uint32_t state;  /* atomic, symbols.c: 0 not read, 1 being read, 2 ready, 3 has none */
    uint32_t reader; /* atomic: the number of the thread that reads, or has read */
    uint32_t count;
    Symbol *symbols; /* sorted by value */
    char *strings;
    uint64_t strings_size;
    struct LineTable *lines; /* atomic, line.c; NULL: not read */
} Module;

/* The module that pc lies in; NULL: none is known. Any thread, in a handler. */
Module *module_of(uintptr_t pc);
Module *module_of_newest(uintptr_t pc);     /* also one that was opened this moment */
Module *module_at(uint32_t index);          /* enumerates; NULL: no more. 0: the executable */
const char *module_name(const Module *mod); /* the last part of its path */

#endif
