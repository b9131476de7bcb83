/* Between hold.c and hold_beat.c. */
#ifndef HOLD_H
#define HOLD_H

#include <stdint.h>

int beat(const char *kind, int64_t ns, int goroutines); /* on a goroutine; the exit status */

#endif
