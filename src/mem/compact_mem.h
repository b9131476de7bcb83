/* Memory of compact stacks: slots at addresses that tell their size (compact_mem.c). */
#ifndef COMPACT_MEM_H
#define COMPACT_MEM_H

#include "runtime.h"

#define SLOT_BASE ((size_t)1536) /* class 0: a compact goroutine's first stack with its record */
#define SLOT_CHUNK ((size_t)2 << 20)
#define SLOT_CLASSES 24 /* class c > 0: 1 KB << c, so 2 KB to 8 GB */
#define SLOT_SMALL 10   /* free slots up to this class (1 MB) may keep their memory */

extern struct Slots {
    uintptr_t base; /* of the reserved range; 0: there is none */
    size_t span;    /* of all classes together */
    unsigned shift; /* each class has 1 << shift bytes of address space */
    int classes;
    bool scarce; /* less address space than asked for: stacks are counted (compact_stack.h) */
} slots;

INLINE size_t slot_size(int cls) { return cls == 0 ? SLOT_BASE : (size_t)1024 << cls; }

/* The least class above 0 that holds so many bytes; -1: there is none. */
INLINE int slot_class(size_t bytes) {
    if (bytes <= slot_size(1)) return 1;
    int c = 64 - __builtin_clzll(bytes - 1) - 10;
    return c < slots.classes ? c : -1;
}

/* The lowest byte and the class of the slot that holds the address; 0: not in the range. */
INLINE uintptr_t slot_at(uintptr_t at, int *cls) {
    uintptr_t off = at - slots.base;
    if (off >= slots.span) return 0;
    int c = (int)(off >> slots.shift);
    *cls = c;
    if (c > 0) return slots.base + (off & ~(uintptr_t)(slot_size(c) - 1));
    uintptr_t in = off % SLOT_CHUNK;
    return slots.base + (off - in) + in / SLOT_BASE * SLOT_BASE;
}

bool slots_reserve(void); /* once; false: no address space, or not on this machine */
/* Gets up to n slots (undefined contents): how many. In a section, no lock above RANK_STACK. */
int slot_alloc(int cls, void **slot, int n);
void slot_free(int cls, void **slot, int n);
/* The monitor: gives back memory of slots that were free for a while. True: more is to come. */
bool slots_scavenge(void);
uint64_t slots_first(void);      /* how many slots of class 0 there can be */
uint64_t slots_mapped(void);     /* bytes of chunks ever used */
uint64_t slots_free_bytes(void); /* bytes of free slots that still have their memory, about */

#endif
