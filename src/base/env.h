/* The environment, read once at each gort_main (gort_debug(3) has the variables). */
#ifndef ENV_H
#define ENV_H

#include "runtime.h"

/* A variable's value; NULL: not set, or the program has more rights than its caller. */
const char *env_get(const char *variable);

/* Fills `settings` from the defaults and the environment; complaints go to stderr. On the
 * caller's thread, before any thread of the runtime exists (getenv). */
void env_read(void);
/* GORT_DEBUG=hints=1. Also before the first gort_main, outside of handlers (getenv). */
bool env_hints(void);
/* The number of Ps by default. Any thread. */
int env_default_procs(void);

/* Copies of GORT_TRACE and GORT_HTTP; empty: not set. */
extern char env_trace[1024], env_http[256];

#endif
