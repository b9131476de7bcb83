/* For tests that see the library from inside, where set, get and add are its own words. */
#ifndef GORT_WHITE_H
#define GORT_WHITE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "test.h"
#undef set
#undef get
#undef add

#endif
