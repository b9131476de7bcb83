/* Frames as text (frames.c). */
#ifndef FRAMES_H
#define FRAMES_H

#include "base/print.h"

/* A line for each of pcs[first] to pcs[n - 1] that the program's author wants to see. pcs[0] is
 * where the goroutine stands, the others are return addresses; more[i]: frames that were left out
 * behind pcs[i]. first > 0: the caller has picked the first frame, and it is shown. */
void frames_print(Out *o, const uintptr_t *pcs, const uint32_t *more, int first, int n);

/* Is pc in the library? Reads tables, allocates nothing. */
bool frame_is_ours(uintptr_t pc);

#endif
