/*
 * Signals as channels, as the start of a runtime and the dump see them. See signal.c.
 */
#ifndef SIGNAL_CHAN_H
#define SIGNAL_CHAN_H

#include "base/base.h"

/* A channel watches this signal: its handler is ours, leave it alone. Anywhere. */
bool signal_watched(int signo);

#endif
