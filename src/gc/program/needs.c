/*
 * libgort-gc.a: what goroutines need of the Boehm collector, by name. The support is in the library
 * (boehm.c) and refers to the collector weakly, so that the order of libraries does not matter. But
 * a weak reference takes nothing out of a static libgc.a, and is silent where the collector is too
 * old. With the references here a program has all of it or does not link.
 */
#include "gc/calls.h"

#define GC_THREADS 1
#include <gc.h>
#include <gc/gc_mark.h>

typedef void anything(void);
#define NEED(result, name, arguments) (anything *)name,
extern anything *const gort_gc_needs[];
__attribute__((visibility("default"), used)) anything *const gort_gc_needs[] = {EACH_CALL(NEED)};
/* The library knows the events by number. */
_Static_assert(GC_EVENT_PRE_STOP_WORLD == 6 && GC_EVENT_POST_START_WORLD == 9, "boehm.c");
