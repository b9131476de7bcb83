/*
 * Bad pointers. libc's calls give EFAULT for a pointer that the kernel cannot follow, and so do the
 * hook's where the kernel is asked first. A call that has to look before (a time, pieces, sets, an
 * address) asks whether the memory can be read. Where it cannot, libc makes the call.
 *
 * The kernel's answer is a system call, so the numbers of pages that could be read are kept, as a
 * hint: memory that was unmapped since faults here instead. The caller's own frames are not asked
 * about.
 */
#include "hook/hook_internal.h"

#define PAGE_BYTES 4096 /* at least: all pages have that or a multiple */
#define PAGES 256

static uintptr_t pages_read[PAGES]; /* atomic, a hint: a page's number and 1 */

static NOINLINE bool page_ask(uintptr_t page) {
    char byte;
    if (core == NULL || !core->read_memory(page * PAGE_BYTES, &byte, 1)) return false;
    store_rlx(&pages_read[page % PAGES], page + 1);
    return true;
}

NOINLINE bool can_read(const void *at, size_t n) {
    uintptr_t first = (uintptr_t)at / PAGE_BYTES, last = ((uintptr_t)at + n - 1) / PAGE_BYTES;
    if (n == 0) return true;
    if (last < first) return false;
    for (uintptr_t page = first; page <= last; page++)
        if (load_rlx(&pages_read[page % PAGES]) != page + 1 && !page_ask(page)) return false;
    return true;
}
