/* Functions that must not be preempted by signal. See nopreempt.c. */
#ifndef NOPREEMPT_H
#define NOPREEMPT_H

#include "base/base.h"

bool nopreempt_covers(uintptr_t pc); /* anywhere, in a handler */

#endif
