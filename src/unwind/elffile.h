/* The file of a module, read by bare system calls (symbols.c). Any thread, in a handler. */
#ifndef ELFFILE_H
#define ELFFILE_H

#include "unwind/modules.h"

#include <elf.h>

int module_open(const Module *mod);                        /* -errno: there is none */
bool open_later(int fd);                                   /* it failed, but need not always fail */
bool read_at(int fd, void *to, size_t n, uint64_t offset); /* false: not all of it is there */
#define SECTION_MAX (256u << 20)
/* A copy of a section, with a zero byte behind it. NULL: it is empty, too large, or not there. */
void *read_section(int fd, const Elf64_Shdr *sh);

#endif
