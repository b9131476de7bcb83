/* GORT_DEBUG=hints=1 (hint.c). */
#ifndef HINT_H
#define HINT_H

#include "runtime.h"

/* -ENOTCONN, where the call needs a runtime. Any thread, in a section too; not in a handler. */
int hint_no_runtime(const char *call);
/* -ETIMEDOUT: the deadline of a call has passed at its beginning. Any thread. */
int hint_passed(int64_t deadline);

#endif
