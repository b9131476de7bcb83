/* Frames as text (frames.c). */
#ifndef FRAMES_H
#define FRAMES_H

#include "base/print.h"

#define FRAMES 64
typedef struct Frames {
    uintptr_t pcs[FRAMES]; /* [0]: where it stands, the others are return addresses */
    uint32_t more[FRAMES]; /* frames that were left out behind pcs[i] */
    int n;
} Frames;

/* A line for each frame from `first` on that the program's author wants to see. first > 0: the
 * caller has picked the first frame, and it is shown. */
void frames_print(Out *o, const Frames *f, int first);
void frames_print_all(Out *o, const Frames *f); /* the library's too */

/* Is pc in the library? Reads tables, allocates nothing. */
bool frame_is_ours(uintptr_t pc);

#endif
