/* Tells the library, before main, that this program's code checks its stacks, and shows it the
 * probe. Built without -fsplit-stack and its note: to the linker this is code without checks. */
#include "mem/split/split_abi.h"

extern char __morestack[], __morestack_non_split[], gort_split_end[], gort_split_probe[];

void gort_split_unchecked(void);
__attribute__((visibility("hidden"))) void gort_split_unchecked(void) {}

__attribute__((constructor)) static void linked(void) {
    gort_split_linked(__morestack_non_split, gort_split_end, gort_split_probe);
}
